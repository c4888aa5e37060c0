//! Tasks, and what is done to them, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::access::{NAME_PATTERN, PROSE_PATTERN, SAID_PATTERN};
use crate::{
    ArtifactId, ClaimId, CommentId, GoalId, PrincipalId, RunId, TaskId, Timestamp, VerificationId, WorkspaceId,
};

/// Longest title, in characters.
pub const MAX_TITLE_CHARS: usize = 300;
/// Longest description or comment, in characters.
pub const MAX_TEXT_CHARS: usize = 20_000;
/// Longest reason, in characters.
pub const MAX_REASON_CHARS: usize = 1_000;
/// Shortest and longest lease of a claim, in seconds, and what it is when nothing was asked.
pub const LEASE_SECONDS: std::ops::RangeInclusive<i64> = 10..=86_400;
/// The lease of a claim when nothing was asked, in seconds.
pub const DEFAULT_LEASE_SECONDS: i64 = 900;
/// Longest name of an agent's build, in characters.
pub const MAX_REVISION_CHARS: usize = 200;
/// Longest name of a check or a trigger, in characters.
pub const MAX_CHECK_CHARS: usize = 100;
/// Most checks of a verification.
pub const MAX_CHECKS_OF_VERIFICATION: usize = 50;
/// How many verifications in a row may fail before the task is blocked.
pub const FAILURES_THAT_BLOCK: i64 = 3;

macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As it is written.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                Self::ALL.iter().copied().find(|state| state.as_str() == text).ok_or(())
            }
        }
    };
}
pub(crate) use states;

states! {
    /// Where a task stands.
    TaskStatus {
        /// Nobody works on it.
        Open = "open",
        /// Somebody has claimed it.
        InProgress = "in_progress",
        /// It waits for a person: checks failed too often, or somebody said so.
        Blocked = "blocked",
        /// It is done.
        Completed = "completed",
        /// It will not be done.
        Cancelled = "cancelled",
    }
}

states! {
    /// What a status means to those who do not know the statuses.
    TaskCategory {
        /// Still to be done.
        Todo = "todo",
        /// Being done.
        Active = "active",
        /// Done.
        Done = "done",
        /// Given up.
        Cancelled = "cancelled",
    }
}

states! {
    /// How urgent a task is.
    TaskPriority {
        /// Can wait.
        Low = "low",
        /// As usual.
        Normal = "normal",
        /// Before others.
        High = "high",
        /// Before all.
        Urgent = "urgent",
    }
}

/// A new task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskCreate {
    /// 1 to 300 characters.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS), regex(pattern = NAME_PATTERN))]
    pub title: String,
    /// At most 20,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = PROSE_PATTERN))]
    pub description: Option<String>,
    /// `normal` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<TaskPriority>,
    /// Its workspace; absent: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Who is to do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee_id: Option<PrincipalId>,
    /// By when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_date: Option<Timestamp>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_id: Option<GoalId>,
    /// Values of the caller's own, at most 16 KiB of JSON; events only tell that there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_fields: Option<Map<String, Value>>,
}

/// Changes to a task; what is absent stays, and null takes away.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskPatch {
    /// 1 to 300 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS), regex(pattern = NAME_PATTERN))]
    pub title: Option<String>,
    /// At most 20,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<String>", length(max = MAX_TEXT_CHARS), regex(pattern = PROSE_PATTERN))]
    pub description: Option<Option<String>>,
    /// How urgent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<TaskPriority>,
    /// Another workspace: the task moves, and readers of the one it leaves are told.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<WorkspaceId>")]
    pub workspace_id: Option<Option<WorkspaceId>>,
    /// Who is to do it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<PrincipalId>")]
    pub assignee_id: Option<Option<PrincipalId>>,
    /// By when.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<Timestamp>")]
    pub due_date: Option<Option<Timestamp>>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<GoalId>")]
    pub goal_id: Option<Option<GoalId>>,
    /// All of them anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_fields: Option<Map<String, Value>>,
    /// `open`, `blocked` or `cancelled`; the others come about by claims and completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// Its number in the tenant: `TASK-000001`.
    pub public_id: String,
    /// What is to be done.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// Where it stands.
    pub status: TaskStatus,
    /// What that means.
    pub system_status_category: TaskCategory,
    /// How urgent.
    pub priority: TaskPriority,
    /// Its workspace; null: the tenant.
    pub workspace_id: Option<WorkspaceId>,
    /// Who is to do it.
    pub assignee_id: Option<PrincipalId>,
    /// By when.
    pub due_date: Option<Timestamp>,
    /// What it is for.
    pub goal_id: Option<GoalId>,
    /// Values of the caller's own.
    pub custom_fields: Map<String, Value>,
    /// The newest fencing token; each claim has a greater one.
    pub fencing_token: i64,
    /// How many verifications have failed since one passed.
    pub consecutive_failures: i64,
    /// Grows with every change.
    pub version: i64,
    /// Who created it.
    pub created_by: PrincipalId,
    /// When.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

states! {
    /// Where a claim stands.
    ClaimStatus {
        /// It holds the task.
        Active = "active",
        /// Its holder gave the task back.
        Released = "released",
        /// Its lease ended.
        Expired = "expired",
        /// Its task was completed under it.
        Completed = "completed",
    }
}

/// A wish to work on a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskClaim {
    /// For how long, 10 to 86,400 seconds; 900 when absent. The holder extends it by claiming again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 86_400))]
    pub lease_seconds: Option<i64>,
}

/// The hold of one principal on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimView {
    /// Its id.
    pub id: ClaimId,
    /// On which task.
    pub task_id: TaskId,
    /// Who works on it.
    pub holder_id: PrincipalId,
    /// Greater than that of every earlier claim of the task: whoever guards what the task touches refuses smaller ones.
    pub fencing_token: i64,
    /// Where it stands.
    pub status: ClaimStatus,
    /// When its lease ends.
    pub expires_at: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Why something is ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Because {
    /// At most 1,000 characters; what looks like a secret does not reach the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_REASON_CHARS), regex(pattern = PROSE_PATTERN))]
    pub reason: Option<String>,
}

/// A task is done.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskComplete {
    /// The claim's fencing token; needed while somebody has claimed the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fencing_token: Option<i64>,
}

/// A new comment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommentCreate {
    /// 1 to 20,000 characters; only its length reaches the journal.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS), regex(pattern = SAID_PATTERN))]
    pub body: String,
}

/// A comment on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommentView {
    /// Its id.
    pub id: CommentId,
    /// On which task.
    pub task_id: TaskId,
    /// Who wrote it.
    pub author_id: PrincipalId,
    /// What it says.
    pub body: String,
    /// When it was written.
    pub created_at: Timestamp,
}

states! {
    /// Where a run stands.
    RunStatus {
        /// It runs.
        Running = "running",
        /// It reached its end.
        Succeeded = "succeeded",
        /// It did not.
        Failed = "failed",
        /// Somebody stopped it.
        Cancelled = "cancelled",
        /// It waits; another run goes on from here.
        Suspended = "suspended",
    }
}

/// A new run under a claim.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunStart {
    /// Under which claim; it must hold its task.
    pub claim_id: ClaimId,
    /// The claim's fencing token.
    pub fencing_token: i64,
    /// Which build of an agent runs it, 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_REVISION_CHARS), regex(pattern = NAME_PATTERN))]
    pub agent_revision_id: Option<String>,
}

/// A run reached its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunSucceed {
    /// Whether the task is thereby completed; false when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_task: Option<bool>,
    /// At most 1,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_REASON_CHARS), regex(pattern = PROSE_PATTERN))]
    pub reason: Option<String>,
}

/// A run waits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunSuspend {
    /// At most 1,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_REASON_CHARS), regex(pattern = PROSE_PATTERN))]
    pub reason: Option<String>,
    /// The approval that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for_approval_id: Option<crate::ApprovalId>,
}

/// One attempt at a claimed task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// At which task.
    pub task_id: TaskId,
    /// Under which claim.
    pub claim_id: ClaimId,
    /// 1, 2, … in its task.
    pub attempt: i64,
    /// The claim's.
    pub fencing_token: i64,
    /// Where it stands.
    pub status: RunStatus,
    /// Which build of an agent runs it.
    pub agent_revision_id: Option<String>,
    /// Why it ended.
    pub reason: Option<String>,
    /// The approval that it waits for.
    pub waiting_for_approval_id: Option<crate::ApprovalId>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

states! {
    /// Where a verification stands.
    VerificationStatus {
        /// Its checks run.
        Running = "running",
        /// They passed.
        Passed = "passed",
        /// One did not.
        Failed = "failed",
    }
}

/// A new round of checks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerificationStart {
    /// What made it start, 1 to 100 characters; `manual` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_CHECK_CHARS), regex(pattern = NAME_PATTERN))]
    pub trigger: Option<String>,
    /// The checks by name: 1 to 50, each 1 to 100 characters, none twice.
    #[schemars(length(min = 1, max = MAX_CHECKS_OF_VERIFICATION), inner(length(min = 1, max = MAX_CHECK_CHARS), regex(pattern = NAME_PATTERN)))]
    #[schemars(extend("uniqueItems" = true))]
    pub checks: Vec<String>,
}

/// What became of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckResult {
    /// One of the verification's checks.
    pub check: String,
    /// Whether it passed.
    pub passed: bool,
}

/// All checks passed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerificationPass {
    /// What became of each; when absent, each passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<CheckResult>>,
    /// An artifact that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<ArtifactId>,
}

/// A check failed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerificationFail {
    /// What became of each; when absent, only the failed one is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<CheckResult>>,
    /// Which check failed: one of the verification's.
    #[schemars(length(min = 1, max = MAX_CHECK_CHARS))]
    pub failed_check: String,
    /// Why, at most 1,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_REASON_CHARS), regex(pattern = PROSE_PATTERN))]
    pub reason: Option<String>,
}

/// One round of checks on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationView {
    /// Its id.
    pub id: VerificationId,
    /// On which task.
    pub task_id: TaskId,
    /// 1, 2, … in its task.
    pub attempt: i64,
    /// Where it stands.
    pub status: VerificationStatus,
    /// What made it start.
    pub trigger: String,
    /// The checks by name.
    pub checks: Vec<String>,
    /// What became of them.
    pub results: Vec<CheckResult>,
    /// Which check failed.
    pub failed_check: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// An artifact that shows it.
    pub artifact_id: Option<ArtifactId>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}
