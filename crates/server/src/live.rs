//! Readers at the journal's end: one tail a process reads what is new once, and every reader takes its own from there.
//!
//! Events come as batches that say from where to where they reach. A reader whose position lies below a batch's start,
//! that was left behind, or that stands in another journal reads the database until it has caught up; so nothing is ever
//! skipped, and nothing is told twice. A batch must never reach a client without the client's tenant and filter.

mod reader;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use courant_api::{Cursor, Event, TenantId, WorkspaceId, filter};
use courant_store::{EventQuery, Store, TailBatch, TailEvent};
use tokio::sync::{Notify, Semaphore, broadcast};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub use reader::{Events, Found, Reader, page_of};

/// How soon events of other processes are noticed when nothing else tells of them.
const POLL: Duration = Duration::from_millis(250);
/// Batches that a reader may fall behind before it reads the database.
const BACKLOG: usize = 256;
/// A batch ends at the event with which its payloads reach so many bytes; with [`BACKLOG`] the bound of what is kept for
/// readers that do not keep up.
const BATCH_BYTES: usize = 128 * 1024;
const PAGE: i64 = 200;
/// Pages that readers which catch up read at once; the rest of the database is for everybody else.
const READS: usize = 8;

/// What readers at the journal's end share.
#[derive(Debug)]
pub struct Live {
    batches: broadcast::Sender<Arc<Batch>>,
    joined: Notify,
    reads: Semaphore,
    poll: Duration,
    /// Which incarnation the tail reads, and how far it has come.
    reached: Mutex<Option<(u32, i64)>>,
}

/// Everything that was appended after one position up to another.
#[derive(Debug)]
pub struct Batch {
    incarnation: u32,
    from: i64,
    to: i64,
    /// Whether more was readable when it was read.
    more: bool,
    items: Box<[Item]>,
}

/// An event as all its readers share it.
#[derive(Debug)]
pub struct Item {
    event: Event,
    within: Arc<[WorkspaceId]>,
    json: OnceLock<Bytes>,
}

/// How a batch fits a reader's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// All of it is read already.
    Old,
    /// It goes on where the reader stands, or before that.
    Next,
    /// Something lies between, or it is of another journal.
    Gap,
}

impl Batch {
    fn fit(&self, at: &Cursor) -> Fit {
        if self.incarnation != at.incarnation || self.from > at.seq {
            Fit::Gap
        } else if self.to <= at.seq {
            Fit::Old
        } else {
            Fit::Next
        }
    }

    /// Which of its events a reader at `after` wants.
    fn wanted(&self, tenant: TenantId, query: &EventQuery, after: i64) -> Box<[usize]> {
        let wanted = |item: &Item| item.event.sequence > after && item.is_wanted(tenant, query);
        self.items.iter().enumerate().filter(|(_, item)| wanted(item)).map(|(index, _)| index).collect()
    }
}

impl Item {
    fn new(TailEvent { event, within }: TailEvent) -> Self {
        Self { event, within, json: OnceLock::new() }
    }

    fn is_wanted(&self, tenant: TenantId, query: &EventQuery) -> bool {
        let event = &self.event;
        event.tenant_id == tenant
            && filter::matches(&query.prefixes, &event.event_type)
            && query.entity_type.as_ref().is_none_or(|kind| *kind == event.entity_type)
            && query.entity_id.as_ref().is_none_or(|id| *id == event.entity_id)
            && query.workspace_id.is_none_or(|id| self.within.contains(&id))
    }

    /// The event's JSON, made for the first who asks.
    fn json(&self) -> Result<Bytes, serde_json::Error> {
        if let Some(json) = self.json.get() {
            return Ok(json.clone());
        }
        let json = json_of(&self.event)?;
        Ok(self.json.get_or_init(|| json).clone())
    }
}

fn json_of(event: &Event) -> Result<Bytes, serde_json::Error> {
    serde_json::to_vec(event).map(Bytes::from)
}

impl Default for Live {
    fn default() -> Self {
        Self::looking_every(POLL)
    }
}

impl Live {
    /// One that looks for what it was not told of only this often.
    pub fn looking_every(poll: Duration) -> Self {
        Self {
            batches: broadcast::channel(BACKLOG).0,
            joined: Notify::new(),
            reads: Semaphore::new(READS),
            poll,
            reached: Mutex::default(),
        }
    }

    /// Begins to listen: what becomes readable after this call comes in a batch.
    fn join(&self) -> Feed {
        let feed = Feed(self.batches.subscribe());
        self.joined.notify_one();
        feed
    }

    /// Runs the read of a reader that catches up when it is its turn.
    async fn read<T>(&self, read: impl Future<Output = T>) -> T {
        // The semaphore is never closed.
        let _turn = self.reads.acquire().await;
        read.await
    }

    /// Whether the tail has come further than this cursor. A look at the database may see less than an earlier one did,
    /// while an append is just about to take its place.
    fn is_past(&self, at: &Cursor) -> bool {
        let reached = *self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.is_some_and(|(incarnation, to)| incarnation == at.incarnation && to > at.seq)
    }

    fn send(&self, batch: Batch) {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = Some((batch.incarnation, batch.to));
        // An error says that nobody listens.
        let _nobody = self.batches.send(Arc::new(batch));
    }

    /// Follows the journal for as long as anybody listens; to be run by one worker.
    pub async fn follow(&self, store: &Store, stop: &CancellationToken) -> Result<(), courant_store::Error> {
        let mut appended = store.appended();
        while !stop.is_cancelled() {
            if self.batches.receiver_count() == 0 {
                tokio::select! { () = self.joined.notified() => {}, () = stop.cancelled() => return Ok(()) }
            }
            let mut last = store.journal_horizon().await?;
            let mut journal = None;
            while self.batches.receiver_count() > 0 && !stop.is_cancelled() {
                appended.mark_unchanged();
                let page = store.journal_tail(last, PAGE).await?;
                let incarnation = page.journal.incarnation;
                match journal {
                    // Who joined before this look may have read less; an empty batch tells them.
                    None => self.send(Batch { incarnation, from: last, to: last, more: false, items: Box::default() }),
                    Some(known) if known != page.journal => break,
                    Some(_) => {}
                }
                journal = Some(page.journal);
                let (next, has_more) = (page.next, page.has_more);
                for batch in batches(last, page) {
                    self.send(batch);
                }
                last = next;
                if !has_more {
                    tokio::select! { _ = appended.changed() => {}, () = sleep(self.poll) => {}, () = stop.cancelled() => {} }
                }
            }
        }
        Ok(())
    }
}

/// A page of the tail in pieces of bounded size, one after the other.
fn batches(after: i64, page: TailBatch) -> Vec<Batch> {
    let incarnation = page.journal.incarnation;
    let (mut done, mut from, mut bytes) = (Vec::new(), after, 0);
    let mut items: Vec<Item> = Vec::new();
    let mut events = page.events.into_iter().peekable();
    while let Some(tail) = events.next() {
        bytes += tail.event.payload.text().len();
        let to = tail.event.sequence;
        items.push(Item::new(tail));
        if bytes >= BATCH_BYTES && events.peek().is_some() {
            done.push(Batch { incarnation, from, to, more: true, items: std::mem::take(&mut items).into() });
            (from, bytes) = (to, 0);
        }
    }
    if page.next > from {
        done.push(Batch { incarnation, from, to: page.next, more: page.has_more, items: items.into() });
    }
    done
}

/// What one reader listens to.
#[derive(Debug)]
struct Feed(broadcast::Receiver<Arc<Batch>>);

impl Feed {
    /// The next batch; none when some are lost for this reader.
    async fn next(&mut self) -> Option<Arc<Batch>> {
        match self.0.recv().await {
            Ok(batch) => Some(batch),
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            // The sender lives as long as the application.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
