//! Where people look at things.

use std::fmt::Display;

use courant_api::TenantId;

/// The page of one thing of an org: `part` is `deployments`, `stacks` or `approvals`.
pub fn of(base_url: &str, org: TenantId, part: &str, id: impl Display) -> String {
    format!("{base_url}/orgs/{org}/{part}/{id}")
}

/// The page of an org's findings.
pub fn findings(base_url: &str, org: TenantId) -> String {
    format!("{base_url}/orgs/{org}/findings")
}
