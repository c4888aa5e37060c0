//! The journal: appending, the order, and reading by cursor.
//!
//! Readers are handed only what lies at or below the horizon, and move only to cursors they were given; so they see
//! every event once, in one order, however many writers commit in whatever order.

mod append;
mod group;
mod page;
mod tail;

use courant_api::cursor::JournalId;
use courant_api::event::Json;
use courant_api::{Cursor, Event, EventId, TenantId};
use uuid::Uuid;

pub use append::{AppendOutcome, EventDraft};
pub(crate) use group::Appender;
pub use page::{EventQuery, ScanBatch, Start};
pub use tail::{TailBatch, TailEvent};

#[cfg(feature = "testing")]
use crate::db::Statement;
use crate::db::{Db, Dialect, Row, Tx, params};
use crate::{Error, Store, twin};

/// A place in the order of the journal; events lie at places above 0.
pub type Position = i64;

/// Lists every text of the noun.
#[cfg(feature = "testing")]
pub(crate) static STATEMENTS: &[&Statement] = &[
    &append::FIND_BY_IDS,
    &append::FIND_WORKSPACES,
    &page::FLOOR,
    &page::BY_ID,
    &page::GREATEST,
    &page::PLAIN,
    &page::PLAIN_BACK,
    &page::ENTITY,
    &page::ENTITY_BACK,
    &page::WALK,
    &page::WALK_BACK,
    &page::WORKSPACE_EXISTS,
    &page::SCAN,
    &page::NEXT_TIME,
    &page::FIRST_SINCE,
    &tail::ANCESTORS,
];

/// What names a journal in its cursors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    journal: Uuid,
    incarnation: u32,
}

/// The journal's state at one moment.
#[derive(Clone, Copy, Debug)]
struct State {
    identity: Identity,
    horizon: Position,
}

pub(crate) async fn identity(db: &Db) -> Result<Identity, Error> {
    db.read((), |tx, ()| Box::pin(async move { Ok(state(tx).await?.identity) })).await
}

async fn state(tx: &mut Tx) -> Result<State, Error> {
    let statement = match tx.dialect() {
        Dialect::Postgres => &twin::postgres::horizon::STATE,
        Dialect::Sqlite => &twin::sqlite::horizon::STATE,
    };
    let row = tx.query_one(statement, params![]).await?;
    let incarnation = row.get::<i64>(1)?;
    let deleted: Position = row.get(2)?;
    Ok(State {
        identity: Identity {
            journal: row.get(0)?,
            incarnation: incarnation.try_into().map_err(|_| Error::Corrupt("journal.incarnation".into()))?,
        },
        horizon: row.get::<Position>(3)?.max(deleted),
    })
}

impl Identity {
    fn cursor(self, tenant: TenantId, seq: Position) -> Cursor {
        Cursor { journal: JournalId::new(self.journal, tenant.uuid()), incarnation: self.incarnation, seq }
    }
}

/// The columns that [`event`] reads, of a table called `e`.
macro_rules! event_columns {
    () => {
        "e.seq, e.id, e.tenant_id, e.type, e.schema_version, e.entity_type, e.entity_id, e.workspace_id, e.actor_id, \
         e.session_id, e.correlation_id, e.causation_id, e.request_id, e.payload, e.occurred_at"
    };
}
pub(crate) use event_columns;

/// Reads [`event_columns!`] from column `at` on.
fn event(row: &Row, at: usize, identity: Identity) -> Result<Event, Error> {
    let (sequence, tenant_id): (Position, TenantId) = (row.get(at)?, row.get(at + 2)?);
    let version = row.get::<i64>(at + 4)?;
    let corrupt = |what: &str| Error::Corrupt(format!("event {sequence}: {what}"));
    Ok(Event {
        sequence,
        id: row.get(at + 1)?,
        tenant_id,
        event_type: row.get(at + 3)?,
        schema_version: version.try_into().map_err(|_| corrupt("schema_version"))?,
        entity_type: row.get(at + 5)?,
        entity_id: row.get(at + 6)?,
        workspace_id: row.get(at + 7)?,
        actor_id: row.get(at + 8)?,
        session_id: row.get(at + 9)?,
        correlation_id: row.get(at + 10)?,
        causation_id: row.get(at + 11)?,
        request_id: row.get(at + 12)?,
        payload: Json::parse(row.get::<String>(at + 13)?).map_err(|_| corrupt("payload"))?,
        occurred_at: row.get(at + 14)?,
        cursor: identity.cursor(tenant_id, sequence).encode(),
    })
}

impl Store {
    /// The greatest position up to which the journal is settled.
    pub async fn journal_horizon(&self) -> Result<Position, Error> {
        self.db.read((), |tx, ()| Box::pin(async move { Ok(state(tx).await?.horizon) })).await
    }

    /// The cursor of a position, as `tenant` sees it.
    pub fn journal_cursor(&self, tenant: TenantId, position: Position) -> String {
        self.identity.cursor(tenant, position).encode()
    }

    /// One event of the tenant, once it is readable.
    pub async fn event_get(&self, tenant: TenantId, id: EventId) -> Result<Event, Error> {
        let identity = self.identity;
        self.db
            .read((tenant, id), move |tx, (tenant, id)| {
                Box::pin(async move {
                    let horizon = state(tx).await?.horizon;
                    let row = tx.query_opt(&page::BY_ID, params![*tenant, *id, horizon]).await?;
                    event(&row.ok_or(Error::NotFound("event"))?, 0, identity)
                })
            })
            .await
    }
}
