//! The server's heartbeat: others take over the work of one whose heart has stopped, and it starts nothing itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::Workers;
use crate::app::App;
use crate::clock;

const BEAT: Duration = Duration::from_secs(2);
/// Well before others count it as gone (10 s), it stops starting sends.
const TRUST: Duration = Duration::from_secs(6);

/// When the last heartbeat was written, and since when none has been late.
#[derive(Clone, Debug)]
pub(super) struct Alive {
    origin: Instant,
    beat_ms: Arc<AtomicU64>,
    steady_ms: Arc<AtomicU64>,
}

impl Alive {
    fn new() -> Self {
        Self { origin: Instant::now(), beat_ms: Arc::default(), steady_ms: Arc::default() }
    }

    /// A heartbeat that was begun at this time is written.
    fn beat(&self, at: Instant) {
        let since_origin = |at: Instant| u64::try_from(at.duration_since(self.origin).as_millis()).unwrap_or(u64::MAX);
        // Until now others have seen the one before.
        if !self.is_certain() {
            self.steady_ms.store(since_origin(Instant::now()), Ordering::SeqCst);
        }
        self.beat_ms.store(since_origin(at), Ordering::SeqCst);
    }

    /// Whether others have counted this server among the living ever since: what it claimed then is still its own.
    pub(super) fn has_been_certain_since(&self, claimed_at: Instant) -> bool {
        let steady = self.origin + Duration::from_millis(self.steady_ms.load(Ordering::SeqCst));
        self.is_certain() && claimed_at >= steady
    }

    /// Whether others still count this server among the living.
    pub(super) fn is_certain(&self) -> bool {
        let beat = self.origin + Duration::from_millis(self.beat_ms.load(Ordering::SeqCst));
        beat.elapsed() < TRUST
    }
}

/// Starts the heart of a server that has just been registered.
pub(super) fn start(workers: &mut Workers, _: &Arc<App>, server: Uuid) -> Alive {
    let alive = Alive::new();
    let heart = alive.clone();
    workers.every("heartbeat", BEAT, move |app| {
        let heart = heart.clone();
        async move {
            // Taken before the write: the row may be as old as that.
            let at = Instant::now();
            if app.store.server_beat(server, clock::now()).await? {
                heart.beat(at);
            }
            Ok::<_, courant_store::Error>(())
        }
    });
    alive
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_claimed_before_a_late_heartbeat_is_not_trusted_after_it() {
        let alive = Alive::new();
        let early = Instant::now();
        assert!(alive.has_been_certain_since(early));
        pass(5).await;
        alive.beat(Instant::now());
        pass(5).await;
        assert!(alive.has_been_certain_since(early), "no heartbeat was late");
        pass(2).await;
        assert!(!alive.has_been_certain_since(early));
        alive.beat(Instant::now());
        assert!(alive.is_certain() && !alive.has_been_certain_since(early), "others may have taken it meanwhile");
        assert!(alive.has_been_certain_since(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_that_took_long_to_write_was_late() {
        let alive = Alive::new();
        let claimed = Instant::now();
        pass(2).await;
        let begun = Instant::now();
        pass(7).await;
        alive.beat(begun);
        assert!(!alive.has_been_certain_since(claimed));
    }
}
