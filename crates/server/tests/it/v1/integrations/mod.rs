//! `/orgs/{org_id}/notification-integrations`

mod create;
mod edit;
mod grants;
mod report;
mod secrets;
