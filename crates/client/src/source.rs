//! The journal over HTTP as a source of the engine.

use courant_api::Event;

use crate::engine::{Batch, Source, SourceError};
use crate::error::ClientError;
use crate::http::Client;
use crate::journal::EventsQuery;

/// Reads the events of a query, page by page. Its positions are cursors.
#[derive(Clone, Debug)]
pub struct JournalSource {
    client: Client,
    query: EventsQuery,
}

impl JournalSource {
    /// A source of what `query` filters. Its `cursor` is where a consumer without a stored position begins; `tail` and
    /// `limit` do not matter; `wait` makes every read that finds nothing a long poll.
    pub fn new(client: Client, query: EventsQuery) -> Self {
        Self { client, query }
    }
}

impl Source for JournalSource {
    type Item = Event;
    type Position = String;

    async fn read(&self, after: Option<&String>, limit: u32) -> Result<Batch<Event, String>, SourceError> {
        let cursor = after.or(self.query.cursor.as_ref()).cloned();
        let query = EventsQuery { cursor, tail: None, limit: Some(limit), ..self.query.clone() };
        let page = self.client.events(&query).await.map_err(failure)?;
        Ok(Batch { items: page.items, next: page.next_cursor, has_more: page.has_more })
    }

    async fn latest(&self) -> Result<String, SourceError> {
        let query = EventsQuery { cursor: None, tail: Some(1), limit: None, wait: None, ..self.query.clone() };
        Ok(self.client.events(&query).await.map_err(failure)?.next_cursor)
    }
}

fn failure(error: ClientError) -> SourceError {
    if error.is_refusal() {
        return SourceError::refused(error);
    }
    let retry_after = error.retry_after();
    SourceError::Failed { cause: error.into(), retry_after }
}
