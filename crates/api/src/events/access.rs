//! `principal.*`, `api_key.*`, `grant.*`, `identity_binding.*`, `role.*`

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Payload, event_types};
use crate::access::{PrincipalKind, PrincipalStatus};
use crate::{Permission, PrincipalId, Resource, RoleId, Timestamp, WorkspaceId};

/// A principal after a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrincipalChange {
    /// Human, service or agent.
    pub kind: PrincipalKind,
    /// What people call it.
    pub display_name: String,
    /// Active or disabled.
    pub status: PrincipalStatus,
}

impl Payload for PrincipalChange {
    fn example() -> Self {
        Self { kind: PrincipalKind::Service, display_name: "billing".into(), status: PrincipalStatus::Active }
    }
}

/// An API key; its secret is nowhere but with its holder.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyChange {
    /// Whose key.
    pub principal_id: PrincipalId,
    /// The key's first characters, by which people recognise it.
    pub prefix: String,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

impl Payload for ApiKeyChange {
    fn example() -> Self {
        Self { principal_id: PrincipalId(Uuid::nil()), prefix: "cak_3fJq".into(), expires_at: None }
    }
}

/// A grant.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantChange {
    /// Who holds it, when a principal does.
    pub principal_id: Option<PrincipalId>,
    /// Which role holds it, when a role does.
    pub role_id: Option<RoleId>,
    /// What it allows.
    pub permission: Permission,
    /// On what.
    pub resource: Resource,
}

impl Payload for GrantChange {
    fn example() -> Self {
        Self {
            principal_id: Some(PrincipalId(Uuid::nil())),
            role_id: None,
            permission: Permission::EventsRead,
            resource: Resource::Tenant,
        }
    }
}

/// A role after a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleChange {
    /// Unique in the tenant.
    pub key: String,
    /// What people call it.
    pub name: String,
}

impl Payload for RoleChange {
    fn example() -> Self {
        Self { key: "approver".into(), name: "Approver".into() }
    }
}

/// A role that a principal got or lost.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleAssignmentChange {
    /// Who.
    pub principal_id: PrincipalId,
    /// The workspace in whose subtree it counts; null: the tenant.
    pub workspace_id: Option<WorkspaceId>,
}

impl Payload for RoleAssignmentChange {
    fn example() -> Self {
        Self { principal_id: PrincipalId(Uuid::nil()), workspace_id: None }
    }
}

/// A login that was bound to a principal; its name is nowhere but with the binding.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityBindingChange {
    /// Whom it stands for.
    pub principal_id: PrincipalId,
    /// The issuer.
    pub issuer: String,
}

impl Payload for IdentityBindingChange {
    fn example() -> Self {
        Self { principal_id: PrincipalId(Uuid::nil()), issuer: "https://login.example.com".into() }
    }
}

event_types! {
    PRINCIPAL_CREATED = "principal.created" on "principal", v 1 PrincipalChange, "A principal was created.";
    PRINCIPAL_UPDATED = "principal.updated" on "principal", v 1 PrincipalChange, "A principal was renamed or enabled again.";
    PRINCIPAL_DISABLED = "principal.disabled" on "principal", v 1 PrincipalChange, "A principal was disabled: its keys stop working.";
    API_KEY_CREATED = "api_key.created" on "api_key", v 1 ApiKeyChange, "An API key was made.";
    API_KEY_REVOKED = "api_key.revoked" on "api_key", v 1 ApiKeyChange, "An API key was revoked.";
    GRANT_CREATED = "grant.created" on "grant", v 1 GrantChange, "A permission was granted.";
    GRANT_REVOKED = "grant.revoked" on "grant", v 1 GrantChange, "A grant was taken back.";
    ROLE_CREATED = "role.created" on "role", v 1 RoleChange, "A role was created.";
    ROLE_UPDATED = "role.updated" on "role", v 1 RoleChange, "A role was renamed.";
    ROLE_ASSIGNED = "role.assigned" on "role", v 1 RoleAssignmentChange, "A principal got a role. The envelope's workspace is the role's.";
    ROLE_REVOKED = "role.revoked" on "role", v 1 RoleAssignmentChange, "A principal lost a role. The envelope's workspace is the role's.";
    IDENTITY_BINDING_CREATED = "identity_binding.created" on "identity_binding", v 1 IdentityBindingChange, "A login was bound to a principal.";
    IDENTITY_BINDING_REVOKED = "identity_binding.revoked" on "identity_binding", v 1 IdentityBindingChange, "A login stands for its principal no more.";
}
