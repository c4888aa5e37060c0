//! Waiting readers: one tail of the journal a process tells them what has come, so that an event wakes only those whom it
//! may concern and each of them reads its page once.
//!
//! A hint is never the truth: a reader that is hinted reads its page from the database, and one that missed hints reads
//! to be sure.

use std::sync::Arc;
use std::time::Duration;

use courant_api::{Event, TenantId, filter};
use courant_store::{EventQuery, Store};
use tokio::sync::{Notify, Semaphore, broadcast};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How soon events of other processes are noticed.
const POLL: Duration = Duration::from_millis(250);
/// Hints that a reader may fall behind before it reads to be sure.
const BACKLOG: usize = 256;
const PAGE: i64 = 500;
/// Pages that woken readers read at once; the rest of the database is for everybody else.
const READS: usize = 8;

/// What readers wait on.
#[derive(Debug)]
pub struct Live {
    hints: broadcast::Sender<Hint>,
    joined: Notify,
    reads: Semaphore,
    poll: Duration,
}

/// What has come.
#[derive(Clone, Debug)]
enum Hint {
    /// These events are readable.
    Events(Arc<[Summary]>),
    /// Something may have come.
    Unknown,
}

#[derive(Debug)]
struct Summary {
    seq: i64,
    tenant_id: TenantId,
    event_type: String,
    entity_type: String,
    entity_id: String,
    in_workspace: bool,
}

impl Summary {
    fn of(event: &Event) -> Self {
        Self {
            seq: event.sequence,
            tenant_id: event.tenant_id,
            event_type: event.event_type.clone(),
            entity_type: event.entity_type.clone(),
            entity_id: event.entity_id.clone(),
            in_workspace: event.workspace_id.is_some(),
        }
    }

    /// Whether the query may want it; which workspaces lie below one is for the database to say.
    fn may_concern(&self, tenant: TenantId, query: &EventQuery) -> bool {
        self.tenant_id == tenant
            && filter::matches(&query.prefixes, &self.event_type)
            && query.entity_type.as_ref().is_none_or(|t| *t == self.entity_type)
            && query.entity_id.as_ref().is_none_or(|id| *id == self.entity_id)
            && (query.workspace_id.is_none() || self.in_workspace)
    }
}

impl Default for Live {
    fn default() -> Self {
        Self::looking_every(POLL)
    }
}

impl Live {
    /// One that looks for what it was not told of only this often.
    pub fn looking_every(poll: Duration) -> Self {
        Self { hints: broadcast::channel(BACKLOG).0, joined: Notify::new(), reads: Semaphore::new(READS), poll }
    }

    /// Begins to listen. What becomes readable after this call is hinted at.
    pub fn join(&self) -> Hints {
        let hints = Hints(self.hints.subscribe());
        self.joined.notify_one();
        hints
    }

    /// Runs the read of a woken reader when it is its turn.
    pub async fn read<T>(&self, read: impl Future<Output = T>) -> T {
        // The semaphore is never closed.
        let _turn = self.reads.acquire().await;
        read.await
    }

    /// Follows the journal for as long as anybody listens; to be run by one worker.
    pub async fn follow(&self, store: &Store, stop: &CancellationToken) -> Result<(), courant_store::Error> {
        let mut appended = store.appended();
        while !stop.is_cancelled() {
            if self.hints.receiver_count() == 0 {
                tokio::select! { () = self.joined.notified() => {}, () = stop.cancelled() => return Ok(()) }
            }
            let mut last = store.journal_horizon().await?;
            // Who joined before this horizon was taken may have read an older one.
            let _nobody = self.hints.send(Hint::Unknown);
            while self.hints.receiver_count() > 0 && !stop.is_cancelled() {
                appended.mark_unchanged();
                let page = store.journal_scan(last, PAGE).await?;
                last = page.next;
                if !page.events.is_empty() {
                    let events = page.events.iter().map(Summary::of).collect();
                    let _nobody = self.hints.send(Hint::Events(events));
                }
                if !page.has_more {
                    tokio::select! { _ = appended.changed() => {}, () = sleep(self.poll) => {}, () = stop.cancelled() => {} }
                }
            }
        }
        Ok(())
    }
}

/// What one reader is hinted at.
#[derive(Debug)]
pub struct Hints(broadcast::Receiver<Hint>);

impl Hints {
    /// Waits for something that the query may want; up to which position there is something to read, as far as is known.
    pub async fn wait(&mut self, tenant: TenantId, query: &EventQuery) -> i64 {
        loop {
            match self.0.recv().await {
                Ok(Hint::Events(events)) => {
                    let wanted = events.iter().filter(|e| e.may_concern(tenant, query)).map(|e| e.seq).max();
                    if let Some(seq) = wanted {
                        return seq;
                    }
                }
                Ok(Hint::Unknown) | Err(broadcast::error::RecvError::Lagged(_)) => return 0,
                // The sender lives as long as the application.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use courant_api::WorkspaceId;
    use courant_store::Start;
    use uuid::Uuid;

    use super::*;

    fn query() -> EventQuery {
        EventQuery {
            prefixes: Vec::new(),
            workspace_id: None,
            entity_type: None,
            entity_id: None,
            start: Start::First,
            limit: 1,
        }
    }

    #[test]
    fn an_event_concerns_those_whose_filter_lets_it_pass() {
        let tenant = TenantId(Uuid::from_u128(1));
        let event = Summary {
            seq: 1,
            tenant_id: tenant,
            event_type: "invoice.paid".into(),
            entity_type: "invoice".into(),
            entity_id: "7".into(),
            in_workspace: false,
        };
        assert!(event.may_concern(tenant, &query()));
        assert!(!event.may_concern(TenantId(Uuid::from_u128(2)), &query()));
        assert!(event.may_concern(tenant, &EventQuery { prefixes: vec!["x.".into(), "invoice.".into()], ..query() }));
        assert!(!event.may_concern(tenant, &EventQuery { prefixes: vec!["invoice_".into()], ..query() }));
        assert!(!event.may_concern(tenant, &EventQuery { entity_type: Some("order".into()), ..query() }));
        let other = EventQuery { entity_type: Some("invoice".into()), entity_id: Some("8".into()), ..query() };
        assert!(!event.may_concern(tenant, &other));
        let workspace = EventQuery { workspace_id: Some(WorkspaceId(Uuid::from_u128(3))), ..query() };
        assert!(!event.may_concern(tenant, &workspace));
        assert!(Summary { in_workspace: true, ..event }.may_concern(tenant, &workspace));
    }
}
