//! The announcer: the consumer loop over every tenant's journal, with the outbox as its fenced sink.

use std::sync::Arc;
use std::time::Duration;

use courant_api::Event;
use courant_client::engine::{Applied, Batch, Engine, Options, Sink, Source, SourceError};
use courant_store::{Announced, Error, Store};

use super::Workers;
use crate::app::App;
use crate::clock;

const NAME: &str = "announcer";
/// How soon events of other processes are noticed.
const POLL: Duration = Duration::from_secs(1);
const PAGE: u32 = 500;

/// Reads the journal in this process.
struct Journal(Store);

impl Source for Journal {
    type Item = Event;
    type Position = i64;

    async fn read(&self, after: Option<&i64>, limit: u32) -> Result<Batch<Event, i64>, SourceError> {
        let page =
            self.0.journal_scan(after.copied().unwrap_or(0), i64::from(limit)).await.map_err(SourceError::failed)?;
        Ok(Batch { items: page.events, next: page.next, has_more: page.has_more })
    }

    async fn latest(&self) -> Result<i64, SourceError> {
        self.0.journal_horizon().await.map_err(SourceError::failed)
    }
}

/// Queues what events announce, together with the move of the position.
struct Outbox(Arc<App>);

impl Sink<Event, i64> for Outbox {
    type Error = Error;

    async fn load(&mut self) -> Result<Option<i64>, Error> {
        self.0.store.announcer_position().await.map(Some)
    }

    async fn apply(&mut self, from: Option<&i64>, batch: Batch<Event, i64>) -> Result<Applied, Error> {
        let app = &self.0;
        match app.store.announce(from.copied().unwrap_or(0), batch.next, batch.items, clock::now()).await? {
            Announced::Stale => Ok(Applied::Stale),
            Announced::Moved { deliveries, withheld } => {
                metrics::counter!("courant_notification_routes_withheld_total").increment(withheld);
                if deliveries > 0 {
                    app.wake_outbox();
                }
                Ok(Applied::Moved)
            }
        }
    }
}

pub(super) fn start(workers: &mut Workers, app: &Arc<App>) {
    let app = Arc::clone(app);
    workers.spawn(NAME, move || {
        let app = Arc::clone(&app);
        async move {
            let options = Options {
                name: NAME.into(),
                page_size: PAGE,
                poll_interval: POLL,
                retry_initial: Duration::from_millis(200),
                retry_max: Duration::from_secs(10),
                ..Options::default()
            };
            let mut engine = Engine::new(Journal(app.store.clone()), Outbox(Arc::clone(&app)), options);
            let mut progress = engine.progress();
            let run = engine.run(app.store.appended(), app.stop.clone());
            let watch = async {
                while progress.changed().await.is_ok() {
                    let failing = progress.borrow_and_update().failures > 0;
                    if failing { app.health.failed(NAME) } else { app.health.succeeded(NAME) }
                }
                std::future::pending::<()>().await;
            };
            tokio::select! { _ = run => {}, () = watch => {} }
        }
    });
}
