//! Integrations, the outbox, and the announcer's step from the journal into it.

mod announce;
mod digest;
mod history;
mod integrations;
mod outbox;
mod view;

pub use announce::{Announced, Place};
pub use digest::{Digest, DigestWanted};
pub use history::AttemptQuery;
pub use integrations::{Edit, Edited, Integration, SealedSecret};
pub use outbox::{Attempt, Claim, Claimed, Lanes, Mark, Outcome};
pub use view::DeliveryQuery;

#[cfg(feature = "testing")]
pub(crate) fn statements() -> impl Iterator<Item = &'static crate::db::Statement> {
    [
        announce::STATEMENTS,
        digest::STATEMENTS,
        history::STATEMENTS,
        integrations::STATEMENTS,
        outbox::STATEMENTS,
        view::STATEMENTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
