//! `task.*`, `claim.*`, `run.*`

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Payload, event_types};
use crate::work::{CheckResult, TaskCategory, TaskPriority, TaskStatus};
use crate::{
    ApprovalId, ArtifactId, ClaimId, CommentId, GoalId, PrincipalId, TaskId, Timestamp, VerificationId, WorkspaceId,
};

/// A new task.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskCreated {
    /// The task's number in the tenant.
    pub public_id: String,
    /// What is to be done.
    pub title: String,
    /// Where the task stands now.
    pub status: TaskStatus,
    /// What that means.
    pub system_status_category: TaskCategory,
    /// How urgent.
    pub priority: TaskPriority,
    /// Its workspace; null: the tenant.
    pub workspace_id: Option<WorkspaceId>,
    /// By when.
    pub due_date: Option<Timestamp>,
    /// What it is for.
    pub goal_id: Option<GoalId>,
    /// Whether it has values of its creator's own, which no event tells.
    pub custom_fields: bool,
}

impl Payload for TaskCreated {
    fn example() -> Self {
        Self {
            public_id: "TASK-000001".into(),
            title: "Renew the certificate".into(),
            status: TaskStatus::Open,
            system_status_category: TaskCategory::Todo,
            priority: TaskPriority::Normal,
            workspace_id: None,
            due_date: None,
            goal_id: None,
            custom_fields: false,
        }
    }
}

/// A task after a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskUpdated {
    /// The task's number in the tenant.
    pub public_id: String,
    /// The names of the fields that changed.
    pub changes: Vec<String>,
    /// The task's version after the change.
    pub version: i64,
    /// Where it stood, when its status changed.
    pub from_status: Option<TaskStatus>,
    /// Where it stands now, when its status changed.
    pub status: Option<TaskStatus>,
    /// What that means, when its status changed.
    pub system_status_category: Option<TaskCategory>,
}

impl Payload for TaskUpdated {
    fn example() -> Self {
        Self {
            public_id: "TASK-000001".into(),
            changes: vec!["title".into()],
            version: 2,
            from_status: None,
            status: None,
            system_status_category: None,
        }
    }
}

/// A task that somebody works on now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskClaimed {
    /// The claim.
    pub claim_id: ClaimId,
    /// Who works on it.
    pub holder_id: PrincipalId,
    /// Greater than that of every earlier claim of the task.
    pub fencing_token: i64,
    /// When the lease ends, unless it is extended.
    pub expires_at: Timestamp,
    /// Where the task stands now.
    pub status: TaskStatus,
    /// The task's version after the change.
    pub version: i64,
}

impl Payload for TaskClaimed {
    fn example() -> Self {
        Self {
            claim_id: Uuid::nil().into(),
            holder_id: Uuid::nil().into(),
            fencing_token: 1,
            expires_at: Timestamp::from_micros(1_788_171_304_117_000),
            status: TaskStatus::InProgress,
            version: 2,
        }
    }
}

/// A task that is done.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskCompleted {
    /// The task's number in the tenant.
    pub public_id: String,
    /// What the task is to do; redacted and cut.
    pub title: String,
    /// Where the task stands now.
    pub status: TaskStatus,
    /// What that means.
    pub system_status_category: TaskCategory,
    /// The task's version after the change.
    pub version: i64,
}

impl Payload for TaskCompleted {
    fn example() -> Self {
        Self {
            public_id: "TASK-000001".into(),
            title: "Renew the certificate".into(),
            status: TaskStatus::Completed,
            system_status_category: TaskCategory::Done,
            version: 3,
        }
    }
}

/// A round of checks that began.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationStarted {
    /// The task's number in the tenant.
    pub public_id: String,
    /// The verification.
    pub verification_id: VerificationId,
    /// 1, 2, … in the task.
    pub attempt: i64,
    /// What made it start.
    pub trigger: String,
    /// The checks by name.
    pub checks: Vec<String>,
}

impl Payload for VerificationStarted {
    fn example() -> Self {
        Self {
            public_id: "TASK-000001".into(),
            verification_id: Uuid::nil().into(),
            attempt: 1,
            trigger: "manual".into(),
            checks: vec!["tests".into()],
        }
    }
}

/// A round of checks that failed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationFailed {
    /// The task's number in the tenant.
    pub public_id: String,
    /// What the task is to do; redacted and cut.
    pub title: String,
    /// The verification.
    pub verification_id: VerificationId,
    /// 1, 2, … in the task.
    pub attempt: i64,
    /// What made it start.
    pub trigger: String,
    /// The checks by name.
    pub checks: Vec<String>,
    /// What became of them.
    pub results: Vec<CheckResult>,
    /// Which check failed.
    pub failed_check: String,
    /// Why; redacted.
    pub reason: Option<String>,
    /// How many have failed since one passed.
    pub consecutive_failures: i64,
    /// Whether this blocked the task.
    pub blocked: bool,
    /// Where the task stood.
    pub from_status: TaskStatus,
    /// Where the task stands now.
    pub status: TaskStatus,
    /// What that means.
    pub system_status_category: TaskCategory,
}

impl Payload for VerificationFailed {
    fn example() -> Self {
        Self {
            public_id: "TASK-000001".into(),
            title: "Renew the certificate".into(),
            verification_id: Uuid::nil().into(),
            attempt: 1,
            trigger: "manual".into(),
            checks: vec!["tests".into()],
            results: Vec::new(),
            failed_check: "tests".into(),
            reason: None,
            consecutive_failures: 1,
            blocked: false,
            from_status: TaskStatus::InProgress,
            status: TaskStatus::InProgress,
            system_status_category: TaskCategory::Active,
        }
    }
}

/// A round of checks that passed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskVerified {
    /// The task's number in the tenant.
    pub public_id: String,
    /// The verification.
    pub verification_id: VerificationId,
    /// 1, 2, … in the task.
    pub attempt: i64,
    /// What became of the checks.
    pub results: Vec<CheckResult>,
    /// An artifact that shows it.
    pub artifact_id: Option<ArtifactId>,
}

impl Payload for TaskVerified {
    fn example() -> Self {
        Self {
            public_id: "TASK-000001".into(),
            verification_id: Uuid::nil().into(),
            attempt: 1,
            results: Vec::new(),
            artifact_id: None,
        }
    }
}

/// A comment; its text is nowhere but with the task.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommentAdded {
    /// The comment.
    pub comment_id: CommentId,
    /// Who wrote it.
    pub author_principal_id: PrincipalId,
    /// How long it is, in characters.
    pub body_length: i64,
}

impl Payload for CommentAdded {
    fn example() -> Self {
        Self { comment_id: Uuid::nil().into(), author_principal_id: Uuid::nil().into(), body_length: 42 }
    }
}

/// A claim that holds its task no more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimEnded {
    /// The task.
    pub task_id: TaskId,
    /// Why; redacted.
    pub reason: Option<String>,
    /// Where the task stands now.
    pub task_status: TaskStatus,
}

impl Payload for ClaimEnded {
    fn example() -> Self {
        Self { task_id: Uuid::nil().into(), reason: None, task_status: TaskStatus::Open }
    }
}

/// A run that began, as version 1 told it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStartedV1 {
    /// The task.
    pub task_id: TaskId,
    /// The claim.
    pub claim_id: ClaimId,
    /// 1, 2, … in the task.
    pub attempt: i64,
    /// The claim's.
    pub fencing_token: i64,
}

impl Payload for RunStartedV1 {
    fn example() -> Self {
        Self { task_id: Uuid::nil().into(), claim_id: Uuid::nil().into(), attempt: 1, fencing_token: 1 }
    }
}

/// A run that began.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    /// The task.
    pub task_id: TaskId,
    /// The claim.
    pub claim_id: ClaimId,
    /// 1, 2, … in the task.
    pub attempt: i64,
    /// The claim's.
    pub fencing_token: i64,
    /// Which build of an agent runs it.
    pub agent_revision_id: Option<String>,
}

impl Payload for RunStarted {
    fn example() -> Self {
        Self {
            task_id: Uuid::nil().into(),
            claim_id: Uuid::nil().into(),
            attempt: 1,
            fencing_token: 1,
            agent_revision_id: None,
        }
    }
}

/// A run that reached its end.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSucceeded {
    /// The task.
    pub task_id: TaskId,
    /// 1, 2, … in the task.
    pub attempt: i64,
    /// Why; redacted.
    pub reason: Option<String>,
    /// Whether the task was completed with it.
    pub task_completed: bool,
}

impl Payload for RunSucceeded {
    fn example() -> Self {
        Self { task_id: Uuid::nil().into(), attempt: 1, reason: None, task_completed: false }
    }
}

/// A run that did not reach its end.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEnded {
    /// The task.
    pub task_id: TaskId,
    /// 1, 2, … in the task.
    pub attempt: i64,
    /// Why; redacted.
    pub reason: Option<String>,
}

impl Payload for RunEnded {
    fn example() -> Self {
        Self { task_id: Uuid::nil().into(), attempt: 1, reason: None }
    }
}

/// A run that waits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSuspended {
    /// The task.
    pub task_id: TaskId,
    /// 1, 2, … in the task.
    pub attempt: i64,
    /// Why; redacted.
    pub reason: Option<String>,
    /// The approval that it waits for.
    pub waiting_for_approval_id: Option<ApprovalId>,
}

impl Payload for RunSuspended {
    fn example() -> Self {
        Self { task_id: Uuid::nil().into(), attempt: 1, reason: None, waiting_for_approval_id: None }
    }
}

event_types! {
    TASK_CREATED = "task.created" on "task", v 1 TaskCreated, "A task was created.";
    TASK_UPDATED = "task.updated" on "task", v 1 TaskUpdated, "A task was changed.";
    TASK_CLAIMED = "task.claimed" on "task", v 1 TaskClaimed, "Somebody claimed a task.";
    TASK_COMPLETED = "task.completed" on "task", v 1 TaskCompleted, "A task was completed.";
    TASK_VERIFICATION_STARTED = "task.verification_started" on "task", v 1 VerificationStarted, "A round of checks on a task began.";
    TASK_VERIFICATION_FAILED = "task.verification_failed" on "task", v 1 VerificationFailed, "A round of checks on a task failed.";
    TASK_VERIFIED = "task.verified" on "task", v 1 TaskVerified, "A round of checks on a task passed.";
    TASK_COMMENT_ADDED = "task.comment_added" on "task", v 1 CommentAdded, "Somebody commented on a task.";
    CLAIM_RELEASED = "claim.released" on "claim", v 1 ClaimEnded, "The holder of a claim gave its task back.";
    CLAIM_EXPIRED = "claim.expired" on "claim", v 1 ClaimEnded, "The lease of a claim ended.";
    RUN_STARTED = "run.started" on "run", v 1 RunStartedV1, v 2 RunStarted, "A run began.";
    RUN_SUCCEEDED = "run.succeeded" on "run", v 1 RunSucceeded, "A run reached its end.";
    RUN_FAILED = "run.failed" on "run", v 1 RunEnded, "A run failed.";
    RUN_CANCELLED = "run.cancelled" on "run", v 1 RunEnded, "A run was cancelled.";
    RUN_SUSPENDED = "run.suspended" on "run", v 1 RunSuspended, "A run waits.";
}
