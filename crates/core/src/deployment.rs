//! The life of a deployment: what each state allows, what a change tells, and what that is announced as.

use std::fmt;

use courant_api::deployments::{DeploymentMode, DeploymentStatus, PlanSummary, RunKind};

use crate::lifecycle::Illegal;

/// How long a runner may be silent, and a deployment wait for its next run.
pub const PATIENCE_SECONDS: i64 = 300;
/// Why a deployment failed whose runner fell silent.
pub const RUNNER_LOST: &str = "runner_lost";
/// Why a deployment failed whose next run never started.
pub const START_FAILED: &str = "start_failed";
/// Why a preview was left out: a newer one of its pull request took its place.
pub const SUPERSEDED: &str = "superseded";
/// Why a deployment was left out: its stack was deleted before its next run began.
pub const STACK_DELETED: &str = "stack_deleted";

/// What a change tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Told {
    /// Somebody has to say whether it goes on.
    Awaiting,
    /// Somebody has.
    Confirmed,
    /// It has done what it was to do.
    Succeeded,
    /// It has not.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// It was left out by itself.
    AutoSkipped,
    /// Somebody left it out.
    Skipped,
    /// A command was submitted.
    CommandExecuted,
    /// Its pull request was promoted.
    Promoted,
}

/// What may become of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A run starts.
    Start(RunKind),
    /// A plan run succeeded; whether the tool saw changes, if it looked.
    Planned(Option<bool>),
    /// An apply or a command succeeded.
    Applied,
    /// A run failed, or its runner fell silent.
    RunFailed,
    /// Its next run did not start in time.
    StartFailed,
    /// Somebody lets it go on.
    Confirm,
    /// Somebody stops it.
    Cancel,
    /// Somebody leaves it out.
    Skip,
    /// It is left out by itself, for a reason.
    LeaveOut,
    /// Its pull request is promoted.
    Promote,
}

impl Wish {
    /// As it is named to people.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Start(RunKind::Plan) => "start a plan",
            Self::Start(RunKind::Apply) => "start an apply",
            Self::Start(RunKind::Command) => "submit a command",
            Self::Planned(_) => "end a plan",
            Self::Applied => "end an apply",
            Self::RunFailed => "fail a run",
            Self::StartFailed => "fail to start",
            Self::Confirm => "confirm",
            Self::Cancel => "cancel",
            Self::Skip => "skip",
            Self::LeaveOut => "leave out",
            Self::Promote => "promote",
        }
    }
}

/// Where a deployment stands, as far as its life depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// What it does.
    pub mode: DeploymentMode,
    /// Where it stands.
    pub status: DeploymentStatus,
    /// The kind of its next run, or of the one under way.
    pub stage: RunKind,
    /// Whether it ends with its plan.
    pub read_only: bool,
    /// Whether its pull request was promoted.
    pub promoted: bool,
}

impl State {
    /// A new deployment. `gated`: it is the preview of a pull request that starts only once somebody says so.
    pub fn new(mode: DeploymentMode, read_only: bool, gated: bool) -> (Self, Option<Told>) {
        let is_preview = mode == DeploymentMode::PlanUnlocked;
        let stage = if mode == DeploymentMode::Raw { RunKind::Command } else { RunKind::Plan };
        let parked = is_preview && gated;
        let status = if parked { DeploymentStatus::AwaitingConfirmation } else { DeploymentStatus::Pending };
        let state = Self { mode, status, stage, read_only: read_only || is_preview, promoted: false };
        (state, parked.then_some(Told::Awaiting))
    }

    /// The state after a wish, and what that tells.
    pub fn after(self, wish: &Wish) -> Result<(Self, Option<Told>), Illegal> {
        use DeploymentStatus as S;
        let illegal = || Illegal { entity: self.entity(), state: self.status.as_str(), wish: wish.as_str() };
        let to = |status, told| Ok((Self { status, ..self }, told));
        match (self.status, wish) {
            (S::Pending, Wish::Start(RunKind::Command)) if self.stage == RunKind::Command => {
                to(S::Running, Some(Told::CommandExecuted))
            }
            (S::Pending, Wish::Start(kind)) if *kind == self.stage => to(S::Running, None),
            // What waits for its apply may be planned once more, for a part of it.
            (S::AwaitingConfirmation, Wish::Start(RunKind::Plan)) if self.mode == DeploymentMode::Plan => {
                to(S::AwaitingConfirmation, None)
            }
            (S::AwaitingConfirmation, Wish::Planned(_)) => to(S::AwaitingConfirmation, None),
            (S::Running, Wish::Planned(changes)) if self.stage == RunKind::Plan => {
                let parks = self.mode == DeploymentMode::Plan && !self.read_only && *changes != Some(false);
                if parks {
                    to(S::AwaitingConfirmation, Some(Told::Awaiting))
                } else {
                    to(S::Finished, terminal(S::Finished, false))
                }
            }
            (S::Running, Wish::Applied) if self.stage != RunKind::Plan => to(S::Finished, terminal(S::Finished, false)),
            (S::Running | S::AwaitingConfirmation, Wish::RunFailed) | (S::Pending, Wish::StartFailed) => {
                to(S::Failed, terminal(S::Failed, false))
            }
            (S::AwaitingConfirmation, Wish::Confirm) => {
                let stage = if self.mode == DeploymentMode::Plan { RunKind::Apply } else { self.stage };
                Ok((Self { status: S::Pending, stage, ..self }, Some(Told::Confirmed)))
            }
            (S::Pending | S::Running | S::AwaitingConfirmation, Wish::Cancel) => {
                to(S::Cancelled, terminal(S::Cancelled, false))
            }
            (S::Pending | S::AwaitingConfirmation, Wish::Skip) => to(S::Skipped, terminal(S::Skipped, false)),
            (S::Pending | S::Running | S::AwaitingConfirmation, Wish::LeaveOut) => {
                to(S::Skipped, terminal(S::Skipped, true))
            }
            (S::Pending | S::Running | S::AwaitingConfirmation | S::Finished, Wish::Promote)
                if self.mode == DeploymentMode::PlanUnlocked && !self.promoted =>
            {
                Ok((Self { promoted: true, ..self }, Some(Told::Promoted)))
            }
            _ => Err(illegal()),
        }
    }

    fn entity(self) -> &'static str {
        match (self.mode, self.promoted) {
            (DeploymentMode::Plan, _) => "deployment",
            (DeploymentMode::PlanUnlocked, false) => "preview",
            (DeploymentMode::PlanUnlocked, true) => "promoted preview",
            (DeploymentMode::Raw, _) => "command's deployment",
        }
    }
}

/// What the end of a deployment tells; none: it has not ended. `has_reason`: it was left out, and not by a person.
pub fn terminal(status: DeploymentStatus, has_reason: bool) -> Option<Told> {
    match status {
        DeploymentStatus::Finished => Some(Told::Succeeded),
        DeploymentStatus::Failed => Some(Told::Failed),
        DeploymentStatus::Cancelled => Some(Told::Cancelled),
        DeploymentStatus::Skipped if has_reason => Some(Told::AutoSkipped),
        DeploymentStatus::Skipped => Some(Told::Skipped),
        DeploymentStatus::Pending | DeploymentStatus::Running | DeploymentStatus::AwaitingConfirmation => None,
    }
}

/// The journal's type for what a deployment of this mode tells: previews have their own of each.
pub const fn event_type(mode: DeploymentMode, told: Told) -> &'static str {
    let preview = matches!(mode, DeploymentMode::PlanUnlocked);
    match told {
        Told::Awaiting if preview => "preview.awaiting_confirmation",
        Told::Awaiting => "deployment.awaiting_confirmation",
        Told::Confirmed if preview => "preview.confirmed",
        Told::Confirmed => "deployment.confirmed",
        Told::Succeeded if preview => "preview.succeeded",
        Told::Succeeded => "deployment.succeeded",
        Told::Failed if preview => "preview.failed",
        Told::Failed => "deployment.failed",
        Told::Cancelled if preview => "preview.cancelled",
        Told::Cancelled => "deployment.cancelled",
        Told::AutoSkipped if preview => "preview.auto_skipped",
        Told::AutoSkipped => "deployment.auto_skipped",
        Told::Skipped if preview => "preview.skipped",
        Told::Skipped => "deployment.skipped",
        Told::CommandExecuted => "run_command.executed",
        Told::Promoted => "pull_request.promoted",
    }
}

/// Why the deployment of a dependent stack does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTriggered {
    /// Its stack is already in the chain of those that started one another.
    Cycle,
    /// The chain has as many stacks as one may have.
    TooLong,
    /// It has a deployment that has not ended.
    Active,
}

/// Most stacks that start one another.
const MAX_CHAIN: usize = 32;

impl fmt::Display for NotTriggered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cycle => "dependency_cycle",
            Self::TooLong => "chain_too_long",
            Self::Active => "deployment_active",
        })
    }
}

/// Whether an apply starts the deployment of a dependent stack. `chain`: the stacks whose applies have led to this one, its own
/// included.
pub fn triggers<S: PartialEq>(chain: &[S], dependent: &S, has_active: bool) -> Result<(), NotTriggered> {
    if chain.contains(dependent) {
        Err(NotTriggered::Cycle)
    } else if chain.len() >= MAX_CHAIN {
        Err(NotTriggered::TooLong)
    } else if has_active {
        Err(NotTriggered::Active)
    } else {
        Ok(())
    }
}

/// Whether a plan is proof that nothing changes: a complete one, measured, that says so.
pub fn proves_no_changes(plan: Option<&PlanSummary>) -> bool {
    plan.is_some_and(|plan| plan.complete && plan.has_changes == Some(false))
}

#[cfg(test)]
mod tests;
