//! Tenants, principals, keys, workspaces and grants on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApiKeyId, GrantId, Permission, PrincipalId, Resource, TenantId, Timestamp, WorkspaceId};

/// Longest name or display name, in characters.
pub const MAX_NAME_CHARS: usize = 200;
/// How a text without control characters looks.
pub const LINE_PATTERN: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";
/// How a name looks: it neither begins nor ends with white space and holds no control character.
pub const NAME_PATTERN: &str = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$";

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
    /// Who gets it.
    pub principal_id: PrincipalId,
    /// What it allows.
    pub permission: Permission,
    /// On what: `tenant`, `workspace:<id>` or `notification_integration:<name>`.
    pub resource: Resource,
}

/// A grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantView {
    /// Its id.
    pub id: GrantId,
    /// Who holds it.
    pub principal_id: PrincipalId,
    /// What it allows.
    pub permission: Permission,
    /// On what.
    pub resource: Resource,
    /// When it was granted.
    pub created_at: Timestamp,
}
