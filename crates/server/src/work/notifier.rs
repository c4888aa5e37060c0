//! Wake-ups between servers: listens for the commits of others and tells them of ours.
//!
//! Readers poll all the same, so a server that cannot listen is slower to notice and never wrong: it stays ready.

use std::sync::Arc;

use courant_store::{Pace, Wakeups};
use uuid::Uuid;

use super::Workers;
use crate::app::App;

const NAME: &str = "notifier";

pub(super) fn start(workers: &mut Workers, app: &Arc<App>, server: Uuid) {
    if app.store.is_embedded() {
        return;
    }
    let app = Arc::clone(app);
    workers.spawn(NAME, move || {
        let app = Arc::clone(&app);
        async move {
            tokio::select! {
                () = app.store.journal_listen(server, Pace::default()) => {},
                () = tell(&app) => {},
                () = app.stop.cancelled() => {},
            }
        }
    });
}

/// Says how the listening goes, when that changes.
async fn tell(app: &App) {
    let mut wakeups = app.store.wakeups();
    let gauge = metrics::gauge!("courant_journal_listening");
    gauge.set(0.0);
    while wakeups.changed().await.is_ok() {
        match &*wakeups.borrow_and_update() {
            Wakeups::Listening => {
                tracing::info!("events of other servers are heard of at once");
                gauge.set(1.0);
            }
            Wakeups::Polling { why } => {
                tracing::warn!(%why, "events of other servers are found by polling");
                gauge.set(0.0);
            }
        }
    }
}
