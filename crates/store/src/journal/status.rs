//! Diagnosis: how a journal stands, who holds its readers back, and whether the database is fit to keep it.
//!
//! Of other tenants it must tell nothing; positions are numbers of the whole journal, as in every cursor.

use courant_api::operations::{ConsumerKind, ConsumerStatus, HorizonHolder, JournalPlace, JournalStatus};
use courant_api::{TenantId, Timestamp};

use super::Position;
use super::retention::{ANNOUNCER, NEXT_TIME, STATE};
use crate::db::{Dialect, Tx, params, statements};
use crate::{Error, Store};

statements! { "status":
    HEAD = "SELECT coalesce(max(e.seq), 0) FROM event e";
    /// Who has appended, not ended, and so holds the horizon below the head $1; the lock is the one that appends take. A
    /// prepared transaction is known by the lock on its own id: its virtual one may still be its session's.
    HOLDERS only Postgres = "SELECT l.pid::bigint, a.application_name, a.state, p.gid::text,
            floor(extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared)))::bigint
        FROM pg_locks l
        LEFT JOIN pg_stat_activity a ON a.pid = l.pid
        LEFT JOIN pg_locks t ON l.pid IS NULL AND t.pid IS NULL AND t.locktype = 'transactionid' AND t.granted
            AND t.virtualtransaction = l.virtualtransaction
        LEFT JOIN pg_prepared_xacts p ON p.transaction = t.transactionid
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint >> 16) = 19022
            AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
            AND (((l.classid::bigint & 65535) << 32) | l.objid::bigint) < $1
        ORDER BY (((l.classid::bigint & 65535) << 32) | l.objid::bigint), 5 DESC NULLS LAST LIMIT 20";
    LEASES = "SELECT c.name, c.seq, c.expires_at, (
            SELECT e.occurred_at FROM event e WHERE e.tenant_id = $1 AND e.seq > c.seq AND e.seq <= $2
            ORDER BY e.seq LIMIT 1)
        FROM consumer_lease c WHERE c.tenant_id = $1 ORDER BY c.name LIMIT 2000";
    BLOCKED_LEASE = "SELECT count(*) FROM consumer_lease c WHERE c.tenant_id = $1 AND c.expires_at > $2 AND (
            SELECT e.occurred_at FROM event e WHERE e.tenant_id = $1 AND e.seq > c.seq AND e.seq <= $3
            ORDER BY e.seq LIMIT 1) < $4";
    SCHEMA = "SELECT coalesce(max(number), 0) FROM schema_migration";
    SERVER_POSTGRES only Postgres = "SELECT current_setting('server_version'),
            (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
            current_setting('statement_timeout'), current_setting('lock_timeout'),
            current_setting('idle_in_transaction_session_timeout'),
            has_table_privilege('event', 'INSERT') AND has_table_privilege('event', 'DELETE')
                AND has_table_privilege('delivery', 'UPDATE') AND has_table_privilege('tenant_journal', 'UPDATE')";
    SERVER_SQLITE only Sqlite = "SELECT sqlite_version()";
    /// Changes nothing, and fails where nothing can be changed.
    TOUCH = "DELETE FROM consumer_lease WHERE expires_at < 0";
}

/// What the database says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// `PostgreSQL 17.2` or `SQLite 3.50.4`.
    pub version: String,
    /// The number of the newest migration that was applied.
    pub schema: i64,
    /// Its clock; none: it has this machine's.
    pub clock: Option<Timestamp>,
    /// The sessions' bounds on statements, lock waits and idle transactions; none: it has no sessions.
    pub session_timeouts: Option<[String; 3]>,
    /// Why it cannot be written, if it cannot.
    pub unwritable: Option<String>,
}

/// Who holds a tenant's retention back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The announcer does.
    pub by_announcer: bool,
    /// At least one lease does.
    pub by_lease: bool,
}

fn lag(now: Timestamp, next: Option<Timestamp>) -> i64 {
    next.map_or(0, |at| (now.micros() - at.micros() - 1).max(0) / 1_000_000 + 1)
}

impl Store {
    /// How the tenant's journal stands; `retention_us` is how long its events are kept.
    pub async fn journal_status(
        &self,
        tenant: TenantId,
        now: Timestamp,
        retention_us: Option<i64>,
    ) -> Result<JournalStatus, Error> {
        let horizon = self.journal_horizon().await?;
        let input = (self.clone(), tenant, now, retention_us, horizon);
        self.db
            .read(input, |tx, (store, tenant, now, retention, horizon)| {
                Box::pin(status(tx, store, *tenant, *now, *retention, *horizon))
            })
            .await
    }

    /// Who holds back that the tenant's events from before `cutoff` are deleted.
    pub async fn retention_held(&self, tenant: TenantId, now: Timestamp, cutoff: Timestamp) -> Result<Held, Error> {
        let horizon = self.journal_horizon().await?;
        self.db
            .read((tenant, now, cutoff, horizon), |tx, (tenant, now, cutoff, horizon)| {
                Box::pin(async move {
                    let announcer: Position = tx.query_one(&ANNOUNCER, params![]).await?.get(0)?;
                    let next = tx.query_opt(&NEXT_TIME, params![*tenant, announcer, *horizon]).await?;
                    let by_announcer = next.is_some_and(|row| row.get::<Timestamp>(0).is_ok_and(|at| at < *cutoff));
                    let held = tx.query_one(&BLOCKED_LEASE, params![*tenant, *now, *horizon, *cutoff]).await?;
                    Ok(Held { by_announcer, by_lease: held.get::<i64>(0)? > 0 })
                })
            })
            .await
    }

    /// What the database says of itself, and whether it can be written.
    pub async fn database_facts(&self) -> Result<DatabaseFacts, Error> {
        let mut facts = self.db.read((), |tx, ()| Box::pin(facts(tx))).await?;
        let touched = self.db.write((), |tx, ()| Box::pin(async move { tx.execute(&TOUCH, params![]).await })).await;
        facts.unwritable = facts.unwritable.or(touched.err().map(|error| error.to_string()));
        Ok(facts)
    }
}

async fn facts(tx: &mut Tx) -> Result<DatabaseFacts, Error> {
    let schema = tx.query_one(&SCHEMA, params![]).await?.get(0)?;
    if tx.dialect() == Dialect::Sqlite {
        let version: String = tx.query_one(&SERVER_SQLITE, params![]).await?.get(0)?;
        let version = format!("SQLite {version}");
        return Ok(DatabaseFacts { version, schema, clock: None, session_timeouts: None, unwritable: None });
    }
    let row = tx.query_one(&SERVER_POSTGRES, params![]).await?;
    let missing = "this user lacks rights on Courant's tables".to_owned();
    Ok(DatabaseFacts {
        version: format!("PostgreSQL {}", row.get::<String>(0)?),
        schema,
        clock: Some(row.get(1)?),
        session_timeouts: Some([row.get(2)?, row.get(3)?, row.get(4)?]),
        unwritable: (!row.get::<bool>(5)?).then_some(missing),
    })
}

async fn status(
    tx: &mut Tx,
    store: &Store,
    tenant: TenantId,
    now: Timestamp,
    retention_us: Option<i64>,
    horizon: Position,
) -> Result<JournalStatus, Error> {
    let head = tx.query_one(&HEAD, params![]).await?.get::<Position>(0)?.max(horizon);
    let mut holders = Vec::new();
    if tx.dialect() == Dialect::Postgres {
        for row in tx.query(&HOLDERS, params![head]).await? {
            holders.push(HorizonHolder {
                pid: row.get(0)?,
                application_name: row.get(1)?,
                state: row.get(2)?,
                gid: row.get(3)?,
                age_seconds: row.get(4)?,
            });
        }
    }
    let cutoff = retention_us.map(|us| now.plus_micros(-us));
    let (floor, through): (Position, Position) = match tx.query_opt(&STATE, params![tenant]).await? {
        Some(row) => (row.get(0)?, row.get(1)?),
        None => (0, 0),
    };
    let oldest = tx.query_opt(&NEXT_TIME, params![tenant, floor, horizon]).await?;
    let announcer: Position = tx.query_one(&ANNOUNCER, params![]).await?.get(0)?;
    let next = tx.query_opt(&NEXT_TIME, params![tenant, announcer, horizon]).await?;
    let standing = |kind, name, seq, expires_at: Option<Timestamp>, next: Option<Timestamp>| ConsumerStatus {
        kind,
        name,
        cursor: store.journal_cursor(tenant, seq),
        lag_seconds: lag(now, next),
        expires_at,
        blocks_retention: expires_at.is_none_or(|at| at > now)
            && cutoff.is_some_and(|cutoff| next.is_some_and(|at| at < cutoff)),
    };
    let next = next.map(|row| row.get(0)).transpose()?;
    let mut consumers = vec![standing(ConsumerKind::Announcer, "announcer".to_owned(), announcer, None, next)];
    for row in tx.query(&LEASES, params![tenant, horizon]).await? {
        consumers.push(standing(ConsumerKind::Lease, row.get(0)?, row.get(1)?, Some(row.get(2)?), row.get(3)?));
    }
    let place = |sequence| JournalPlace { sequence, cursor: store.journal_cursor(tenant, sequence) };
    Ok(JournalStatus {
        head: place(head),
        horizon: place(horizon),
        distance: head - horizon,
        holders,
        floor_cursor: store.journal_cursor(tenant, floor),
        oldest_event_at: oldest.map(|row| row.get(0)).transpose()?,
        retention_seconds: retention_us.map(|us| us / 1_000_000),
        pruning: through > floor,
        appends_waiting: store.appender.waiting(),
        consumers,
    })
}
