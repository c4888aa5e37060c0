//! `artifact.*`, `goal.*`, `rule.*`, `project.*`, `skill.*`

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Payload, event_types};
use crate::resources::GoalStatus;
use crate::{ArtifactId, RunId, TaskId};

/// Something that work has made.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactCreated {
    /// What kind of thing.
    pub r#type: String,
    /// Its name.
    pub name: String,
    /// The task that it is of.
    pub task_id: Option<TaskId>,
    /// The run that made it.
    pub run_id: Option<RunId>,
    /// Where it is; redacted.
    pub uri: Option<String>,
    /// The artifact that it replaces.
    pub supersedes_artifact_id: Option<ArtifactId>,
}

impl Payload for ArtifactCreated {
    fn example() -> Self {
        Self {
            r#type: "report".into(),
            name: "plan.txt".into(),
            task_id: Some(Uuid::nil().into()),
            run_id: None,
            uri: None,
            supersedes_artifact_id: None,
        }
    }
}

/// A goal after a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoalChange {
    /// What is to be reached.
    pub title: String,
    /// Where it stands.
    pub status: GoalStatus,
    /// Its version.
    pub version: i64,
}

impl Payload for GoalChange {
    fn example() -> Self {
        Self { title: "Fewer pages at night".into(), status: GoalStatus::Active, version: 1 }
    }
}

/// A rule after a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleChange {
    /// Unique in the tenant.
    pub key: String,
    /// Its version.
    pub version: i64,
}

impl Payload for RuleChange {
    fn example() -> Self {
        Self { key: "nightly".into(), version: 1 }
    }
}

/// A project after a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectChange {
    /// Unique in the tenant.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: i64,
}

impl Payload for ProjectChange {
    fn example() -> Self {
        Self { key: "billing".into(), name: "Billing".into(), version: 1 }
    }
}

/// A skill invocation after a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillChange {
    /// For which task.
    pub task_id: TaskId,
    /// Which skill.
    pub skill: String,
    /// Which version of it.
    pub skill_version: String,
    /// How often it has been claimed.
    pub attempt: i64,
    /// What went wrong last.
    pub error_code: Option<String>,
}

impl Payload for SkillChange {
    fn example() -> Self {
        Self {
            task_id: Uuid::nil().into(),
            skill: "translate".into(),
            skill_version: "1.2".into(),
            attempt: 1,
            error_code: None,
        }
    }
}

event_types! {
    ARTIFACT_CREATED = "artifact.created" on "artifact", v 1 ArtifactCreated, "An artifact was recorded.";
    GOAL_CREATED = "goal.created" on "goal", v 1 GoalChange, "A goal was created.";
    GOAL_UPDATED = "goal.updated" on "goal", v 1 GoalChange, "A goal was changed.";
    RULE_CREATED = "rule.created" on "rule", v 1 RuleChange, "A rule was created.";
    RULE_UPDATED = "rule.updated" on "rule", v 1 RuleChange, "A rule was changed.";
    RULE_ENABLED = "rule.enabled" on "rule", v 1 RuleChange, "A rule was enabled.";
    RULE_DISABLED = "rule.disabled" on "rule", v 1 RuleChange, "A rule was disabled.";
    RULE_ARCHIVED = "rule.archived" on "rule", v 1 RuleChange, "A rule was archived.";
    PROJECT_CREATED = "project.created" on "project", v 1 ProjectChange, "A project was created.";
    PROJECT_UPDATED = "project.updated" on "project", v 1 ProjectChange, "A project was changed.";
    PROJECT_ARCHIVED = "project.archived" on "project", v 1 ProjectChange, "A project was archived.";
    SKILL_REQUESTED = "skill.invocation_requested" on "skill_invocation", v 1 SkillChange, "A skill is wanted for a task.";
    SKILL_CLAIMED = "skill.invocation_claimed" on "skill_invocation", v 1 SkillChange, "Somebody uses a skill for a task.";
    SKILL_RETRY_SCHEDULED = "skill.invocation_retry_scheduled" on "skill_invocation", v 1 SkillChange, "A skill is to be tried again.";
    SKILL_SUCCEEDED = "skill.invocation_succeeded" on "skill_invocation", v 1 SkillChange, "A skill has done its work.";
    SKILL_FAILED = "skill.invocation_failed" on "skill_invocation", v 1 SkillChange, "A skill was tried in vain.";
    SKILL_CANCELLED = "skill.invocation_cancelled" on "skill_invocation", v 1 SkillChange, "A skill is not wanted any more.";
}
