//! `principal.*`, `api_key.*`, `grant.*`

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Payload, event_types};
use crate::access::{PrincipalKind, PrincipalStatus};
use crate::{Permission, PrincipalId, Resource, Timestamp};

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
    pub role_id: Option<Uuid>,
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

event_types! {
    PRINCIPAL_CREATED = "principal.created" on "principal", v 1 PrincipalChange, "A principal was created.";
    PRINCIPAL_UPDATED = "principal.updated" on "principal", v 1 PrincipalChange, "A principal was renamed or enabled again.";
    PRINCIPAL_DISABLED = "principal.disabled" on "principal", v 1 PrincipalChange, "A principal was disabled: its keys stop working.";
    API_KEY_CREATED = "api_key.created" on "api_key", v 1 ApiKeyChange, "An API key was made.";
    API_KEY_REVOKED = "api_key.revoked" on "api_key", v 1 ApiKeyChange, "An API key was revoked.";
    GRANT_CREATED = "grant.created" on "grant", v 1 GrantChange, "A permission was granted.";
    GRANT_REVOKED = "grant.revoked" on "grant", v 1 GrantChange, "A grant was taken back.";
}
