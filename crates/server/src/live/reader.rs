//! One reader: where it stands, and what comes next for it.
//!
//! It reads the database until it has come as far as the shared tail, and goes on with that. It must never move past
//! what it has handed out, or ask the database twice for one place.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use courant_api::event::EventPage;
use courant_api::{Cursor, Event, TenantId};
use courant_store::{EventQuery, Start};
use futures_util::future::BoxFuture;
use tokio::time::sleep;

use super::{Batch, Feed, Fit, json_of};
use crate::app::App;
use crate::http::ApiError;

/// Between two looks at what is about to be readable; doubled each time up to [`SETTLE_MOST`].
const SETTLE: Duration = Duration::from_millis(2);
const SETTLE_MOST: Duration = Duration::from_millis(250);

/// A reader of one tenant's events by one filter.
pub struct Reader {
    app: Arc<App>,
    tenant: TenantId,
    query: EventQuery,
    feed: Feed,
    state: State,
}

enum State {
    /// Reads the database, at first and whenever the tail does not fit.
    Behind { settle: Duration, reading: Option<BoxFuture<'static, Result<EventPage, ApiError>>> },
    /// Stands where the tail goes on.
    AtEnd(Cursor),
}

/// What comes next for a reader.
pub struct Found {
    /// Events, in journal order.
    pub events: Events,
    /// Everything up to here is in this and what came before.
    pub reached: Cursor,
    /// Whether asking again gives more at once.
    pub more: bool,
}

/// Events of a page of its own, or its share of a batch.
pub enum Events {
    /// A page from the database.
    Page(Box<EventPage>),
    /// Places in a batch.
    Shared(Arc<Batch>, Box<[usize]>),
}

impl Events {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Page(page) => page.items.is_empty(),
            Self::Shared(_, indices) => indices.is_empty(),
        }
    }

    /// The position of the last one.
    pub fn last(&self) -> Option<i64> {
        let last = match self {
            Self::Page(page) => page.items.last(),
            Self::Shared(batch, indices) => indices.last().map(|&index| &batch.items[index].event),
        };
        last.map(|event| event.sequence)
    }

    /// Each event's JSON.
    pub fn json(&self) -> Result<Vec<Bytes>, ApiError> {
        let texts: Result<_, _> = match self {
            Self::Page(page) => page.items.iter().map(json_of).collect(),
            Self::Shared(batch, indices) => indices.iter().map(|&index| batch.items[index].json()).collect(),
        };
        texts.map_err(ApiError::internal)
    }
}

impl Reader {
    /// A reader that begins at the query's start. What becomes readable from now on does not escape it.
    pub fn new(app: &Arc<App>, tenant: TenantId, query: EventQuery) -> Self {
        let feed = app.live.join();
        let state = State::Behind { settle: Duration::ZERO, reading: None };
        Self { app: Arc::clone(app), tenant, query, feed, state }
    }

    /// Goes on where somebody else's page ended; `more`: whether more was readable there.
    pub fn resume(&mut self, at: Cursor, more: bool) {
        self.query.start = Start::After(at);
        self.state = match (more, self.app.live.is_past(&at)) {
            (true, _) => behind(Duration::ZERO),
            (false, true) => behind(SETTLE),
            (false, false) => State::AtEnd(at),
        };
    }

    /// How many events the next page from the database may have.
    pub fn limit(&mut self, limit: i64) {
        self.query.limit = limit;
    }

    /// Waits for what is next; it may be nothing, with a new position. A call that is dropped is gone on with by the next.
    pub async fn next(&mut self) -> Result<Found, ApiError> {
        loop {
            match &mut self.state {
                State::Behind { settle, reading } => {
                    let (app, tenant, query, wait) = (&self.app, self.tenant, &self.query, *settle);
                    let reading = reading.get_or_insert_with(|| read(Arc::clone(app), tenant, query.clone(), wait));
                    let page = reading.await;
                    let settle = (wait * 2).clamp(SETTLE, SETTLE_MOST);
                    self.state = behind(Duration::ZERO);
                    let page = page?;
                    let reached = Cursor::decode(&page.next_cursor).map_err(ApiError::internal)?;
                    self.query.start = Start::After(reached);
                    if !page.has_more {
                        let is_short = self.app.live.is_past(&reached);
                        self.state = if is_short { behind(settle) } else { State::AtEnd(reached) };
                    }
                    return Ok(Found { more: page.has_more, events: Events::Page(Box::new(page)), reached });
                }
                State::AtEnd(at) => {
                    let Some(batch) = self.feed.next().await else {
                        self.state = behind(Duration::ZERO);
                        continue;
                    };
                    match batch.fit(at) {
                        Fit::Old => {}
                        Fit::Gap => self.state = behind(Duration::ZERO),
                        Fit::Next => {
                            let indices = batch.wanted(self.tenant, &self.query, at.seq);
                            at.seq = batch.to;
                            self.query.start = Start::After(*at);
                            return Ok(Found {
                                reached: *at,
                                more: batch.more,
                                events: Events::Shared(batch, indices),
                            });
                        }
                    }
                }
            }
        }
    }
}

fn behind(settle: Duration) -> State {
    State::Behind { settle, reading: None }
}

fn read(
    app: Arc<App>,
    tenant: TenantId,
    query: EventQuery,
    wait: Duration,
) -> BoxFuture<'static, Result<EventPage, ApiError>> {
    Box::pin(async move {
        if !wait.is_zero() {
            sleep(wait).await;
        }
        Ok(app.live.read(app.store.event_page(tenant, query)).await?)
    })
}

/// The page of a request that was held open until this.
pub fn page_of(found: Found, limit: usize) -> EventPage {
    match found.events {
        Events::Page(page) => *page,
        Events::Shared(batch, indices) => {
            let items: Vec<Event> = indices.iter().take(limit).map(|&index| batch.items[index].event.clone()).collect();
            let cut = indices.len() > items.len();
            let last = items.last().filter(|_| cut).map(|event| event.cursor.clone());
            EventPage {
                prev_cursor: items.first().map(|event| event.cursor.clone()),
                next_cursor: last.unwrap_or_else(|| found.reached.encode()),
                has_more: cut || found.more,
                items,
            }
        }
    }
}
