//! `/operations`: the journal's state and its retention.

mod prune;
mod schedule;
mod status;

use courant_api::Timestamp;

use crate::support::World;

/// A time so many seconds from now, as the server's clock has it.
pub(super) fn in_seconds(seconds: i64) -> String {
    Timestamp::from_micros(courant_server::clock::now().micros() + seconds * 1_000_000).to_string()
}

/// Waits until the announcer holds nothing back.
pub(super) async fn announced(world: &World) {
    world.announced(world.app.store.journal_horizon().await.unwrap()).await;
}
