//! The lives of tasks, claims, runs, verifications, approvals, rules, projects and skill invocations: what each state allows.
//!
//! A life is one function from a state and a wish to the next state. It must never look at who wishes: that is the
//! gates' to say.

use std::fmt;

use courant_api::approvals::ApprovalStatus;
use courant_api::resources::{ProjectStatus, RuleStatus, SkillStatus};
use courant_api::work::{ClaimStatus, RunStatus, TaskCategory, TaskStatus, VerificationStatus};

/// A wish that a state does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// What it is about: `task`.
    pub entity: &'static str,
    /// The state: `completed`.
    pub state: &'static str,
    /// The wish: `claim`.
    pub wish: &'static str,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entity, state, wish } = self;
        write!(f, "{wish} is not possible: the {entity} is {state}")
    }
}

/// Declares the wishes of a life, as they are named to people.
macro_rules! wishes {
    ($(#[$doc:meta])* $name:ident { $($(#[$wdoc:meta])* $wish:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$wdoc])* $wish,)+ }

        impl $name {
            /// Every wish.
            pub const ALL: &'static [Self] = &[$(Self::$wish),+];

            /// As it is named to people.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$wish => $text),+ }
            }
        }
    };
}

wishes! {
    /// What somebody may want of a task.
    TaskWish {
        /// Work on it.
        Claim = "claim",
        /// Stop working on it.
        Release = "release",
        /// Have its checks run.
        Verify = "verify",
        /// Say that it is done.
        Complete = "complete",
        /// Have it wait for a person.
        Block = "block",
        /// Have it wait for nothing any more, or want it after all.
        Reopen = "reopen",
        /// Give it up.
        Cancel = "cancel",
        /// Have a skill used for it.
        Invoke = "invoke a skill",
    }
}

/// The task's state after a wish.
pub fn task(state: TaskStatus, wish: TaskWish) -> Result<TaskStatus, Illegal> {
    use TaskStatus as S;
    use TaskWish as W;
    match (state, wish) {
        (S::Open, W::Claim) => Ok(S::InProgress),
        (S::InProgress, W::Release) | (S::Blocked | S::Cancelled, W::Reopen) => Ok(S::Open),
        (S::Open | S::InProgress, W::Complete) => Ok(S::Completed),
        (S::Open | S::InProgress, W::Block) => Ok(S::Blocked),
        (S::Open | S::InProgress | S::Blocked, W::Cancel) => Ok(S::Cancelled),
        (S::Open | S::InProgress, W::Verify | W::Invoke) | (S::Blocked, W::Invoke) => Ok(state),
        _ => Err(Illegal { entity: "task", state: state.as_str(), wish: wish.as_str() }),
    }
}

/// What a task's state means to those who do not know the states.
pub fn category(state: TaskStatus) -> TaskCategory {
    match state {
        TaskStatus::Open | TaskStatus::Blocked => TaskCategory::Todo,
        TaskStatus::InProgress => TaskCategory::Active,
        TaskStatus::Completed => TaskCategory::Done,
        TaskStatus::Cancelled => TaskCategory::Cancelled,
    }
}

wishes! {
    /// What may become of a claim.
    ClaimWish {
        /// Its lease is extended.
        Extend = "extend",
        /// Its holder gives the task back.
        Release = "release",
        /// Its lease ends.
        Expire = "expire",
        /// Its task is completed.
        Complete = "complete",
    }
}

/// The claim's state after a wish.
pub fn claim(state: ClaimStatus, wish: ClaimWish) -> Result<ClaimStatus, Illegal> {
    match (state, wish) {
        (ClaimStatus::Active, ClaimWish::Extend) => Ok(ClaimStatus::Active),
        (ClaimStatus::Active, ClaimWish::Release) => Ok(ClaimStatus::Released),
        (ClaimStatus::Active, ClaimWish::Expire) => Ok(ClaimStatus::Expired),
        (ClaimStatus::Active, ClaimWish::Complete) => Ok(ClaimStatus::Completed),
        _ => Err(Illegal { entity: "claim", state: state.as_str(), wish: wish.as_str() }),
    }
}

wishes! {
    /// What may become of a run.
    RunWish {
        /// It reaches its end.
        Succeed = "succeed",
        /// It does not.
        Fail = "fail",
        /// Somebody stops it.
        Cancel = "cancel",
        /// It waits.
        Suspend = "suspend",
    }
}

/// The run's state after a wish. A suspended run goes on as another one; it can still be cancelled.
pub fn run(state: RunStatus, wish: RunWish) -> Result<RunStatus, Illegal> {
    match (state, wish) {
        (RunStatus::Running, RunWish::Succeed) => Ok(RunStatus::Succeeded),
        (RunStatus::Running, RunWish::Fail) => Ok(RunStatus::Failed),
        (RunStatus::Running, RunWish::Suspend) => Ok(RunStatus::Suspended),
        (RunStatus::Running | RunStatus::Suspended, RunWish::Cancel) => Ok(RunStatus::Cancelled),
        _ => Err(Illegal { entity: "run", state: state.as_str(), wish: wish.as_str() }),
    }
}

wishes! {
    /// What may become of a verification.
    VerificationWish {
        /// All its checks pass.
        Pass = "pass",
        /// One does not.
        Fail = "fail",
    }
}

/// The verification's state after a wish.
pub fn verification(state: VerificationStatus, wish: VerificationWish) -> Result<VerificationStatus, Illegal> {
    match (state, wish) {
        (VerificationStatus::Running, VerificationWish::Pass) => Ok(VerificationStatus::Passed),
        (VerificationStatus::Running, VerificationWish::Fail) => Ok(VerificationStatus::Failed),
        _ => Err(Illegal { entity: "verification", state: state.as_str(), wish: wish.as_str() }),
    }
}

wishes! {
    /// What may become of an approval.
    ApprovalWish {
        /// Somebody says yes.
        Approve = "approve",
        /// Somebody says no.
        Reject = "reject",
        /// It is not asked any more.
        Cancel = "cancel",
        /// Its time is over.
        Expire = "expire",
    }
}

/// The approval's state after a wish. Cancelling what is cancelled changes nothing.
pub fn approval(state: ApprovalStatus, wish: ApprovalWish) -> Result<ApprovalStatus, Illegal> {
    use ApprovalStatus as S;
    match (state, wish) {
        (S::Pending, ApprovalWish::Approve) => Ok(S::Approved),
        (S::Pending, ApprovalWish::Reject) => Ok(S::Rejected),
        (S::Pending | S::Cancelled, ApprovalWish::Cancel) => Ok(S::Cancelled),
        (S::Pending, ApprovalWish::Expire) => Ok(S::Expired),
        _ => Err(Illegal { entity: "approval", state: state.as_str(), wish: wish.as_str() }),
    }
}

wishes! {
    /// What may become of a rule.
    RuleWish {
        /// It is changed.
        Update = "update",
        /// It counts.
        Enable = "enable",
        /// It does not count for now.
        Disable = "disable",
        /// It counts no more.
        Archive = "archive",
    }
}

/// The rule's state after a wish. Wishing for the state that it has changes nothing.
pub fn rule(state: RuleStatus, wish: RuleWish) -> Result<RuleStatus, Illegal> {
    use RuleStatus as S;
    match (state, wish) {
        (S::Enabled | S::Disabled, RuleWish::Update) => Ok(state),
        (S::Enabled | S::Disabled, RuleWish::Enable) => Ok(S::Enabled),
        (S::Enabled | S::Disabled, RuleWish::Disable) => Ok(S::Disabled),
        (_, RuleWish::Archive) => Ok(S::Archived),
        (S::Archived, _) => Err(Illegal { entity: "rule", state: state.as_str(), wish: wish.as_str() }),
    }
}

wishes! {
    /// What may become of a project.
    ProjectWish {
        /// It is changed.
        Update = "update",
        /// It is over.
        Archive = "archive",
    }
}

/// The project's state after a wish. Archiving what is archived changes nothing.
pub fn project(state: ProjectStatus, wish: ProjectWish) -> Result<ProjectStatus, Illegal> {
    match (state, wish) {
        (ProjectStatus::Active, ProjectWish::Update) => Ok(ProjectStatus::Active),
        (_, ProjectWish::Archive) => Ok(ProjectStatus::Archived),
        (ProjectStatus::Archived, ProjectWish::Update) => {
            Err(Illegal { entity: "project", state: state.as_str(), wish: wish.as_str() })
        }
    }
}

wishes! {
    /// What may become of a skill invocation.
    SkillWish {
        /// Somebody does it.
        Claim = "claim",
        /// It is tried again later.
        Retry = "retry",
        /// It is done.
        Succeed = "succeed",
        /// It was tried in vain.
        Fail = "fail",
        /// Nobody wants it any more.
        Cancel = "cancel",
    }
}

/// The invocation's state after a wish.
pub fn skill(state: SkillStatus, wish: SkillWish) -> Result<SkillStatus, Illegal> {
    use SkillStatus as S;
    match (state, wish) {
        (S::Requested, SkillWish::Claim) => Ok(S::Claimed),
        (S::Claimed, SkillWish::Retry) => Ok(S::Requested),
        (S::Claimed, SkillWish::Succeed) => Ok(S::Succeeded),
        (S::Claimed, SkillWish::Fail) => Ok(S::Failed),
        (S::Requested | S::Claimed, SkillWish::Cancel) => Ok(S::Cancelled),
        _ => Err(Illegal { entity: "skill invocation", state: state.as_str(), wish: wish.as_str() }),
    }
}

#[cfg(test)]
mod tests;
