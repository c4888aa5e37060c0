//! Reading the journal live by long polling.
//!
//! It must never step over an event: its cursor only takes values that the server gave, each after the event it
//! belongs to was handed out.

use std::collections::VecDeque;
use std::time::Duration;

use courant_api::Event;
use futures_util::stream::{self, Stream};
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::error::ClientError;
use crate::http::Client;
use crate::journal::EventsQuery;

/// How long the server is asked to hold an empty page.
const WAIT_SECONDS: u32 = 20;
/// An empty page that comes sooner was not held, so the next request is not sent at once.
const HELD: Duration = Duration::from_secs(1);

/// The events of a query as they come; made by [`Client::follow`]. It keeps no position: what was handed out is the
/// caller's to remember.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    query: EventsQuery,
    page: VecDeque<Event>,
    page_end: Option<String>,
    backoff: Backoff,
    /// What to wait before the next request: set by a failure or by a page that came empty at once.
    pause: Option<Duration>,
}

impl Follow {
    pub(crate) fn new(client: Client, query: EventsQuery) -> Self {
        let retry = client.retry();
        Self {
            client,
            query,
            page: VecDeque::new(),
            page_end: None,
            backoff: Backoff::new(retry.initial, retry.max),
            pause: None,
        }
    }

    /// The position after the last event that was handed out and what the filter left out behind it; `None` before
    /// the first page without a cursor to start from.
    pub fn cursor(&self) -> Option<&str> {
        self.query.cursor.as_deref()
    }

    /// The next event, however long it takes. After an error it may be asked again: it goes on from the same place,
    /// after a pause that grows with every error in a row. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                let last = self.page.is_empty();
                let end = self.page_end.take_if(|_| last);
                self.move_to(end.unwrap_or_else(|| event.cursor.clone()));
                return Ok(event);
            }
            if let Some(pause) = self.pause {
                sleep(pause).await;
                self.pause = None;
            }
            self.read().await?;
        }
    }

    /// The same as a stream, which never ends: after an error that [is a refusal](ClientError::is_refusal) it is the
    /// caller who stops.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, ClientError>> + Send {
        stream::unfold(self, |mut follow| async move {
            let item = follow.next().await;
            Some((item, follow))
        })
    }

    async fn read(&mut self) -> Result<(), ClientError> {
        let asked = Instant::now();
        let wait = self.query.wait.unwrap_or(WAIT_SECONDS);
        // The newest events are there or not: nothing to wait for.
        let query = EventsQuery { wait: self.query.tail.is_none().then_some(wait), ..self.query.clone() };
        let page = match self.client.events(&query).await {
            Ok(page) => page,
            Err(error) => {
                self.pause = Some(self.backoff.pause().max(error.retry_after().unwrap_or_default()));
                return Err(error);
            }
        };
        if page.items.is_empty() {
            let idle = !page.has_more && query.tail.is_none() && asked.elapsed() < HELD;
            self.pause = idle.then(|| self.backoff.pause());
            self.move_to(page.next_cursor);
        } else {
            self.page = page.items.into();
            self.page_end = Some(page.next_cursor);
        }
        if self.pause.is_none() {
            self.backoff.reset();
        }
        Ok(())
    }

    fn move_to(&mut self, cursor: String) {
        self.query.cursor = Some(cursor);
        self.query.tail = None;
    }
}
