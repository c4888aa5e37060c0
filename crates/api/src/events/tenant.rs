//! `tenant.*`

use schemars::JsonSchema;
use serde::Serialize;

use super::{Payload, event_types};

/// A new tenant.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantBootstrapped {
    /// Its name.
    pub name: String,
}

impl Payload for TenantBootstrapped {
    fn example() -> Self {
        Self { name: "acme".into() }
    }
}

event_types! {
    TENANT_BOOTSTRAPPED = "tenant.bootstrapped" on "tenant", v 1 TenantBootstrapped, "A tenant was made, with its first principal and key.";
}
