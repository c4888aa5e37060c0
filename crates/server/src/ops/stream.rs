//! Following the journal over a socket: backlog, then what comes, for as long as the caller may read it.
//!
//! It must never send past what it has read, nor to a caller whose key or right has not been looked at for a while.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use courant_api::{Permission, Resource, Timestamp};
use courant_store::{Caller, Credential, EventQuery, Start};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::journal::place;
use super::require;
use crate::app::App;
use crate::clock;
use crate::http::ApiError;
use crate::http::socket::{Channel, Ending};
use crate::live::{Found, Reader};

/// Most events that are read at once, and at first.
const PAGE: i64 = 64;
const FIRST_PAGE: i64 = 16;
/// Bytes that a page should have; what it has is what waits in memory for a slow peer.
const PAGE_BYTES: usize = 256 * 1024;

/// Sends the events after the query's start until the socket ends; why it does.
pub async fn events_follow(app: &Arc<App>, caller: &Caller, query: EventQuery, channel: &mut Channel) -> Ending {
    match follow(app, caller, query, channel).await {
        Ok(never) => match never {},
        Err(ending) => ending,
    }
}

async fn follow(
    app: &Arc<App>,
    caller: &Caller,
    query: EventQuery,
    channel: &mut Channel,
) -> Result<Infallible, Ending> {
    let mut right = Right::new(app, caller, place(query.workspace_id), channel.limits().recheck).await?;
    let mut progress = Progress::new(&query);
    let mut reader = Reader::new(app, caller.tenant_id, query);
    reader.limit(FIRST_PAGE);
    let mut unsent: VecDeque<Bytes> = VecDeque::new();
    loop {
        let now = Instant::now();
        if now >= channel.due() {
            channel.tend().await?;
        }
        if now >= right.due {
            right.check(app).await?;
        }
        if let Some(text) = unsent.pop_front() {
            channel.text(text).await?;
            continue;
        }
        let limits = channel.limits();
        if let Some(mark) = progress.mark(now, limits.progress, limits.progress_positions) {
            channel.text(mark).await?;
            continue;
        }
        let due = channel.due().min(right.due).min(progress.due(limits.progress).unwrap_or(right.due));
        tokio::select! {
            biased;
            () = app.stop.cancelled() => return Err(Ending::Stopping),
            () = sleep_until(due) => {}
            heard = channel.hear() => heard?,
            found = reader.next() => {
                let found = found?;
                unsent = VecDeque::from(found.events.json()?);
                reader.limit(page_limit(&unsent));
                progress.note(now, &found);
            }
        }
    }
}

/// How many events the next page may have, going by the size of these.
fn page_limit(texts: &VecDeque<Bytes>) -> i64 {
    let bytes: usize = texts.iter().map(Bytes::len).sum();
    let fitting = PAGE_BYTES * texts.len() / bytes.max(1);
    if texts.is_empty() { PAGE } else { i64::try_from(fitting).unwrap_or(PAGE).clamp(1, PAGE) }
}

/// The caller's credential and right, and when to look at them again.
struct Right {
    credential: Credential,
    expires_at: Option<Timestamp>,
    on: Resource,
    every: Duration,
    due: Instant,
}

impl Right {
    async fn new(app: &App, caller: &Caller, on: Resource, every: Duration) -> Result<Self, ApiError> {
        require(app, caller, Permission::EventsRead, &on).await?;
        let mut right = Self {
            credential: caller.credential.clone(),
            expires_at: caller.expires_at,
            on,
            every,
            due: Instant::now(),
        };
        right.rest();
        Ok(right)
    }

    async fn check(&mut self, app: &App) -> Result<(), ApiError> {
        if self.expires_at.is_some_and(|at| at <= clock::now()) {
            return Err(ApiError::unauthenticated());
        }
        require(app, &app.caller(&self.credential).await?, Permission::EventsRead, &self.on).await?;
        self.rest();
        Ok(())
    }

    /// Until the next look, or the key's end when that is sooner.
    fn rest(&mut self) {
        let left = self.expires_at.map(|at| at.micros().saturating_sub(clock::now().micros()).max(0).unsigned_abs());
        // A little more, so that the key has ended by then.
        let left = left.map(|micros| Duration::from_micros(micros) + Duration::from_millis(1));
        self.due = Instant::now() + left.map_or(self.every, |left| left.min(self.every));
    }
}

/// What a filtered reader was told of its position, and what is to be told.
struct Progress {
    is_filtered: bool,
    told: i64,
    told_at: Instant,
    reached: Option<courant_api::Cursor>,
}

impl Progress {
    fn new(query: &EventQuery) -> Self {
        let is_filtered = !query.prefixes.is_empty() || query.workspace_id.is_some() || query.entity_type.is_some();
        let told = if let Start::After(cursor) = query.start { cursor.seq } else { 0 };
        Self { is_filtered, told, told_at: Instant::now(), reached: None }
    }

    fn note(&mut self, now: Instant, found: &Found) {
        self.reached = Some(found.reached);
        if let Some(last) = found.events.last() {
            (self.told, self.told_at) = (last, now);
        }
    }

    fn skipped(&self) -> i64 {
        self.reached.filter(|_| self.is_filtered).map_or(0, |reached| reached.seq - self.told)
    }

    /// When a mark is due, if there is one to give.
    fn due(&self, every: Duration) -> Option<Instant> {
        (self.skipped() > 0).then(|| self.told_at + every)
    }

    /// The mark that is to be sent now.
    fn mark(&mut self, now: Instant, every: Duration, positions: i64) -> Option<Bytes> {
        let skipped = self.skipped();
        let reached = self.reached.filter(|_| skipped > 0 && (skipped >= positions || now >= self.told_at + every))?;
        (self.told, self.told_at) = (reached.seq, now);
        Some(json!({ "type": "progress", "cursor": reached.encode() }).to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(count: usize, bytes: usize) -> VecDeque<Bytes> {
        (0..count).map(|_| Bytes::from(vec![b'x'; bytes])).collect()
    }

    #[test]
    fn pages_shrink_with_the_size_of_their_events() {
        assert_eq!(page_limit(&texts(0, 0)), PAGE);
        assert_eq!(page_limit(&texts(64, 500)), PAGE);
        assert_eq!(page_limit(&texts(64, 32 * 1024)), 8);
        assert_eq!(page_limit(&texts(1, 300 * 1024)), 1);
    }
}
