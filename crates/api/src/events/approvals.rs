//! `approval.*`

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Payload, event_types};
use crate::approvals::ApprovalStatus;
use crate::{ArtifactId, PrincipalId, RoleId, TaskId, Timestamp, WorkspaceId};

/// What a decision is about, in words.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalSubject {
    /// The task's number in the tenant.
    pub task_public_id: Option<String>,
    /// What the task is to do; redacted and cut.
    pub task_title: Option<String>,
    /// The artifact's name; redacted and cut.
    pub artifact_name: Option<String>,
}

impl ApprovalSubject {
    fn example() -> Self {
        Self {
            task_public_id: Some("TASK-000001".into()),
            task_title: Some("Renew the certificate".into()),
            artifact_name: None,
        }
    }
}

/// A decision that somebody has to take, as version 1 told it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequestedV1 {
    /// About which task.
    pub task_id: Option<TaskId>,
    /// About which artifact.
    pub artifact_id: Option<ArtifactId>,
    /// Any holder of this role decides.
    pub required_role_id: Option<RoleId>,
    /// This principal decides.
    pub assigned_principal_id: Option<PrincipalId>,
    /// Whether it holds the task.
    pub gate: bool,
}

impl Payload for ApprovalRequestedV1 {
    fn example() -> Self {
        Self {
            task_id: Some(Uuid::nil().into()),
            artifact_id: None,
            required_role_id: Some(Uuid::nil().into()),
            assigned_principal_id: None,
            gate: true,
        }
    }
}

/// A decision that somebody has to take.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequested {
    /// About which task.
    pub task_id: Option<TaskId>,
    /// About which artifact.
    pub artifact_id: Option<ArtifactId>,
    /// Any holder of this role decides.
    pub required_role_id: Option<RoleId>,
    /// This principal decides.
    pub assigned_principal_id: Option<PrincipalId>,
    /// Whether it holds the task.
    pub gate: bool,
    /// The approval's workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// What it is about, in words.
    #[serde(flatten)]
    pub subject: ApprovalSubject,
    /// Who requested it.
    pub requested_by: PrincipalId,
    /// What was said with it; redacted and cut.
    pub comment: Option<String>,
}

impl Payload for ApprovalRequested {
    fn example() -> Self {
        Self {
            task_id: Some(Uuid::nil().into()),
            artifact_id: None,
            required_role_id: Some(Uuid::nil().into()),
            assigned_principal_id: None,
            gate: true,
            workspace_id: None,
            subject: ApprovalSubject::example(),
            requested_by: Uuid::nil().into(),
            comment: None,
        }
    }
}

/// A decision, as version 1 told it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecidedV1 {
    /// About which task.
    pub task_id: Option<TaskId>,
    /// About which artifact.
    pub artifact_id: Option<ArtifactId>,
    /// What was decided.
    pub outcome_status: ApprovalStatus,
}

impl Payload for ApprovalDecidedV1 {
    fn example() -> Self {
        Self { task_id: Some(Uuid::nil().into()), artifact_id: None, outcome_status: ApprovalStatus::Approved }
    }
}

/// A decision.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecided {
    /// About which task.
    pub task_id: Option<TaskId>,
    /// About which artifact.
    pub artifact_id: Option<ArtifactId>,
    /// What was decided.
    pub outcome_status: ApprovalStatus,
    /// Who decided.
    pub decision_by: PrincipalId,
    /// What was said with it; redacted and cut.
    pub comment: Option<String>,
    /// Through which channel it came; null: by a direct call.
    pub channel: Option<String>,
    /// What it is about, in words.
    #[serde(flatten)]
    pub subject: ApprovalSubject,
}

impl Payload for ApprovalDecided {
    fn example() -> Self {
        Self {
            task_id: Some(Uuid::nil().into()),
            artifact_id: None,
            outcome_status: ApprovalStatus::Approved,
            decision_by: Uuid::nil().into(),
            comment: None,
            channel: None,
            subject: ApprovalSubject::example(),
        }
    }
}

/// An approval that is not asked any more, as version 1 told it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalCancelledV1 {
    /// About which task.
    pub task_id: Option<TaskId>,
}

impl Payload for ApprovalCancelledV1 {
    fn example() -> Self {
        Self { task_id: Some(Uuid::nil().into()) }
    }
}

/// An approval that is not asked any more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalCancelled {
    /// About which task.
    pub task_id: Option<TaskId>,
    /// Who cancelled it; null: the server.
    pub cancelled_by: Option<PrincipalId>,
    /// What it was about, in words.
    #[serde(flatten)]
    pub subject: ApprovalSubject,
}

impl Payload for ApprovalCancelled {
    fn example() -> Self {
        Self {
            task_id: Some(Uuid::nil().into()),
            cancelled_by: Some(Uuid::nil().into()),
            subject: ApprovalSubject::example(),
        }
    }
}

/// An approval that nobody decided in time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalExpired {
    /// About which task.
    pub task_id: Option<TaskId>,
    /// About which artifact.
    pub artifact_id: Option<ArtifactId>,
    /// The approval's workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// When its time was over.
    pub expired_at: Timestamp,
    /// What it was about, in words.
    #[serde(flatten)]
    pub subject: ApprovalSubject,
}

impl Payload for ApprovalExpired {
    fn example() -> Self {
        Self {
            task_id: Some(Uuid::nil().into()),
            artifact_id: None,
            workspace_id: None,
            expired_at: Timestamp::from_micros(1_788_171_304_117_000),
            subject: ApprovalSubject::example(),
        }
    }
}

event_types! {
    APPROVAL_REQUESTED = "approval.requested" on "approval", v 1 ApprovalRequestedV1, v 2 ApprovalRequested, "Somebody has to decide.";
    APPROVAL_APPROVED = "approval.approved" on "approval", v 1 ApprovalDecidedV1, v 2 ApprovalDecided, "Somebody said yes.";
    APPROVAL_REJECTED = "approval.rejected" on "approval", v 1 ApprovalDecidedV1, v 2 ApprovalDecided, "Somebody said no.";
    APPROVAL_CANCELLED = "approval.cancelled" on "approval", v 1 ApprovalCancelledV1, v 2 ApprovalCancelled, "An approval is not asked any more.";
    APPROVAL_EXPIRED = "approval.expired" on "approval", v 1 ApprovalExpired, "Nobody decided in time.";
}
