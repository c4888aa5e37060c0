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

/// When the last heartbeat was written.
#[derive(Clone, Debug)]
pub(super) struct Alive {
    origin: Instant,
    beat_ms: Arc<AtomicU64>,
}

impl Alive {
    fn new() -> Self {
        Self { origin: Instant::now(), beat_ms: Arc::new(AtomicU64::new(0)) }
    }

    fn beat(&self, at: Instant) {
        let ms = u64::try_from(at.duration_since(self.origin).as_millis()).unwrap_or(u64::MAX);
        self.beat_ms.store(ms, Ordering::Relaxed);
    }

    /// Whether others still count this server among the living.
    pub(super) fn is_certain(&self) -> bool {
        let beat = self.origin + Duration::from_millis(self.beat_ms.load(Ordering::Relaxed));
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
