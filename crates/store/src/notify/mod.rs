//! Integrations, the outbox, and the announcer's step from the journal into it.

mod announce;
mod integrations;
mod outbox;
mod view;

pub use announce::{Announced, Place};
pub use integrations::{Edit, Edited, Integration};
pub use outbox::{Claim, Claimed, Dead, Lanes, Mark, Outcome};

#[cfg(feature = "testing")]
pub(crate) fn statements() -> impl Iterator<Item = &'static crate::db::Statement> {
    [announce::STATEMENTS, integrations::STATEMENTS, outbox::STATEMENTS, view::STATEMENTS]
        .into_iter()
        .flatten()
        .copied()
}
