//! The announcer: the consumer loop over every tenant's journal, with the outbox as its fenced sink.

use std::sync::Arc;
use std::time::Duration;

use courant_api::Event;
use courant_client::engine::{Applied, Batch, Engine, Options, Sink, Source, SourceError};
use courant_store::{Announced, Error, Place, Store};

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
    type Position = Place;

    async fn read(&self, after: Option<&Place>, limit: u32) -> Result<Batch<Event, Place>, SourceError> {
        let after = self.or_stored(after).await?;
        let page = self.0.journal_scan(after.seq, i64::from(limit)).await.map_err(SourceError::failed)?;
        let incarnation = page.incarnation;
        if incarnation != after.incarnation {
            // The position was another journal's: the sink refuses the move, and what it has stored is loaded.
            return Ok(Batch { items: Vec::new(), next: Place { incarnation, ..after }, has_more: true });
        }
        Ok(Batch { items: page.events, next: Place { incarnation, seq: page.next }, has_more: page.has_more })
    }

    async fn latest(&self) -> Result<Place, SourceError> {
        self.or_stored(None).await
    }
}

impl Journal {
    /// The place, else what is stored; the announcer's row is there from the first migration on.
    async fn or_stored(&self, place: Option<&Place>) -> Result<Place, SourceError> {
        match place {
            Some(place) => Ok(*place),
            None => self.0.announcer_place().await.map_err(SourceError::failed),
        }
    }
}

/// Queues what events announce, together with the move of the position.
struct Outbox(Arc<App>);

impl Sink<Event, Place> for Outbox {
    type Error = Error;

    async fn load(&mut self) -> Result<Option<Place>, Error> {
        self.0.store.announcer_place().await.map(Some)
    }

    async fn apply(&mut self, from: Option<&Place>, batch: Batch<Event, Place>) -> Result<Applied, Error> {
        let app = &self.0;
        let Some(from) = from else { return Ok(Applied::Stale) };
        let announced = loop {
            match app.store.announce(*from, batch.next, batch.items.clone(), app.base_url.clone(), clock::now()).await {
                // What may be told hangs on somebody else's word. Without it nothing moves, and this is tried again.
                Err(Error::Undecided(questions)) => {
                    app.decide(questions).await.map_err(|refusal| Error::Unavailable(refusal.to_string()))?;
                }
                done => break done?,
            }
        };
        match announced {
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
