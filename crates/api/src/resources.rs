//! Artifacts, goals, rules, projects and skill invocations on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::access::{MAX_NAME_CHARS, NAME_PATTERN, PROSE_PATTERN};
use crate::work::{MAX_TEXT_CHARS, states};
use crate::{
    ArtifactId, GoalId, PrincipalId, ProjectId, RuleId, RunId, SkillInvocationId, TaskId, Timestamp, WorkspaceId,
};

/// Longest URI, in characters.
pub const MAX_URI_CHARS: usize = 2_000;
/// Longest JSON of a rule's definition, in bytes.
pub const MAX_DEFINITION_BYTES: usize = 64 * 1024;
/// Longest word for a kind, a version or a code, in characters.
pub const MAX_WORD_CHARS: usize = 100;
/// How often a skill may be tried, in all.
pub const ATTEMPTS: std::ops::RangeInclusive<i64> = 1..=100;
/// How often a skill is tried when nothing was asked.
pub const DEFAULT_ATTEMPTS: i64 = 3;
/// How a key looks.
pub const KEY_PATTERN: &str = "^[a-z][a-z0-9._/-]{0,99}$";
/// How a URI looks: no white space and no control character.
pub const URI_PATTERN: &str = r"^[^\s\x00-\x1f\x7f-\x9f]+$";

/// Whether a text can be the key of a rule or project, or a skill's name: 1 to 100 lower-case letters, digits, `.`, `_`,
/// `-` and `/`, the first a letter.
pub fn is_key(key: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-' | b'/');
    (1..=MAX_WORD_CHARS).contains(&key.len())
        && key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.bytes().all(inner)
}

/// Something that work has made. Courant keeps where it is, never its content.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArtifactCreate {
    /// What kind of thing, 1 to 100 characters.
    #[schemars(length(min = 1, max = MAX_WORD_CHARS), regex(pattern = NAME_PATTERN))]
    pub r#type: String,
    /// 1 to 200 characters.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// The task that it is of; absent: that of its run, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The run that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Its own workspace; absent: that of its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Where it is, at most 2,000 characters. In the event it is without whatever looks like a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_URI_CHARS), regex(pattern = URI_PATTERN))]
    pub uri: Option<String>,
    /// The artifact that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes_artifact_id: Option<ArtifactId>,
}

/// Something that work has made; it never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactView {
    /// Its id.
    pub id: ArtifactId,
    /// What kind of thing.
    pub r#type: String,
    /// Its name.
    pub name: String,
    /// The task that it is of.
    pub task_id: Option<TaskId>,
    /// The run that made it.
    pub run_id: Option<RunId>,
    /// Its own workspace, when it has one.
    pub workspace_id: Option<WorkspaceId>,
    /// Where it is.
    pub uri: Option<String>,
    /// The artifact that it replaces.
    pub supersedes_artifact_id: Option<ArtifactId>,
    /// Who recorded it.
    pub created_by: PrincipalId,
    /// When.
    pub created_at: Timestamp,
    /// Always 1: what was made is not changed, only replaced.
    pub version: i64,
}

states! {
    /// Where a goal stands.
    GoalStatus {
        /// It is pursued.
        Active = "active",
        /// It was reached.
        Achieved = "achieved",
        /// It was given up.
        Abandoned = "abandoned",
    }
}

/// A new goal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GoalCreate {
    /// 1 to 200 characters.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub title: String,
    /// At most 20,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = PROSE_PATTERN))]
    pub description: Option<String>,
    /// Its workspace; absent: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
}

/// Changes to a goal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GoalPatch {
    /// 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub title: Option<String>,
    /// At most 20,000 characters; null takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<String>", length(max = MAX_TEXT_CHARS), regex(pattern = PROSE_PATTERN))]
    pub description: Option<Option<String>>,
    /// Another workspace: the goal moves, and readers of the one it leaves are told.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<WorkspaceId>")]
    pub workspace_id: Option<Option<WorkspaceId>>,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<GoalStatus>,
}

/// What work is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoalView {
    /// Its id.
    pub id: GoalId,
    /// What is to be reached.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// Its workspace; null: the tenant.
    pub workspace_id: Option<WorkspaceId>,
    /// Where it stands.
    pub status: GoalStatus,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
}

states! {
    /// Where a rule stands.
    RuleStatus {
        /// It counts.
        Enabled = "enabled",
        /// It does not count for now.
        Disabled = "disabled",
        /// It counts no more.
        Archived = "archived",
    }
}

/// A new rule; it is disabled until it is enabled.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleCreate {
    /// Unique in the tenant and for ever the same: a lower-case letter, then letters, digits, `.`, `_`, `-` and `/`.
    #[schemars(regex(pattern = KEY_PATTERN))]
    pub key: String,
    /// Its workspace; absent: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// What it says: JSON of its evaluator's own, at most 64 KiB.
    pub definition: Map<String, Value>,
}

/// Changes to a rule.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RulePatch {
    /// Another workspace: the rule moves, and readers of the one it leaves are told.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<WorkspaceId>")]
    pub workspace_id: Option<Option<WorkspaceId>>,
    /// What it says now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Map<String, Value>>,
}

/// A rule by which work is made. Courant keeps it; evaluating it is somebody else's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleView {
    /// Its id.
    pub id: RuleId,
    /// Unique in the tenant.
    pub key: String,
    /// Its workspace; null: the tenant.
    pub workspace_id: Option<WorkspaceId>,
    /// What it says.
    pub definition: Map<String, Value>,
    /// Where it stands.
    pub status: RuleStatus,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
}

states! {
    /// Where a project stands.
    ProjectStatus {
        /// Work is done for it.
        Active = "active",
        /// It is over.
        Archived = "archived",
    }
}

/// A new project.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectCreate {
    /// Unique in the tenant and for ever the same: a lower-case letter, then letters, digits, `.`, `_`, `-` and `/`.
    #[schemars(regex(pattern = KEY_PATTERN))]
    pub key: String,
    /// 1 to 200 characters.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// Its workspace; absent: the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
}

/// Changes to a project.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectPatch {
    /// 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = NAME_PATTERN))]
    pub name: Option<String>,
    /// Another workspace: the project moves, and readers of the one it leaves are told.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::patch::nullable")]
    #[schemars(with = "Option<WorkspaceId>")]
    pub workspace_id: Option<Option<WorkspaceId>>,
}

/// A set of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectView {
    /// Its id.
    pub id: ProjectId,
    /// Unique in the tenant.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its workspace; null: the tenant.
    pub workspace_id: Option<WorkspaceId>,
    /// Where it stands.
    pub status: ProjectStatus,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
}

states! {
    /// Where a skill invocation stands.
    SkillStatus {
        /// It waits for somebody to do it.
        Requested = "requested",
        /// Somebody does it.
        Claimed = "claimed",
        /// It is done.
        Succeeded = "succeeded",
        /// It was tried in vain.
        Failed = "failed",
        /// Nobody wants it any more.
        Cancelled = "cancelled",
    }
}

/// A wish that a skill be used for a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillInvoke {
    /// For which task.
    pub task_id: TaskId,
    /// Which skill, spelled as a key is.
    #[schemars(regex(pattern = KEY_PATTERN))]
    pub skill: String,
    /// Which version of it, 1 to 100 characters.
    #[schemars(length(min = 1, max = MAX_WORD_CHARS), regex(pattern = NAME_PATTERN))]
    pub skill_version: String,
    /// How often it is tried, 1 to 100; 3 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<i64>,
}

/// Another try, later.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillRetry {
    /// What went wrong, a word of the skill's own: 1 to 100 characters.
    #[schemars(length(min = 1, max = MAX_WORD_CHARS), regex(pattern = NAME_PATTERN))]
    pub error_code: String,
    /// Not before this time; now when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_at: Option<Timestamp>,
}

/// The end of all tries.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillFail {
    /// What went wrong, a word of the skill's own: 1 to 100 characters.
    #[schemars(length(min = 1, max = MAX_WORD_CHARS), regex(pattern = NAME_PATTERN))]
    pub error_code: String,
}

/// The use of a skill for a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillInvocationView {
    /// Its id.
    pub id: SkillInvocationId,
    /// For which task.
    pub task_id: TaskId,
    /// Which skill.
    pub skill: String,
    /// Which version of it.
    pub skill_version: String,
    /// Where it stands.
    pub status: SkillStatus,
    /// How often it has been claimed.
    pub attempt: i64,
    /// How often it may be.
    pub max_attempts: i64,
    /// Who does it.
    pub claimed_by: Option<PrincipalId>,
    /// What went wrong last.
    pub error_code: Option<String>,
    /// Not claimed before this time.
    pub available_at: Timestamp,
    /// Who wanted it.
    pub requested_by: PrincipalId,
    /// When.
    pub created_at: Timestamp,
    /// Grows with every change.
    pub version: i64,
}
