//! rusqlite: WAL, synchronous FULL, one connection that writes, statements prepared once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rusqlite::{OptionalExtension as _, params};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{INSERT_COLUMNS, PageRow, SELECT_COLUMNS};
use crate::load::Blocking;
use crate::sample::{EventRow, Owner};

pub(crate) fn connect(url: &str) -> Result<rusqlite::Connection> {
    let path = url.strip_prefix("sqlite://").context("not a SQLite URL")?;
    let connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// The connection that writes; its clients take turns, as SQLite would make them.
#[derive(Clone)]
pub(crate) struct Writer(Arc<Mutex<rusqlite::Connection>>);

impl Writer {
    pub(crate) fn open(url: &str) -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new(connect(url)?))))
    }

    fn lock(&self) -> MutexGuard<'_, rusqlite::Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Inserts events, one transaction a call.
pub(crate) struct Insert {
    writer: Writer,
    text: String,
    owner: Owner,
    number: u64,
    rows: u64,
    over_http: bool,
}

impl Insert {
    pub(crate) fn new(writer: Writer, owner: Owner, rows: u64, over_http: bool) -> Self {
        let text = format!(
            "INSERT INTO event ({INSERT_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
        );
        Self { writer, text, owner, number: 0, rows, over_http }
    }
}

impl Blocking for Insert {
    fn call(&mut self) -> Result<u64> {
        let rows: Vec<EventRow> = (0..self.rows).map(|i| self.owner.row(self.number + i, self.over_http)).collect();
        self.number += self.rows;
        let connection = self.writer.lock();
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut insert = connection.prepare_cached(&self.text)?;
        for row in &rows {
            let optional = |id: Option<Uuid>| id.map(Uuid::into_bytes);
            insert.execute(params![
                row.tenant_id.as_bytes(),
                row.id.as_bytes(),
                row.event_type,
                row.schema_version,
                row.entity_type,
                row.entity_id,
                optional(row.workspace_id),
                optional(row.actor_id),
                row.session_id,
                row.correlation_id,
                row.causation_id,
                row.request_id,
                row.payload,
                row.occurred_at,
            ])?;
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(self.rows)
    }
}

/// Reads a tenant's events page by page, and writes each page out as JSON.
pub(crate) struct Pages {
    connection: rusqlite::Connection,
    text: String,
    tenant: Uuid,
    after: i64,
    limit: i64,
}

impl Pages {
    pub(crate) fn new(url: &str, tenant: Uuid, limit: i64) -> Result<Self> {
        let text =
            format!("SELECT {SELECT_COLUMNS} FROM event WHERE tenant_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
        Ok(Self { connection: connect(url)?, text, tenant, after: 0, limit })
    }
}

impl Blocking for Pages {
    fn call(&mut self) -> Result<u64> {
        let mut select = self.connection.prepare_cached(&self.text)?;
        let mut rows = select.query(params![self.tenant.as_bytes(), self.after, self.limit])?;
        let mut page = Vec::new();
        while let Some(row) = rows.next()? {
            page.push(page_row(row)?);
        }
        let json = serde_json::to_vec(&page)?;
        ensure!(json.len() > page.len(), "an empty page");
        self.after =
            if page.len() as u64 == self.limit.unsigned_abs() { page.last().map_or(0, |e| e.sequence) } else { 0 };
        Ok(page.len() as u64)
    }
}

fn page_row(row: &rusqlite::Row<'_>) -> Result<PageRow> {
    let id = |i: usize| anyhow::Ok(Uuid::from_bytes(row.get(i)?));
    let optional_id = |i: usize| anyhow::Ok(row.get::<_, Option<[u8; 16]>>(i)?.map(Uuid::from_bytes));
    Ok(PageRow {
        sequence: row.get(0)?,
        id: id(1)?,
        tenant_id: id(2)?,
        event_type: row.get(3)?,
        schema_version: row.get(4)?,
        entity_type: row.get(5)?,
        entity_id: row.get(6)?,
        workspace_id: optional_id(7)?,
        actor_id: optional_id(8)?,
        session_id: row.get(9)?,
        correlation_id: row.get(10)?,
        causation_id: row.get(11)?,
        request_id: row.get(12)?,
        payload: RawValue::from_string(row.get(13)?)?,
        occurred_at: courant_api::Timestamp::from_micros(row.get(14)?),
    })
}

/// Claims deliveries and deletes them: two transactions.
pub(crate) struct Queue {
    writer: Writer,
    server: Uuid,
}

const CLAIM: &str = "UPDATE delivery SET status = 'processing', attempt_count = attempt_count + 1, \
        claim_token = claim_token + 1, claimed_by = ?2, last_attempted_at = ?1 \
    WHERE id IN ( \
        SELECT d.id FROM delivery d \
        WHERE d.status IN ('pending', 'failed') AND d.run_at <= ?1 \
            AND NOT EXISTS (SELECT 1 FROM integration i WHERE i.id = d.integration_id AND i.paused) \
        ORDER BY d.run_at, d.id LIMIT ?3) \
    RETURNING id, claim_token, payload";

impl Queue {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer, server: courant_server::ids::new_id() }
    }
}

impl Blocking for Queue {
    fn call(&mut self) -> Result<u64> {
        let connection = self.writer.lock();
        let now = courant_server::clock::now().micros();
        let mut claimed: Vec<([u8; 16], i64)> = Vec::new();
        {
            let mut claim = connection.prepare_cached(CLAIM)?;
            let mut rows = claim.query(params![now, self.server.as_bytes(), crate::queue::BATCH])?;
            while let Some(row) = rows.next()? {
                let payload: String = row.get(2)?;
                ensure!(!payload.is_empty(), "a delivery without content");
                claimed.push((row.get(0)?, row.get(1)?));
            }
        }
        if claimed.is_empty() {
            return Ok(0);
        }
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut delete = connection
            .prepare_cached("DELETE FROM delivery WHERE id = ?1 AND status = 'processing' AND claim_token = ?2")?;
        let mut deleted = 0;
        for (id, token) in &claimed {
            deleted += delete.execute(params![id, token])?;
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        ensure!(deleted == claimed.len(), "deleted {deleted} of {}", claimed.len());
        Ok(deleted as u64)
    }
}

/// Makes the outbox as it would be with so many due deliveries of one integration, right after they came.
pub(crate) fn fill_outbox(url: &str, deliveries: usize, tenant: Uuid, integration: Uuid, payload: &str) -> Result<()> {
    let connection = connect(url)?;
    let now = courant_server::clock::now().micros();
    // Ids grow with time, as ours do.
    let filled = connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?5) \
        INSERT INTO delivery (id, tenant_id, integration_id, event_id, event_type, cause_type, status, run_at, \
            attempt_count, claim_token, payload, created_at) \
        SELECT unhex(printf('%016x%016x', ?3, i)), ?1, ?2, unhex(printf('%016x%016x', ?3, i)), 'journal_event', 'build.finished', 'pending', ?3, 0, 0, ?4, ?3 FROM n",
        params![tenant.as_bytes(), integration.as_bytes(), now, payload, i64::try_from(deliveries)?],
    )?;
    ensure!(filled == deliveries, "the outbox could not be filled");
    let busy: Option<i64> = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).optional()?;
    ensure!(busy.is_some(), "no checkpoint");
    Ok(())
}

/// Fills the journal without its indexes and triggers and makes them again, which is quicker.
pub(crate) fn fill_journal(url: &str, text: &str) -> Result<()> {
    let connection = connect(url)?;
    connection.execute_batch("PRAGMA synchronous = off; PRAGMA cache_size = -200000; BEGIN")?;
    let list =
        "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = 'event' AND type <> 'table' AND sql IS NOT NULL";
    let made: Vec<[String; 3]> = {
        let mut made = connection.prepare(list)?;
        let rows = made.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for [kind, name, _] in &made {
        connection.execute_batch(&format!("DROP {kind} {name}"))?;
    }
    connection.execute_batch(text)?;
    for [.., sql] in &made {
        connection.execute_batch(sql)?;
    }
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}
