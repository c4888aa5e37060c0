//! Tenants, principals, keys, workspaces, roles and grants on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApiKeyId, GrantId, IdentityBindingId, Permission, PrincipalId, Resource, RoleAssignmentId, RoleId, TenantId,
    Timestamp, WorkspaceId,
};

/// Longest name of an issuer, in characters.
pub const MAX_ISSUER_CHARS: usize = 500;
/// Longest name of a login, in characters; OpenID Connect Core 1.0, section 2.
pub const MAX_SUBJECT_CHARS: usize = 255;
/// Longest name or display name, in characters.
pub const MAX_NAME_CHARS: usize = 200;
/// How a text without control characters looks.
pub const LINE_PATTERN: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";
/// How a text of several lines looks: no control characters but line breaks and tabs.
pub const PROSE_PATTERN: &str = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$";
/// The same, with something in it that can be seen.
pub const SAID_PATTERN: &str =
    r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$";
/// How a name looks: it neither begins nor ends with white space and holds no control character.
pub const NAME_PATTERN: &str = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$";
/// Most questions of one `POST /authz:check`.
pub const MAX_CHECKS: usize = 100;

/// The body of `POST /bootstrap`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TenantBootstrap {
    /// The tenant's name: 1 to 200 characters.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: String,
}

/// A new tenant with its first principal, who holds every permission, and a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantBootstrapped {
    /// The tenant, which the notification routes call an org.
    pub tenant_id: TenantId,
    /// Its first principal.
    pub principal_id: PrincipalId,
    /// The key, shown this once; null in a replayed answer.
    pub api_key: Option<String>,
}

/// What a principal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    /// A person.
    Human,
    /// A program.
    Service,
    /// A program that acts by its own judgement.
    Agent,
}

/// Whether a principal may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalStatus {
    /// It may.
    Active,
    /// None of its credentials works.
    Disabled,
}

/// A new principal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrincipalCreate {
    /// Human, service or agent.
    pub kind: PrincipalKind,
    /// 1 to 200 characters.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub display_name: String,
}

/// Changes to a principal; what is absent stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrincipalPatch {
    /// 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub display_name: Option<String>,
    /// Disable or enable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PrincipalStatus>,
}

/// A principal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrincipalView {
    /// Its id.
    pub id: PrincipalId,
    /// Human, service or agent.
    pub kind: PrincipalKind,
    /// What people call it.
    pub display_name: String,
    /// Active or disabled.
    pub status: PrincipalStatus,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A new API key.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiKeyCreate {
    /// Whose key.
    pub principal_id: PrincipalId,
    /// When it ends by itself; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// An API key without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyView {
    /// The record's id.
    pub id: ApiKeyId,
    /// Whose key.
    pub principal_id: PrincipalId,
    /// The key's first characters, by which people recognise it.
    pub prefix: String,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The key itself: only in the answer that makes it, null ever after.
    pub api_key: Option<String>,
}

/// A new workspace.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceCreate {
    /// 1 to 200 characters.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// Its parent; absent: the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<WorkspaceId>,
}

/// Changes to a workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspacePatch {
    /// 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: Option<String>,
}

/// Where a workspace moves.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
// For an `Option` that must be there, the derive has no word that leaves it null.
#[schemars(extend("required" = ["parentId"]))]
pub struct WorkspaceMove {
    /// The new parent; null: the top.
    #[serde(deserialize_with = "present")]
    pub parent_id: Option<WorkspaceId>,
}

/// A field that must be there, though it may be null.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}

/// A node of the workspace tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceView {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// Its parent; null at the top.
    pub parent_id: Option<WorkspaceId>,
    /// When it was archived.
    pub archived_at: Option<Timestamp>,
    /// Grows with every change.
    pub version: i64,
}

/// A new grant.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantCreate {
    /// Which principal gets it; or else `roleId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<PrincipalId>,
    /// Which role gets it; or else `principalId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_id: Option<RoleId>,
    /// What it allows.
    pub permission: Permission,
    /// On what: `tenant`, `workspace:<id>` or `notification_integration:<name or pattern>`.
    pub resource: Resource,
}

impl GrantCreate {
    /// A grant to a principal.
    pub fn to(principal_id: PrincipalId, permission: Permission, resource: Resource) -> Self {
        Self { principal_id: Some(principal_id), role_id: None, permission, resource }
    }
}

/// A grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantView {
    /// Its id.
    pub id: GrantId,
    /// Which principal holds it; null when a role does.
    pub principal_id: Option<PrincipalId>,
    /// Which role holds it; null when a principal does.
    pub role_id: Option<RoleId>,
    /// What it allows.
    pub permission: Permission,
    /// On what.
    pub resource: Resource,
    /// When it was granted.
    pub created_at: Timestamp,
}

/// Binds a login of a configured issuer to a principal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IdentityBindingCreate {
    /// The issuer, as the server is configured and its tokens say.
    #[schemars(length(min = 1, max = MAX_ISSUER_CHARS), regex(pattern = NAME_PATTERN))]
    pub issuer: String,
    /// The login, as its tokens say in `sub`: 1 to 255 characters.
    #[schemars(length(min = 1, max = MAX_SUBJECT_CHARS), regex(pattern = NAME_PATTERN))]
    pub subject: String,
    /// Whom it stands for.
    pub principal_id: PrincipalId,
}

/// A login that stands for a principal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityBindingView {
    /// Its id.
    pub id: IdentityBindingId,
    /// The issuer.
    pub issuer: String,
    /// The login.
    pub subject: String,
    /// Whom it stands for.
    pub principal_id: PrincipalId,
    /// When it was bound.
    pub created_at: Timestamp,
}

/// A new role.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoleCreate {
    /// Unique in the tenant and for ever the same: 1 to 100 lower-case letters, digits, `.`, `_` and `-`, the first a
    /// letter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9._-]{0,99}$"))]
    pub key: String,
    /// What people call it: 1 to 200 characters.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// The workspace that it belongs to; absent: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
}

/// Whether a text can be a role's key.
pub fn is_role_key(key: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
    (1..=100).contains(&key.len()) && key.starts_with(|c: char| c.is_ascii_lowercase()) && key.bytes().all(inner)
}

/// Changes to a role.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolePatch {
    /// 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: Option<String>,
}

/// A role: its grants count for those it is assigned to, within the subtree where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleView {
    /// Its id.
    pub id: RoleId,
    /// Unique in the tenant.
    pub key: String,
    /// What people call it.
    pub name: String,
    /// The workspace that it belongs to; null: the tenant.
    pub workspace_id: Option<WorkspaceId>,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Somebody gets a role.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoleAssignmentCreate {
    /// Who.
    pub principal_id: PrincipalId,
    /// The workspace in whose subtree the role counts; absent: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
}

/// A role that somebody has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleAssignmentView {
    /// Its id.
    pub id: RoleAssignmentId,
    /// Which role.
    pub role_id: RoleId,
    /// Who has it.
    pub principal_id: PrincipalId,
    /// The workspace in whose subtree it counts; null: the tenant.
    pub workspace_id: Option<WorkspaceId>,
    /// When it was assigned.
    pub created_at: Timestamp,
}

/// A principal who holds a role at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleHolder {
    /// Its id.
    pub id: PrincipalId,
    /// Human, service or agent.
    pub kind: PrincipalKind,
    /// What people call it.
    pub display_name: String,
    /// Active or disabled: whoever asks decides whether that matters.
    pub status: PrincipalStatus,
}

/// Questions about what the caller may do.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuthzCheck {
    /// 1 to 100 questions.
    #[schemars(length(min = 1, max = 100))]
    pub checks: Vec<AuthzQuestion>,
}

/// May the caller do this?
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuthzQuestion {
    /// What.
    pub permission: Permission,
    /// On what.
    pub resource: Resource,
}

/// The answers, in the order of the questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthzChecked {
    /// One answer a question.
    pub items: Vec<AuthzAnswer>,
}

/// Whether the caller may do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthzAnswer {
    /// What was asked.
    pub permission: Permission,
    /// On what.
    pub resource: Resource,
    /// Whether a request that needs it would pass; false for a workspace that the tenant does not have.
    pub allowed: bool,
}
