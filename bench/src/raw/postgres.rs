//! tokio-postgres: one connection a client, statements prepared once, a transaction in one round trip.

use anyhow::{Context, Result, ensure};
use futures_util::future::join3;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Row, Statement};
use uuid::Uuid;

use super::{INSERT_COLUMNS, PageRow, SELECT_COLUMNS};
use crate::load::Client;
use crate::sample::{EventRow, Owner};

/// A connection and the task that drives it.
pub(crate) struct Connection {
    pub(super) client: tokio_postgres::Client,
    _driver: JoinSet<()>,
}

impl Connection {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let mut config: tokio_postgres::Config = url.parse()?;
        // As our own sessions are: the plan of a prepared statement must not hang on when a table was last analysed.
        config.options("-c jit=off -c plan_cache_mode=force_generic_plan");
        let (client, connection) = config.connect(NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // Its end is the client's end, or the client's calls say why.
            let _ended = connection.await;
        });
        Ok(Self { client, _driver: driver })
    }

    pub(crate) async fn batch(&self, sql: &str) -> Result<()> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// One statement in a transaction of its own, all sent at once.
    async fn transaction(&self, statement: &Statement, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let client = &self.client;
        let (begun, rows, committed) =
            join3(client.batch_execute("BEGIN"), client.query(statement, params), client.batch_execute("COMMIT")).await;
        begun?;
        let rows = rows?;
        committed?;
        Ok(rows)
    }

    /// The one text that a query answers.
    pub(crate) async fn text(&self, sql: &str) -> Result<String> {
        Ok(self.client.query_one(sql, &[]).await?.try_get(0)?)
    }
}

/// Inserts one event a transaction.
pub(crate) struct InsertOne {
    connection: Connection,
    insert: Statement,
    owner: Owner,
    number: u64,
    over_http: bool,
}

impl InsertOne {
    pub(crate) async fn new(url: &str, owner: Owner, over_http: bool) -> Result<Self> {
        let text = format!(
            "INSERT INTO event ({INSERT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
             RETURNING id, seq"
        );
        Self::by(&text, url, owner, over_http).await
    }

    /// By another statement, which takes the same parameters and answers the same columns.
    pub(crate) async fn by(text: &str, url: &str, owner: Owner, over_http: bool) -> Result<Self> {
        let connection = Connection::open(url).await?;
        let insert = connection.client.prepare(text).await?;
        Ok(Self { connection, insert, owner, number: 0, over_http })
    }
}

impl Client for InsertOne {
    async fn call(&mut self) -> Result<u64> {
        self.number += 1;
        let row = self.owner.row(self.number, self.over_http);
        let params: [&(dyn ToSql + Sync); 14] = [
            &row.tenant_id,
            &row.id,
            &row.event_type,
            &row.schema_version,
            &row.entity_type,
            &row.entity_id,
            &row.workspace_id,
            &row.actor_id,
            &row.session_id,
            &row.correlation_id,
            &row.causation_id,
            &row.request_id,
            &row.payload,
            &row.occurred_at,
        ];
        let inserted = self.connection.transaction(&self.insert, &params).await?;
        let _seq: i64 = inserted.first().context("nothing was inserted")?.try_get(1)?;
        Ok(1)
    }
}

/// Inserts many events with one statement.
pub(crate) struct InsertMany {
    connection: Connection,
    insert: Statement,
    owner: Owner,
    number: u64,
    rows: u64,
    over_http: bool,
}

impl InsertMany {
    pub(crate) async fn new(url: &str, owner: Owner, rows: u64) -> Result<Self> {
        let text = format!(
            "INSERT INTO event ({INSERT_COLUMNS}) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], \
             $5::text[], $6::text[], $7::uuid[], $8::uuid[], $9::text[], $10::text[], $11::text[], $12::text[], \
             $13::text[], $14::bigint[]) RETURNING id, seq"
        );
        Self::by(&text, url, owner, rows, true).await
    }

    /// By another statement, which takes the same parameters and answers a row for each event.
    pub(crate) async fn by(text: &str, url: &str, owner: Owner, rows: u64, over_http: bool) -> Result<Self> {
        let connection = Connection::open(url).await?;
        let insert = connection.client.prepare(text).await?;
        Ok(Self { connection, insert, owner, number: 0, rows, over_http })
    }
}

impl Client for InsertMany {
    async fn call(&mut self) -> Result<u64> {
        let rows: Vec<EventRow> = (0..self.rows).map(|i| self.owner.row(self.number + i, self.over_http)).collect();
        self.number += self.rows;
        macro_rules! column {
            ($field:ident) => {
                &rows.iter().map(|row| &row.$field).collect::<Vec<_>>()
            };
        }
        let params: [&(dyn ToSql + Sync); 14] = [
            column!(tenant_id),
            column!(id),
            column!(event_type),
            column!(schema_version),
            column!(entity_type),
            column!(entity_id),
            column!(workspace_id),
            column!(actor_id),
            column!(session_id),
            column!(correlation_id),
            column!(causation_id),
            column!(request_id),
            column!(payload),
            column!(occurred_at),
        ];
        let inserted = self.connection.transaction(&self.insert, &params).await?;
        ensure!(inserted.len() == rows.len(), "inserted {} rows of {}", inserted.len(), rows.len());
        Ok(self.rows)
    }
}

/// Reads a tenant's events page by page, and writes each page out as JSON.
pub(crate) struct Pages {
    connection: Connection,
    select: Statement,
    tenant: Uuid,
    after: i64,
    limit: i64,
}

impl Pages {
    pub(crate) async fn new(url: &str, tenant: Uuid, limit: i64) -> Result<Self> {
        let connection = Connection::open(url).await?;
        let text =
            format!("SELECT {SELECT_COLUMNS} FROM event WHERE tenant_id = $1 AND seq > $2 ORDER BY seq LIMIT $3");
        let select = connection.client.prepare(&text).await?;
        Ok(Self { connection, select, tenant, after: 0, limit })
    }
}

impl Client for Pages {
    async fn call(&mut self) -> Result<u64> {
        let rows = self.connection.client.query(&self.select, &[&self.tenant, &self.after, &self.limit]).await?;
        let page = rows.iter().map(page_row).collect::<Result<Vec<_>>>()?;
        let json = serde_json::to_vec(&page)?;
        ensure!(json.len() > page.len(), "an empty page");
        self.after =
            if page.len() as u64 == self.limit.unsigned_abs() { page.last().map_or(0, |e| e.sequence) } else { 0 };
        Ok(page.len() as u64)
    }
}

fn page_row(row: &Row) -> Result<PageRow> {
    Ok(PageRow {
        sequence: row.try_get(0)?,
        id: row.try_get(1)?,
        tenant_id: row.try_get(2)?,
        event_type: row.try_get(3)?,
        schema_version: row.try_get(4)?,
        entity_type: row.try_get(5)?,
        entity_id: row.try_get(6)?,
        workspace_id: row.try_get(7)?,
        actor_id: row.try_get(8)?,
        session_id: row.try_get(9)?,
        correlation_id: row.try_get(10)?,
        causation_id: row.try_get(11)?,
        request_id: row.try_get(12)?,
        payload: RawValue::from_string(row.try_get(13)?)?,
        occurred_at: courant_api::Timestamp::from_micros(row.try_get(14)?),
    })
}

/// Claims deliveries and deletes them: two transactions of one statement each.
pub(crate) struct Queue {
    connection: Connection,
    claim: Statement,
    delete: Statement,
    server: Uuid,
}

/// What the store claims with, too.
const CLAIM: &str = "UPDATE delivery SET status = 'processing', attempt_count = attempt_count + 1, \
        claim_token = claim_token + 1, claimed_by = $2, last_attempted_at = $1 \
    WHERE id = ANY(ARRAY( \
        SELECT d.id FROM delivery d \
        WHERE d.status IN ('pending', 'failed') AND d.run_at <= $1 \
            AND NOT EXISTS (SELECT 1 FROM integration i WHERE i.id = d.integration_id AND i.paused) \
        ORDER BY d.run_at, d.id LIMIT $3 FOR UPDATE OF d SKIP LOCKED)) \
    RETURNING id, tenant_id, integration_id, event_type, cause_type, attempt_count, claim_token, payload";

impl Queue {
    pub(crate) async fn new(url: &str) -> Result<Self> {
        let connection = Connection::open(url).await?;
        let claim = connection.client.prepare(CLAIM).await?;
        let delete = connection
            .client
            .prepare("DELETE FROM delivery WHERE id = ANY($1) AND status = 'processing' AND claimed_by = $2")
            .await?;
        Ok(Self { connection, claim, delete, server: courant_server::ids::new_id() })
    }
}

impl Client for Queue {
    async fn call(&mut self) -> Result<u64> {
        let client = &self.connection.client;
        let now = courant_server::clock::now().micros();
        let rows = client.query(&self.claim, &[&now, &self.server, &crate::queue::BATCH]).await?;
        if rows.is_empty() {
            return Ok(0);
        }
        let mut ids: Vec<Uuid> = Vec::with_capacity(rows.len());
        for row in &rows {
            let (_token, payload): (i64, String) = (row.try_get(6)?, row.try_get(7)?);
            ensure!(!payload.is_empty(), "a delivery without content");
            ids.push(row.try_get(0)?);
        }
        let deleted = client.execute(&self.delete, &[&ids, &self.server]).await?;
        ensure!(deleted == ids.len() as u64, "deleted {deleted} of {}", ids.len());
        Ok(deleted)
    }
}

/// Makes the outbox as it would be with so many due deliveries of one integration, right after they came.
pub(crate) async fn fill_outbox(
    url: &str,
    deliveries: usize,
    tenant: Uuid,
    integration: Uuid,
    payload: &str,
) -> Result<()> {
    let connection = Connection::open(url).await?;
    connection.batch("VACUUM delivery").await?;
    let now = courant_server::clock::now().micros();
    let count = i64::try_from(deliveries)?;
    // Ids grow with time, as ours do.
    let text = "INSERT INTO delivery (id, tenant_id, integration_id, event_id, event_type, cause_type, status, run_at, \
            attempt_count, claim_token, payload, created_at) \
        SELECT (to_hex($3::bigint) || lpad(to_hex(n), 32 - length(to_hex($3::bigint)), '0'))::uuid, $1, $2, \
            (to_hex($3::bigint) || lpad(to_hex(n), 32 - length(to_hex($3::bigint)), '0'))::uuid, \
            'journal_event', 'build.finished', 'pending', $3, 0, 0, $4, $3 \
        FROM generate_series(1, $5::bigint) AS n";
    let filled = connection.client.execute(text, &[&tenant, &integration, &now, &payload, &count]).await?;
    ensure!(filled == count.unsigned_abs(), "the outbox could not be filled");
    connection.batch("CHECKPOINT").await
}
