//! `stack.*`, `deployment.*`, `preview.*`, `run_command.*`, `pull_request.*`, `dependent_trigger.*`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Payload, event_types};
use crate::deployments::{DeploymentMode, DeploymentStatus, Origin, PlanSummary};
use crate::{DeploymentId, PrincipalId, StackId};

/// A stack after a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackChange {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Where its code is.
    pub repository: Option<String>,
    /// Where in the repository.
    pub path: Option<String>,
    /// The names of the fields that changed; none when it was created or deleted.
    pub changes: Vec<String>,
}

impl Payload for StackChange {
    fn example() -> Self {
        Self {
            name: "network".into(),
            labels: BTreeMap::from([("team".into(), "platform".into())]),
            repository: Some("github.com/acme/infra".into()),
            path: Some("network".into()),
            changes: vec!["labels".into()],
        }
    }
}

/// A deployment as it is at an event: nothing has to be read to tell of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentDetail {
    /// Which deployment.
    pub deployment_id: DeploymentId,
    /// Of which stack.
    pub stack_id: StackId,
    /// The stack's name.
    pub stack_name: String,
    /// The stack's labels.
    pub stack_labels: BTreeMap<String, String>,
    /// Where it stands.
    pub status: DeploymentStatus,
    /// What it does.
    pub mode: DeploymentMode,
    /// Whether it ends with its plan.
    pub read_only: bool,
    /// Which commit.
    pub commit_sha: Option<String>,
    /// What that says; redacted and cut.
    pub commit_message: Option<String>,
    /// Why it was left out, when nobody in person wanted that.
    pub skipped_reason: Option<String>,
    /// Why it failed; redacted and cut.
    pub error: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// What its plan says: the one that it applied, or else its latest.
    pub plan_summary: Option<PlanSummary>,
    /// Its page.
    pub url: Option<String>,
}

impl Payload for DeploymentDetail {
    fn example() -> Self {
        Self {
            deployment_id: Uuid::nil().into(),
            stack_id: Uuid::nil().into(),
            stack_name: "network".into(),
            stack_labels: BTreeMap::from([("team".into(), "platform".into())]),
            status: DeploymentStatus::Finished,
            mode: DeploymentMode::Plan,
            read_only: false,
            commit_sha: Some("4f9c2d1".into()),
            commit_message: Some("Widen the subnet".into()),
            skipped_reason: None,
            error: None,
            origin: Origin::Push { branch: Some("main".into()) },
            plan_summary: Some(PlanSummary {
                add: 1,
                change: 2,
                destroy: 0,
                has_changes: Some(true),
                complete: true,
                gap_reasons: Vec::new(),
            }),
            url: Some("https://courant.example.com/orgs/o/deployments/d".into()),
        }
    }
}

/// A deployment that goes on.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentConfirmed {
    /// The deployment.
    #[serde(flatten)]
    pub deployment: DeploymentDetail,
    /// Who let it go on.
    pub confirmed_by: PrincipalId,
}

impl Payload for DeploymentConfirmed {
    fn example() -> Self {
        Self { deployment: DeploymentDetail::example(), confirmed_by: Uuid::nil().into() }
    }
}

/// A command that was submitted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunCommandExecuted {
    /// The deployment.
    #[serde(flatten)]
    pub deployment: DeploymentDetail,
    /// How many bytes of UTF-8 the command has; its text is kept nowhere.
    pub command_bytes: i64,
}

impl Payload for RunCommandExecuted {
    fn example() -> Self {
        Self { deployment: DeploymentDetail::example(), command_bytes: 42 }
    }
}

/// A dependent stack whose deployment did not start.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependentTriggerFailed {
    /// The deployment that should have started it.
    #[serde(flatten)]
    pub deployment: DeploymentDetail,
    /// The dependent stack.
    pub dependent_stack_id: StackId,
    /// Its name.
    pub dependent_stack_name: String,
    /// Why not: `dependency_cycle`, `chain_too_long` or `deployment_active`.
    pub reason: String,
}

impl Payload for DependentTriggerFailed {
    fn example() -> Self {
        Self {
            deployment: DeploymentDetail::example(),
            dependent_stack_id: Uuid::nil().into(),
            dependent_stack_name: "cluster".into(),
            reason: "deployment_active".into(),
        }
    }
}

event_types! {
    STACK_CREATED = "stack.created" on "stack", v 1 StackChange, "A stack was created.";
    STACK_UPDATED = "stack.updated" on "stack", v 1 StackChange, "A stack was changed or moved.";
    STACK_DELETED = "stack.deleted" on "stack", v 1 StackChange, "A stack was deleted.";
    DEPLOYMENT_CREATED = "deployment.created" on "deployment", v 1 DeploymentDetail, "A deployment or preview was created.";
    DEPLOYMENT_AWAITING = "deployment.awaiting_confirmation" on "deployment", v 1 DeploymentDetail, "A plan waits for somebody to let it be applied.";
    DEPLOYMENT_CONFIRMED = "deployment.confirmed" on "deployment", v 1 DeploymentConfirmed, "Somebody let a plan be applied.";
    DEPLOYMENT_SUCCEEDED = "deployment.succeeded" on "deployment", v 1 DeploymentDetail, "A deployment has done what it was to do.";
    DEPLOYMENT_FAILED = "deployment.failed" on "deployment", v 1 DeploymentDetail, "A deployment failed.";
    DEPLOYMENT_CANCELLED = "deployment.cancelled" on "deployment", v 1 DeploymentDetail, "A deployment was stopped.";
    DEPLOYMENT_AUTO_SKIPPED = "deployment.auto_skipped" on "deployment", v 1 DeploymentDetail, "A deployment was left out by itself.";
    DEPLOYMENT_SKIPPED = "deployment.skipped" on "deployment", v 1 DeploymentDetail, "Somebody left a deployment out.";
    PREVIEW_AWAITING = "preview.awaiting_confirmation" on "deployment", v 1 DeploymentDetail, "A preview waits for somebody to let it start.";
    PREVIEW_CONFIRMED = "preview.confirmed" on "deployment", v 1 DeploymentConfirmed, "Somebody let a preview start.";
    PREVIEW_SUCCEEDED = "preview.succeeded" on "deployment", v 1 DeploymentDetail, "A preview is ready.";
    PREVIEW_FAILED = "preview.failed" on "deployment", v 1 DeploymentDetail, "A preview failed.";
    PREVIEW_CANCELLED = "preview.cancelled" on "deployment", v 1 DeploymentDetail, "A preview was stopped.";
    PREVIEW_AUTO_SKIPPED = "preview.auto_skipped" on "deployment", v 1 DeploymentDetail, "A preview was left out by itself: a newer one took its place.";
    PREVIEW_SKIPPED = "preview.skipped" on "deployment", v 1 DeploymentDetail, "Somebody left a preview out.";
    RUN_COMMAND_EXECUTED = "run_command.executed" on "deployment", v 1 RunCommandExecuted, "A command was submitted.";
    PULL_REQUEST_PROMOTED = "pull_request.promoted" on "deployment", v 1 DeploymentDetail, "A pull request's preview was promoted to a deployment.";
    DEPENDENT_TRIGGER_FAILED = "dependent_trigger.failed" on "deployment", v 1 DependentTriggerFailed, "An apply could not start the deployment of a dependent stack.";
}
