//! The journal's end for readers that are matched in memory: every tenant's new events, and where each lies in its
//! tenant's tree.
//!
//! It must never be handed to a client as it is: it knows no tenant and no right.

use std::collections::HashMap;
use std::sync::Arc;

use courant_api::{Cursor, Event, TenantId, WorkspaceId};
use uuid::Uuid;

use super::horizon::{self, Look};
use super::page::scan;
use super::{Position, ScanBatch};
use crate::db::{Statement, Tx, params};
use crate::{Error, Store};

/// Each given workspace with itself and everything above it.
pub(super) static ANCESTORS: Statement = Statement::new(
    "journal.ANCESTORS",
    "WITH RECURSIVE up(start, tenant_id, id, parent_id, distance) AS (
        SELECT w.id, w.tenant_id, w.id, w.parent_id, CAST(0 AS bigint) FROM {uuids $1} x
            JOIN workspace w ON w.id = x.value
        UNION ALL
        SELECT u.start, w.tenant_id, w.id, w.parent_id, u.distance + 1 FROM up u
            JOIN workspace w ON w.tenant_id = u.tenant_id AND w.id = u.parent_id WHERE u.distance < 100)
    SELECT start, tenant_id, id FROM up",
);

/// What came after a position.
#[derive(Clone, Debug)]
pub struct TailBatch {
    /// Differs whenever the positions belong to another journal, as after a restore.
    pub journal: Cursor,
    /// Events in journal order.
    pub events: Vec<TailEvent>,
    /// Where to read on: everything up to here is in this batch.
    pub next: Position,
    /// Whether more is readable now.
    pub has_more: bool,
}

/// An event, and where it lies.
#[derive(Clone, Debug)]
pub struct TailEvent {
    /// The event.
    pub event: Event,
    /// Its workspace and everything above that, as the tree is now; none at tenant level.
    pub within: Arc<[WorkspaceId]>,
}

impl Store {
    /// What every tenant appended after `after`.
    pub async fn journal_tail(&self, after: Position, limit: i64) -> Result<TailBatch, Error> {
        let look = self.given_look().await?;
        self.db.read((after, limit), move |tx, (after, limit)| Box::pin(read(tx, look, *after, *limit))).await
    }
}

async fn read(tx: &mut Tx, look: Option<Look>, after: Position, limit: i64) -> Result<TailBatch, Error> {
    let look = horizon::or_look(tx, look).await?;
    let ScanBatch { events, next, has_more, .. } = scan(tx, look, after, limit).await?;
    let trees = trees(tx, &events).await?;
    let nowhere: Arc<[WorkspaceId]> = Arc::default();
    let place = |event: &Event| {
        let place = event.workspace_id.and_then(|id| trees.get(&(event.tenant_id, id)));
        Arc::clone(place.unwrap_or(&nowhere))
    };
    let events = events.into_iter().map(|event| TailEvent { within: place(&event), event }).collect();
    Ok(TailBatch { journal: look.identity.cursor(TenantId(Uuid::nil()), 0), events, next, has_more })
}

/// The ancestors of every workspace that the events name.
async fn trees(tx: &mut Tx, events: &[Event]) -> Result<HashMap<(TenantId, WorkspaceId), Arc<[WorkspaceId]>>, Error> {
    let mut named: Vec<Uuid> = events.iter().filter_map(|e| e.workspace_id).map(WorkspaceId::uuid).collect();
    named.sort_unstable();
    named.dedup();
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    let mut trees: HashMap<(TenantId, WorkspaceId), Vec<WorkspaceId>> = HashMap::new();
    for row in tx.query(&ANCESTORS, params![named]).await? {
        trees.entry((row.get(1)?, row.get(0)?)).or_default().push(row.get(2)?);
    }
    Ok(trees.into_iter().map(|(start, tree)| (start, tree.into())).collect())
}
