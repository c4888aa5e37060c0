//! The journal: appending, the order, and reading by cursor.
//!
//! Readers are handed only what lies at or below the horizon, and move only to cursors they were given; so they see
//! every event once, in one order, however many writers commit in whatever order.

mod append;
mod group;
mod horizon;
pub(crate) mod incarnation;
pub(crate) mod lease;
mod page;
pub(crate) mod retention;
pub(crate) mod status;
mod tail;
pub(crate) mod texts;

use std::time::Duration;

use courant_api::cursor::JournalId;
use courant_api::event::Json;
use courant_api::{Cursor, Event, EventId, TenantId};
use uuid::Uuid;

pub use append::{AppendOutcome, EventDraft};
pub(crate) use group::Appender;
pub(crate) use horizon::Horizon;
use horizon::Look;
pub use page::{EventQuery, ScanBatch, Start};
pub use retention::{PRUNE_BATCH, PruneRequest, PruneStep, RetentionState, WhenBlocked};
pub use status::{DatabaseFacts, Held};
pub use tail::{TailBatch, TailEvent};

#[cfg(feature = "testing")]
use crate::db::Statement;
use crate::db::{Db, Dialect, Row, params};
use crate::{Error, Store};

/// A place in the order of the journal; events lie at places above 0.
pub type Position = i64;

/// Lists every text of appending; those of reading are in `texts`.
#[cfg(feature = "testing")]
pub(crate) static STATEMENTS: &[&Statement] = &[&append::FIND_BY_IDS, &append::FIND_WORKSPACES, &tail::ANCESTORS];

/// What names a journal in its cursors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    journal: Uuid,
    incarnation: u32,
}

/// Meets the journal for the first time.
pub(crate) async fn open(db: &Db, read_wait: Duration) -> Result<Horizon, Error> {
    Ok(Horizon::new(db.read((), |tx, ()| Box::pin(horizon::look(tx))).await?, read_wait))
}

impl Identity {
    fn new(journal: Uuid, incarnation: i64) -> Result<Self, Error> {
        let incarnation = incarnation.try_into().map_err(|_| Error::Corrupt("journal.incarnation".into()))?;
        Ok(Self { journal, incarnation })
    }

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
    /// The greatest position up to which the journal is settled now.
    pub async fn journal_horizon(&self) -> Result<Position, Error> {
        Ok(self.look().await?.horizon)
    }

    /// The cursor of a position of the present journal, as `tenant` sees it.
    pub fn journal_cursor(&self, tenant: TenantId, position: Position) -> String {
        self.horizon.proven().identity.cursor(tenant, position).encode()
    }

    /// Where the journal stands, by a look that begins now.
    pub(crate) async fn look(&self) -> Result<Look, Error> {
        match self.db.dialect() {
            Dialect::Postgres => self.horizon.look(&self.db).await,
            Dialect::Sqlite => self.db.read((), |tx, ()| Box::pin(horizon::look(tx))).await,
        }
    }

    /// What reading everybody's events goes by: as [`Self::settled`], without waiting for anything.
    async fn given_look(&self) -> Result<Option<Look>, Error> {
        match self.db.dialect() {
            Dialect::Postgres => self.horizon.look(&self.db).await.map(Some),
            Dialect::Sqlite => Ok(None),
        }
    }

    /// What a page goes by: on PostgreSQL a look that shows what was committed before now, on SQLite none, since a page
    /// finds it in its own snapshot.
    async fn settled(&self) -> Result<Option<Look>, Error> {
        match self.db.dialect() {
            Dialect::Postgres => self.horizon.settled(&self.db).await.map(Some),
            Dialect::Sqlite => Ok(None),
        }
    }

    /// One event of the tenant, once it is readable.
    pub async fn event_get(&self, tenant: TenantId, id: EventId) -> Result<Event, Error> {
        let settled = self.settled().await?;
        self.db
            .read((tenant, id), move |tx, (tenant, id)| {
                Box::pin(async move {
                    let look = horizon::or_look(tx, settled).await?;
                    let row = tx.query_opt(&texts::BY_ID, params![*tenant, *id, look.horizon]).await?;
                    event(&row.ok_or(Error::NotFound("event"))?, 0, look.identity)
                })
            })
            .await
    }
}
