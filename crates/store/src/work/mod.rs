//! Work: tasks, who has claimed them, and what is said about them.
//!
//! Whatever changes a task or something of it locks the task's row first, so that claims, gates and ends of leases come one
//! after another.

mod approvals;
mod claims;
mod comments;
mod decision_tokens;
mod gates;
mod resources;
mod runs;
mod skills;
mod tasks;
mod verifications;

use crate::Error;
use courant_core::lifecycle::Illegal;

#[cfg(feature = "testing")]
use crate::db::Statement;

pub use approvals::{ApprovalQuery, Decision};
pub use decision_tokens::DecisionTokenDraft;
pub use resources::{Editable, Kind, ProjectEdit, Resource, ResourceQuery, RuleEdit};
pub use runs::RunEnd;
pub use skills::{SkillQuery, SkillStep};
pub use tasks::TaskQuery;
pub use verifications::VerificationEnd;

/// Every statement of this part.
#[cfg(feature = "testing")]
pub(crate) fn all_statements() -> impl Iterator<Item = &'static Statement> {
    [
        runs::STATEMENTS,
        verifications::STATEMENTS,
        approvals::STATEMENTS,
        decision_tokens::STATEMENTS,
        claims::STATEMENTS,
        comments::STATEMENTS,
        gates::STATEMENTS,
        tasks::STATEMENTS,
        skills::STATEMENTS,
    ]
    .into_iter()
    .chain(resources::STATEMENTS)
    .flatten()
    .copied()
}

impl From<Illegal> for Error {
    fn from(illegal: Illegal) -> Self {
        Self::Illegal(illegal)
    }
}
