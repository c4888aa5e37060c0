//! What people are told of: the closed list, and what a notification says of each family.
//!
//! A detail is a part of the payload of the event that is told, with the same names, so that it is read from there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployments::{DeploymentMode, DeploymentStatus, FindingCounts, Origin, PlanSummary};
use crate::work::states;
use crate::{ArtifactId, DeploymentId, PrincipalId, RoleId, StackId, TaskId};

states! {
    /// What is announced, in canonical order.
    AnnouncedType {
        /// A deployment has done what it was to do.
        DeploymentSucceeded = "deployment_succeeded",
        /// A deployment failed.
        DeploymentFailed = "deployment_failed",
        /// A deployment was stopped.
        DeploymentCancelled = "deployment_cancelled",
        /// A deployment was left out by itself.
        DeploymentAutoSkipped = "deployment_auto_skipped",
        /// A plan waits for somebody to let it be applied.
        DeploymentAwaitingConfirmation = "deployment_awaiting_confirmation",
        /// A preview is ready.
        PreviewSucceeded = "preview_succeeded",
        /// A preview failed.
        PreviewFailed = "preview_failed",
        /// A preview was stopped.
        PreviewCancelled = "preview_cancelled",
        /// A preview was left out by itself.
        PreviewAutoSkipped = "preview_auto_skipped",
        /// A preview waits for somebody to let it start.
        PreviewAwaitingConfirmation = "preview_awaiting_confirmation",
        /// A command was submitted.
        RunCommandExecuted = "run_command_executed",
        /// A pull request's preview was promoted.
        PullRequestPromoted = "pull_request_promoted",
        /// An apply could not start the deployment of a dependent stack.
        DependentTriggerFailed = "dependent_trigger_failed",
        /// A stack was created.
        StackCreated = "stack_created",
        /// A stack was changed or moved.
        StackUpdated = "stack_updated",
        /// A stack was deleted.
        StackDeleted = "stack_deleted",
        /// Somebody has to decide.
        ApprovalRequested = "approval_requested",
        /// Somebody said yes.
        ApprovalApproved = "approval_approved",
        /// Somebody said no.
        ApprovalRejected = "approval_rejected",
        /// An approval is not asked any more.
        ApprovalCancelled = "approval_cancelled",
        /// Nobody decided in time.
        ApprovalExpired = "approval_expired",
        /// A task's checks failed.
        TaskVerificationFailed = "task_verification_failed",
        /// A task is done.
        TaskCompleted = "task_completed",
        /// The report of findings, by its schedule.
        ExploreFindingsChanged = "explore_findings_changed",
    }
}

impl AnnouncedType {
    /// The dotted type of the journal's events that are announced so. The report has no event; this is its type as a
    /// CloudEvent.
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::DeploymentSucceeded => "deployment.succeeded",
            Self::DeploymentFailed => "deployment.failed",
            Self::DeploymentCancelled => "deployment.cancelled",
            Self::DeploymentAutoSkipped => "deployment.auto_skipped",
            Self::DeploymentAwaitingConfirmation => "deployment.awaiting_confirmation",
            Self::PreviewSucceeded => "preview.succeeded",
            Self::PreviewFailed => "preview.failed",
            Self::PreviewCancelled => "preview.cancelled",
            Self::PreviewAutoSkipped => "preview.auto_skipped",
            Self::PreviewAwaitingConfirmation => "preview.awaiting_confirmation",
            Self::RunCommandExecuted => "run_command.executed",
            Self::PullRequestPromoted => "pull_request.promoted",
            Self::DependentTriggerFailed => "dependent_trigger.failed",
            Self::StackCreated => "stack.created",
            Self::StackUpdated => "stack.updated",
            Self::StackDeleted => "stack.deleted",
            Self::ApprovalRequested => "approval.requested",
            Self::ApprovalApproved => "approval.approved",
            Self::ApprovalRejected => "approval.rejected",
            Self::ApprovalCancelled => "approval.cancelled",
            Self::ApprovalExpired => "approval.expired",
            Self::TaskVerificationFailed => "task.verification_failed",
            Self::TaskCompleted => "task.completed",
            Self::ExploreFindingsChanged => "explore.findings_changed",
        }
    }

    /// What a journal event of this type is announced as; none: it reaches only those who name a prefix of it.
    pub fn of_event(event_type: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|announced| announced.event_type() == event_type)
    }
}

/// A deployment, as it was when it was told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnouncedDeployment {
    /// Which deployment.
    pub deployment_id: DeploymentId,
    /// Of which stack.
    pub stack_id: StackId,
    /// The stack's name.
    pub stack_name: String,
    /// Where it stands.
    pub status: DeploymentStatus,
    /// What it does.
    pub mode: DeploymentMode,
    /// Whether it ends with its plan.
    pub read_only: bool,
    /// Which commit.
    pub commit_sha: Option<String>,
    /// What that says.
    pub commit_message: Option<String>,
    /// Why it was left out.
    pub skipped_reason: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// What its plan says: the one that it applied, or else its latest.
    pub plan_summary: Option<PlanSummary>,
    /// How many bytes its command has, when that was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_bytes: Option<i64>,
}

/// A stack, as it was when it was told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnouncedStack {
    /// Its name.
    pub name: String,
    /// Where its code is.
    pub repository: Option<String>,
    /// Where in the repository.
    pub path: Option<String>,
    /// The names of the fields that changed.
    pub changes: Vec<String>,
}

/// A decision that is asked for or was taken. What an event does not say is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AnnouncedApproval {
    /// About which task.
    pub task_id: Option<TaskId>,
    /// The task's number in the tenant.
    pub task_public_id: Option<String>,
    /// What the task is to do.
    pub task_title: Option<String>,
    /// About which artifact.
    pub artifact_id: Option<ArtifactId>,
    /// Its name.
    pub artifact_name: Option<String>,
    /// Any holder of this role decides.
    pub required_role_id: Option<RoleId>,
    /// This principal decides.
    pub assigned_principal_id: Option<PrincipalId>,
    /// Whether it holds the task.
    pub gate: Option<bool>,
    /// Who requested it.
    pub requested_by: Option<PrincipalId>,
    /// Who decided.
    pub decision_by: Option<PrincipalId>,
    /// Through which channel.
    pub channel: Option<String>,
    /// Who cancelled it.
    pub cancelled_by: Option<PrincipalId>,
    /// What was said with it.
    pub comment: Option<String>,
}

/// A task, as it was when it was told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnouncedTask {
    /// Its number in the tenant.
    pub public_id: String,
    /// What it is to do.
    #[serde(default)]
    pub title: Option<String>,
    /// Which check failed.
    #[serde(default)]
    pub failed_check: Option<String>,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// How many checks have failed since one passed.
    #[serde(default)]
    pub consecutive_failures: Option<i64>,
    /// Whether it waits for a person by now.
    #[serde(default)]
    pub blocked: Option<bool>,
}

/// A dependent stack whose deployment did not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnouncedDependent {
    /// The dependent stack.
    pub dependent_stack_id: StackId,
    /// Its name.
    pub dependent_stack_name: String,
    /// The deployment that should have started it.
    pub deployment_id: DeploymentId,
    /// Of which stack.
    pub stack_id: StackId,
    /// That stack's name.
    pub stack_name: String,
    /// Why not.
    pub reason: String,
}

/// The report of findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnouncedFindings {
    /// How many there are.
    pub counts: FindingCounts,
    /// How many the last report told; null in the first.
    pub previous: Option<FindingCounts>,
    /// What was not looked at to its end: `cycles`, `orphans`.
    pub unchecked: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::core_type;

    #[test]
    fn each_is_one_event_of_the_catalogue_but_the_report() {
        for announced in AnnouncedType::ALL {
            let dotted = announced.event_type();
            assert_eq!(dotted.replace('.', "_"), announced.as_str());
            assert_eq!(core_type(dotted).is_none(), *announced == AnnouncedType::ExploreFindingsChanged, "{dotted}");
            assert_eq!(AnnouncedType::of_event(dotted), Some(*announced));
            assert_eq!(announced.as_str().parse(), Ok(*announced));
        }
        for silent in ["deployment.skipped", "deployment.confirmed", "preview.skipped", "pull.request_promoted", ""] {
            assert_eq!(AnnouncedType::of_event(silent), None, "{silent}");
        }
        assert_eq!(AnnouncedType::ALL.len(), 24);
    }
}
