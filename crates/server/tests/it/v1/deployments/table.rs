//! The table of transitions: what happens to a deployment, what that tells, and where it stands at last.

use super::preview;
use crate::support::{Value, json};

/// One thing that happens to a deployment.
#[derive(Clone, Copy, Debug)]
pub enum Happens {
    /// A run of this kind begins and ends so.
    Run(&'static str, &'static str, Plan),
    /// A run of this kind begins.
    Begun(&'static str),
    /// A run of this kind begins, and its runner is heard of no more.
    Silence(&'static str),
    /// Nobody begins a run.
    Nothing,
    /// A person does this.
    Person(&'static str),
    /// A newer preview of the same pull request.
    Newer,
}

/// What a plan reports.
#[derive(Clone, Copy, Debug)]
pub enum Plan {
    /// No summary.
    None,
    /// Changes.
    Changes,
    /// Measured: no changes.
    NoChanges,
    /// Counts, and no verdict.
    Unmeasured,
    /// Not everything was looked at.
    Incomplete,
}

impl Plan {
    /// As it is reported.
    pub fn summary(self) -> Option<Value> {
        let summary = |add: i64, has_changes: Option<bool>, gaps: &[&str]| json!({ "add": add, "change": 0, "destroy": 0, "hasChanges": has_changes, "complete": gaps.is_empty(), "gapReasons": gaps });
        match self {
            Self::None => None,
            Self::Changes => Some(summary(3, Some(true), &[])),
            Self::NoChanges => Some(summary(0, Some(false), &[])),
            Self::Unmeasured => Some(summary(0, None, &[])),
            Self::Incomplete => Some(summary(0, Some(false), &["a module was not read"])),
        }
    }
}

/// A row of the table.
pub struct Way {
    /// What it says.
    pub name: &'static str,
    /// The stack's `prPlanMode`.
    pub previews: &'static str,
    /// The deployment.
    pub new: fn() -> Value,
    pub happens: &'static [Happens],
    /// What is told after `deployment.created`.
    pub told: &'static [&'static str],
    /// Where it stands at last.
    pub ends: &'static str,
}

use Happens::{Begun, Newer, Nothing, Person, Run, Silence};

const PLANNED: Happens = Run("plan", "succeeded", Plan::Changes);
const FAILED: Happens = Run("plan", "failed", Plan::None);

fn plan() -> Value {
    json!({})
}

fn plan_only() -> Value {
    json!({ "readOnly": true })
}

fn unlocked() -> Value {
    json!({ "mode": "plan_unlocked" })
}

fn of_pull_request() -> Value {
    preview(7)
}

fn planned_of_pull_request() -> Value {
    json!({ "origin": { "kind": "pull_request", "number": 7 } })
}

fn raw() -> Value {
    json!({ "mode": "raw" })
}

const fn way(
    name: &'static str,
    new: fn() -> Value,
    happens: &'static [Happens],
    told: &'static [&'static str],
    ends: &'static str,
) -> Way {
    Way { name, previews: "auto", new, happens, told, ends }
}

const fn manual(
    name: &'static str,
    happens: &'static [Happens],
    told: &'static [&'static str],
    ends: &'static str,
) -> Way {
    Way { name, previews: "manual", new: of_pull_request, happens, told, ends }
}

/// Every row, and what is near to one.
pub const WAYS: &[Way] = &[
    way("a plan with changes parks", plan, &[PLANNED], &["deployment.awaiting_confirmation"], "awaiting_confirmation"),
    way(
        "a plan that was not measured parks",
        plan,
        &[Run("plan", "succeeded", Plan::Unmeasured)],
        &["deployment.awaiting_confirmation"],
        "awaiting_confirmation",
    ),
    way(
        "a plan without a summary parks",
        plan,
        &[Run("plan", "succeeded", Plan::None)],
        &["deployment.awaiting_confirmation"],
        "awaiting_confirmation",
    ),
    way(
        "an applied deployment succeeds",
        plan,
        &[PLANNED, Person("confirm"), Run("apply", "succeeded", Plan::None)],
        &["deployment.awaiting_confirmation", "deployment.confirmed", "deployment.succeeded"],
        "finished",
    ),
    way(
        "a plan without changes ends without an apply",
        plan,
        &[Run("plan", "succeeded", Plan::NoChanges)],
        &["deployment.succeeded"],
        "finished",
    ),
    way(
        "a plan that says no changes of what it has not all looked at ends as its tool's verdict has it",
        plan,
        &[Run("plan", "succeeded", Plan::Incomplete)],
        &["deployment.succeeded"],
        "finished",
    ),
    way("what only plans ends with its plan", plan_only, &[PLANNED], &["deployment.succeeded"], "finished"),
    way("a failed plan fails it", plan, &[FAILED], &["deployment.failed"], "failed"),
    way(
        "a failed apply fails it",
        plan,
        &[PLANNED, Person("confirm"), Run("apply", "failed", Plan::None)],
        &["deployment.awaiting_confirmation", "deployment.confirmed", "deployment.failed"],
        "failed",
    ),
    way("a silent runner fails it", plan, &[Silence("plan")], &["deployment.failed"], "failed"),
    way("what is not started fails", plan, &[Nothing], &["deployment.failed"], "failed"),
    way(
        "an apply that is not started fails it",
        plan,
        &[PLANNED, Person("confirm"), Nothing],
        &["deployment.awaiting_confirmation", "deployment.confirmed", "deployment.failed"],
        "failed",
    ),
    way(
        "a silent apply fails it",
        plan,
        &[PLANNED, Person("confirm"), Silence("apply")],
        &["deployment.awaiting_confirmation", "deployment.confirmed", "deployment.failed"],
        "failed",
    ),
    way(
        "a failed plan for a part of what waits fails it",
        plan,
        &[PLANNED, FAILED],
        &["deployment.awaiting_confirmation", "deployment.failed"],
        "failed",
    ),
    way(
        "a silent plan for a part of what waits fails it",
        plan,
        &[PLANNED, Silence("plan")],
        &["deployment.awaiting_confirmation", "deployment.failed"],
        "failed",
    ),
    way("it is cancelled", plan, &[Person("cancel")], &["deployment.cancelled"], "cancelled"),
    way(
        "what waits is cancelled",
        plan,
        &[PLANNED, Person("cancel")],
        &["deployment.awaiting_confirmation", "deployment.cancelled"],
        "cancelled",
    ),
    way("a person skips it", plan, &[Person("skip")], &["deployment.skipped"], "skipped"),
    way(
        "a person skips what waits",
        plan,
        &[PLANNED, Person("skip")],
        &["deployment.awaiting_confirmation", "deployment.skipped"],
        "skipped",
    ),
    way(
        "a plan of a pull request is none of its previews",
        planned_of_pull_request,
        &[Newer, PLANNED],
        &["deployment.awaiting_confirmation"],
        "awaiting_confirmation",
    ),
    way("a preview succeeds", unlocked, &[PLANNED], &["preview.succeeded"], "finished"),
    way(
        "a preview without changes succeeds",
        unlocked,
        &[Run("plan", "succeeded", Plan::NoChanges)],
        &["preview.succeeded"],
        "finished",
    ),
    way("a preview fails", unlocked, &[FAILED], &["preview.failed"], "failed"),
    way("a preview's silent runner fails it", unlocked, &[Silence("plan")], &["preview.failed"], "failed"),
    way("a preview that is not started fails", unlocked, &[Nothing], &["preview.failed"], "failed"),
    way("a preview is cancelled", unlocked, &[Person("cancel")], &["preview.cancelled"], "cancelled"),
    way("a person skips a preview", unlocked, &[Person("skip")], &["preview.skipped"], "skipped"),
    way("a newer preview retires it", of_pull_request, &[Newer], &["preview.auto_skipped"], "skipped"),
    way(
        "a newer preview leaves what has ended",
        of_pull_request,
        &[PLANNED, Newer],
        &["preview.succeeded"],
        "finished",
    ),
    manual(
        "a preview of a manual stack opens parked",
        &[],
        &["preview.awaiting_confirmation"],
        "awaiting_confirmation",
    ),
    manual(
        "a parked preview is confirmed and succeeds",
        &[Person("confirm"), PLANNED],
        &["preview.awaiting_confirmation", "preview.confirmed", "preview.succeeded"],
        "finished",
    ),
    manual(
        "a parked preview is confirmed and does not start",
        &[Person("confirm"), Nothing],
        &["preview.awaiting_confirmation", "preview.confirmed", "preview.failed"],
        "failed",
    ),
    manual(
        "a parked preview is cancelled",
        &[Person("cancel")],
        &["preview.awaiting_confirmation", "preview.cancelled"],
        "cancelled",
    ),
    manual(
        "a person skips a parked preview",
        &[Person("skip")],
        &["preview.awaiting_confirmation", "preview.skipped"],
        "skipped",
    ),
    Way {
        previews: "manual",
        ..way("a preview of no pull request starts at once", unlocked, &[PLANNED], &["preview.succeeded"], "finished")
    },
    Way {
        previews: "manual",
        ..way(
            "a plan of a pull request does not open parked",
            planned_of_pull_request,
            &[Nothing],
            &["deployment.failed"],
            "failed",
        )
    },
    manual(
        "a parked preview is retired once",
        &[Newer, Newer],
        &["preview.awaiting_confirmation", "preview.auto_skipped"],
        "skipped",
    ),
    way(
        "a preview is promoted once",
        of_pull_request,
        &[PLANNED, Person("promote")],
        &["preview.succeeded", "pull_request.promoted"],
        "finished",
    ),
    way(
        "a command is told at its submission, and its end is the deployment's",
        raw,
        &[Run("command", "succeeded", Plan::None)],
        &["run_command.executed", "deployment.succeeded"],
        "finished",
    ),
    way(
        "a command fails",
        raw,
        &[Run("command", "failed", Plan::None)],
        &["run_command.executed", "deployment.failed"],
        "failed",
    ),
    way(
        "a command's silent runner fails it",
        raw,
        &[Silence("command")],
        &["run_command.executed", "deployment.failed"],
        "failed",
    ),
    way(
        "a submitted command is cancelled",
        raw,
        &[Begun("command"), Person("cancel")],
        &["run_command.executed", "deployment.cancelled"],
        "cancelled",
    ),
    way("a command that is not submitted fails", raw, &[Nothing], &["deployment.failed"], "failed"),
];
