//! Stacks, deployments and their runs, and findings, on the wire.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{LINE_PATTERN, MAX_NAME_CHARS, NAME_PATTERN, PROSE_PATTERN};
use crate::resources::{MAX_URI_CHARS, URI_PATTERN};
use crate::work::states;
use crate::{DeploymentId, DeploymentRunId, PrincipalId, StackId, Timestamp, WorkspaceId};

/// Most labels of a stack.
pub const MAX_LABELS: usize = 50;
/// Longest key of a label, in characters.
pub const MAX_LABEL_KEY_CHARS: usize = 63;
/// Longest value of a label, in characters.
pub const MAX_LABEL_VALUE_CHARS: usize = 200;
/// Most stacks that one depends on.
pub const MAX_DEPENDENCIES: usize = 100;
/// Longest path or repository, in characters.
pub const MAX_PATH_CHARS: usize = 500;
/// Longest hash of a commit, in characters.
pub const MAX_COMMIT_CHARS: usize = 100;
/// Longest message of a commit or an error, in characters.
pub const MAX_MESSAGE_CHARS: usize = 10_000;
/// Most reasons for which a plan is incomplete.
pub const MAX_GAP_REASONS: usize = 20;
/// Longest text of a command, in bytes.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// Largest count in a plan.
pub const MAX_COUNT: i64 = 1_000_000_000;

/// Whether a text can be the key of a label: letters, digits, `.`, `_`, `-` and `/`, the first and last a letter or digit.
pub fn is_label_key(key: &str) -> bool {
    let bytes = key.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= MAX_LABEL_KEY_CHARS
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/'))
}

states! {
    /// Whether previews of pull requests start by themselves.
    PrPlanMode {
        /// They do.
        Auto = "auto",
        /// Each waits for a confirmation first.
        Manual = "manual",
    }
}

/// A stack that must come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dependency {
    /// Which stack.
    pub stack_id: StackId,
    /// Whether an apply there starts a deployment here; false when absent.
    #[serde(default)]
    pub trigger: bool,
}

/// A new stack.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StackCreate {
    /// 1 to 200 characters.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// Its workspace; absent: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// At most 50 labels, by which notifications are routed.
    #[serde(default)]
    #[schemars(extend("maxProperties" = MAX_LABELS, "propertyNames" = label_key()), inner(length(max = MAX_LABEL_VALUE_CHARS), regex(pattern = LINE_PATTERN)))]
    pub labels: BTreeMap<String, String>,
    /// Where its code is: `github.com/acme/infra`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_PATH_CHARS), regex(pattern = NAME_PATTERN))]
    pub repository: Option<String>,
    /// Where in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_PATH_CHARS), regex(pattern = NAME_PATTERN))]
    pub path: Option<String>,
    /// The stacks that must come first, at most 100, none twice.
    #[serde(default)]
    #[schemars(length(max = MAX_DEPENDENCIES))]
    pub depends_on: Vec<Dependency>,
    /// `auto` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_plan_mode: Option<PrPlanMode>,
}

/// Changes to a stack; what is absent stays, and null takes away.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StackPatch {
    /// 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: Option<String>,
    /// Another workspace: the stack moves with its deployments, and readers of the one it leaves are told.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<WorkspaceId>")]
    pub workspace_id: Option<Option<WorkspaceId>>,
    /// All of them anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = MAX_LABELS, "propertyNames" = label_key()), inner(inner(length(max = MAX_LABEL_VALUE_CHARS), regex(pattern = LINE_PATTERN))))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Where its code is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<String>", length(min = 1, max = MAX_PATH_CHARS), regex(pattern = NAME_PATTERN))]
    pub repository: Option<Option<String>>,
    /// Where in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<String>", length(min = 1, max = MAX_PATH_CHARS), regex(pattern = NAME_PATTERN))]
    pub path: Option<Option<String>>,
    /// All of them anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_DEPENDENCIES))]
    pub depends_on: Option<Vec<Dependency>>,
    /// Whether previews of pull requests start by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_plan_mode: Option<PrPlanMode>,
}

pub(crate) fn label_key() -> serde_json::Value {
    serde_json::json!({ "pattern": "^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$" })
}

/// Something that is deployed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackView {
    /// Its id.
    pub id: StackId,
    /// Its name.
    pub name: String,
    /// Its workspace; null: the tenant.
    pub workspace_id: Option<WorkspaceId>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Where its code is.
    pub repository: Option<String>,
    /// Where in the repository.
    pub path: Option<String>,
    /// The stacks that must come first; one of them may be gone.
    pub depends_on: Vec<Dependency>,
    /// Whether previews of pull requests start by themselves.
    pub pr_plan_mode: PrPlanMode,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
}

states! {
    /// What a deployment does.
    DeploymentMode {
        /// Plans, waits for a confirmation, applies.
        Plan = "plan",
        /// Plans only, beside whatever else happens to the stack: a preview.
        PlanUnlocked = "plan_unlocked",
        /// Runs a command.
        Raw = "raw",
    }
}

states! {
    /// Where a deployment stands.
    DeploymentStatus {
        /// Its next run has not started.
        Pending = "pending",
        /// A run is under way.
        Running = "running",
        /// Somebody has to say whether it goes on.
        AwaitingConfirmation = "awaiting_confirmation",
        /// It has done what it was to do.
        Finished = "finished",
        /// It has not.
        Failed = "failed",
        /// Somebody stopped it.
        Cancelled = "cancelled",
        /// It was left out.
        Skipped = "skipped",
    }
}

impl DeploymentStatus {
    /// Whether nothing more becomes of it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled | Self::Skipped)
    }
}

/// What a caller says of where a deployment comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum OriginGiven {
    /// Somebody wanted it.
    Manual {},
    /// A branch was pushed to.
    Push {
        /// The branch, at most 500 characters.
        #[serde(default)]
        #[schemars(length(max = MAX_PATH_CHARS), regex(pattern = LINE_PATTERN))]
        branch: Option<String>,
    },
    /// A pull request was opened or pushed to.
    PullRequest {
        /// Its number in the repository.
        #[schemars(range(min = 1, max = MAX_COUNT))]
        number: i64,
        /// Its title, at most 200 characters.
        #[serde(default)]
        #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = LINE_PATTERN))]
        title: Option<String>,
        /// The branch that it would merge, at most 500 characters.
        #[serde(default)]
        #[schemars(length(max = MAX_PATH_CHARS), regex(pattern = LINE_PATTERN))]
        branch: Option<String>,
        /// Its page.
        #[serde(default)]
        #[schemars(length(min = 1, max = MAX_URI_CHARS), regex(pattern = URI_PATTERN))]
        url: Option<String>,
    },
}

/// Where a deployment comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Origin {
    /// Somebody wanted it.
    Manual {},
    /// A branch was pushed to.
    Push {
        /// The branch.
        branch: Option<String>,
    },
    /// A pull request was opened, pushed to or promoted.
    PullRequest {
        /// Its number in the repository.
        number: i64,
        /// Its title.
        title: Option<String>,
        /// The branch that it would merge.
        branch: Option<String>,
        /// Its page.
        url: Option<String>,
    },
    /// A stack that this one depends on was applied.
    Dependency {
        /// Which stack.
        stack_id: StackId,
        /// By which deployment.
        deployment_id: DeploymentId,
    },
}

impl From<OriginGiven> for Origin {
    fn from(given: OriginGiven) -> Self {
        match given {
            OriginGiven::Manual {} => Self::Manual {},
            OriginGiven::Push { branch } => Self::Push { branch },
            OriginGiven::PullRequest { number, title, branch, url } => Self::PullRequest { number, title, branch, url },
        }
    }
}

impl Origin {
    /// The number of its pull request.
    pub fn pull_request(&self) -> Option<i64> {
        match self {
            Self::PullRequest { number, .. } => Some(*number),
            Self::Manual {} | Self::Push { .. } | Self::Dependency { .. } => None,
        }
    }
}

/// What a plan run reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanSummary {
    /// How much would be added.
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub add: i64,
    /// How much would be changed.
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub change: i64,
    /// How much would be destroyed.
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub destroy: i64,
    /// The tool's own verdict, not derived from the counts; null when it was not measured.
    #[serde(default)]
    pub has_changes: Option<bool>,
    /// Whether everything was looked at.
    pub complete: bool,
    /// Why not, at most 20 reasons of 200 characters.
    #[serde(default)]
    #[schemars(length(max = MAX_GAP_REASONS), inner(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN)))]
    pub gap_reasons: Vec<String>,
}

/// A new deployment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeploymentCreate {
    /// Of which stack.
    pub stack_id: StackId,
    /// What it does.
    pub mode: DeploymentMode,
    /// Which commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_COMMIT_CHARS), regex(pattern = NAME_PATTERN))]
    pub commit_sha: Option<String>,
    /// What that says, at most 10,000 characters; redacted and cut in events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_MESSAGE_CHARS), regex(pattern = PROSE_PATTERN))]
    pub commit_message: Option<String>,
    /// Where it comes from; `manual` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginGiven>,
    /// Whether it ends with its plan; false when absent, and always true for `plan_unlocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Its page in the tool that deploys; absent: ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_URI_CHARS), regex(pattern = URI_PATTERN))]
    pub url: Option<String>,
}

/// A deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentView {
    /// Its id.
    pub id: DeploymentId,
    /// Of which stack.
    pub stack_id: StackId,
    /// What it does.
    pub mode: DeploymentMode,
    /// Where it stands.
    pub status: DeploymentStatus,
    /// Whether it ends with its plan.
    pub read_only: bool,
    /// Which commit.
    pub commit_sha: Option<String>,
    /// What that says.
    pub commit_message: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// Why it was left out, when nobody in person wanted that.
    pub skipped_reason: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// What its plan says: the one that it applies, or else its latest.
    pub plan_summary: Option<PlanSummary>,
    /// Who let it go on.
    pub confirmed_by: Option<PrincipalId>,
    /// Whether its pull request was promoted.
    pub promoted: bool,
    /// Its page.
    pub url: Option<String>,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

states! {
    /// What a run does.
    RunKind {
        /// Finds out what would change.
        Plan = "plan",
        /// Changes it.
        Apply = "apply",
        /// Runs a command.
        Command = "command",
    }
}

states! {
    /// Where a run stands.
    DeploymentRunStatus {
        /// It is under way.
        Running = "running",
        /// It did what it was to do.
        Succeeded = "succeeded",
        /// It did not, or its runner fell silent.
        Failed = "failed",
        /// Its deployment ended before it.
        Cancelled = "cancelled",
    }
}

/// A run that a runner starts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeploymentRunStart {
    /// What it does.
    pub kind: RunKind,
    /// Of an apply: the plan that it executes; absent: the latest that had succeeded at the confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_run_id: Option<DeploymentRunId>,
    /// Of a command: its text, at most 64 KiB, of which only the length is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
}

/// The text of a command. It is counted and dropped: no log, error, event or row may hold it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Command(pub String);

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// The end of a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeploymentRunComplete {
    /// How it ended.
    pub status: RunOutcome,
    /// Of a plan: what it found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_summary: Option<PlanSummary>,
    /// Of a failure: why, at most 10,000 characters; redacted and cut in events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_MESSAGE_CHARS), regex(pattern = PROSE_PATTERN))]
    pub error: Option<String>,
}

states! {
    /// How a run ends.
    RunOutcome {
        /// It did what it was to do.
        Succeeded = "succeeded",
        /// It did not.
        Failed = "failed",
    }
}

/// A run of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentRunView {
    /// Its id.
    pub id: DeploymentRunId,
    /// Of which deployment.
    pub deployment_id: DeploymentId,
    /// What it does.
    pub kind: RunKind,
    /// Where it stands.
    pub status: DeploymentRunStatus,
    /// Of an apply: the plan that it executes.
    pub plan_run_id: Option<DeploymentRunId>,
    /// Of a command: how many bytes of UTF-8 it had.
    pub command_bytes: Option<i64>,
    /// Of a plan: what it found.
    pub plan_summary: Option<PlanSummary>,
    /// Why it failed.
    pub error: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When its runner was heard of last.
    pub heartbeat_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// How many findings of each kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingCounts {
    /// Groups of stacks that depend on one another; null: not all were looked for.
    pub cycles: Option<i64>,
    /// Dependencies on stacks that are gone; null: not all were looked for.
    pub orphans: Option<i64>,
    /// Places in a repository that several stacks have.
    pub duplicates: i64,
}

/// A dependency on a stack that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// The stack that depends.
    pub stack_id: StackId,
    /// On which one, that is gone.
    pub missing_stack_id: StackId,
}

/// A place in a repository that several stacks have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Duplicate {
    /// The repository.
    pub repository: String,
    /// Where in it; null: its root.
    pub path: Option<String>,
    /// The stacks.
    pub stack_ids: Vec<StackId>,
}

/// What is wrong with an org's stacks as they depend on one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingsView {
    /// How much of each.
    pub counts: FindingCounts,
    /// Whether all cycles were looked for.
    pub cycles_complete: bool,
    /// Whether all orphans were looked for.
    pub orphans_complete: bool,
    /// Whether all duplicates were: always.
    pub duplicates_complete: bool,
    /// The first cycles that were found, at most 100, each with its stacks.
    pub cycles: Vec<Vec<StackId>>,
    /// The first orphans, at most 100.
    pub orphans: Vec<Orphan>,
    /// The first duplicates, at most 100.
    pub duplicates: Vec<Duplicate>,
}
