//! Other ways to bring a journal into one order, each as plain SQL on the same table with the same indexes: what each
//! asks of its writers, one event a transaction. Nobody reads here; what an order asks of readers is not measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::INSERT_COLUMNS;
use super::postgres::{Connection, InsertMany, InsertOne};
use crate::cpu;
use crate::load::{Client, Until, run as run_load};
use crate::place::{Engine, Place};
use crate::rounds::Measure;
use crate::sample::Owner;

/// How positions come to agree with what readers see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Readers stay below what is being appended: the store's own statement, without its shared commits.
    Watermark,
    /// One writer at a time, from its append to its commit.
    Lock,
    /// Events carry their transaction's id, by which readers wait for older transactions.
    TransactionId,
    /// Events get their positions after their commit, from one process that moves them.
    Sequencer,
    /// Each transaction notifies, which orders commits as a side effect.
    Notify,
}

const VALUES: &str = "$1::uuid, $2::uuid, $3::text, $4::bigint, $5::text, $6::text, $7::uuid, $8::uuid, $9::text, \
    $10::text, $11::text, $12::text, $13::text, $14::bigint";

/// The store's statement for appending, word for word.
const WATERMARK: &str = "WITH watermark AS MATERIALIZED (
        SELECT pg_advisory_xact_lock_shared(
                (19022::bigint << 48) | coalesce(pg_sequence_last_value('event_seq_seq'::regclass), 0)),
            set_config('synchronous_commit',
                CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
                true)
    )
    INSERT INTO event (tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, actor_id,
        session_id, correlation_id, causation_id, request_id, payload, occurred_at)
    SELECT e.tenant_id, e.id, e.type, e.schema_version, e.entity_type, e.entity_id, e.workspace_id, e.actor_id,
        e.session_id, e.correlation_id, e.causation_id, e.request_id, e.payload, e.occurred_at
    FROM watermark, unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::uuid[],
        $8::uuid[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[])
        WITH ORDINALITY AS e(tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, actor_id,
            session_id, correlation_id, causation_id, request_id, payload, occurred_at, place)
    ORDER BY e.place
    RETURNING id, seq";

/// The indexes that end in the position end in the transaction's id and the position.
const BY_TRANSACTION: &str = "ALTER TABLE event ADD COLUMN tx xid8;
    DO $$ DECLARE i record; BEGIN
        FOR i IN SELECT c.relname, pg_get_indexdef(c.oid) AS text FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
            WHERE x.indrelid = 'event'::regclass AND NOT x.indisunique
        LOOP
            EXECUTE format('DROP INDEX %I', i.relname);
            EXECUTE replace(i.text, ', seq)', ', tx, seq)');
        END LOOP;
    END $$";

/// Where events wait for their positions.
const INBOX: &str = "CREATE TABLE inbox (LIKE event);
    ALTER TABLE inbox RENAME seq TO n;
    ALTER TABLE inbox ALTER n ADD GENERATED ALWAYS AS IDENTITY;
    ALTER TABLE inbox ADD PRIMARY KEY (n)";

impl Order {
    pub(crate) const ALL: [Self; 5] = [Self::Watermark, Self::Lock, Self::TransactionId, Self::Sequencer, Self::Notify];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Watermark => "low watermark, no shared commits",
            Self::Lock => "lock from append to commit",
            Self::TransactionId => "transaction id stored",
            Self::Sequencer => "sequencer after commit, moving included",
            Self::Notify => "NOTIFY inside the transaction",
        }
    }

    /// A database for this order.
    pub(crate) async fn place(self) -> Result<Place> {
        let place = super::tables(Engine::Postgres).await?;
        let connection = Connection::open(place.url()).await?;
        match self {
            Self::TransactionId => connection.batch(BY_TRANSACTION).await?,
            Self::Sequencer => connection.batch(INBOX).await?,
            Self::Watermark | Self::Lock | Self::Notify => {}
        }
        Ok(place)
    }

    /// Appends one event a transaction.
    pub(crate) async fn append(self, place: &Place, connections: usize, until: Until) -> Result<Measure> {
        let (url, owner) = (place.url(), Owner::new());
        match self {
            Self::Watermark => {
                let mut all = Vec::new();
                for _ in 0..connections {
                    all.push(InsertMany::by(WATERMARK, url, owner, 1, false).await?);
                }
                Ok(run_load(all, until).await?.0)
            }
            Self::Lock => {
                let text = format!(
                    "WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock(19023)) \
                     INSERT INTO event ({INSERT_COLUMNS}) SELECT {VALUES} FROM held RETURNING id, seq"
                );
                one_by_one(&text, url, owner, connections, until).await
            }
            Self::TransactionId => {
                let text = format!(
                    "INSERT INTO event ({INSERT_COLUMNS}, tx) SELECT {VALUES}, pg_current_xact_id() RETURNING id, seq"
                );
                one_by_one(&text, url, owner, connections, until).await
            }
            Self::Notify => {
                // Somebody listens, as somebody would.
                let listener = Connection::open(url).await?;
                listener.batch("LISTEN bench").await?;
                let text = format!(
                    "INSERT INTO event ({INSERT_COLUMNS}) SELECT {VALUES} RETURNING id, seq, pg_notify('bench', id::text)"
                );
                one_by_one(&text, url, owner, connections, until).await
            }
            Self::Sequencer => sequenced(url, owner, connections, until).await,
        }
    }
}

async fn one_by_one(text: &str, url: &str, owner: Owner, connections: usize, until: Until) -> Result<Measure> {
    let mut all = Vec::new();
    for _ in 0..connections {
        all.push(InsertOne::by(text, url, owner, false).await?);
    }
    Ok(run_load(all, until).await?.0)
}

/// Puts events into the inbox and tells the sequencer.
struct Sender {
    insert: InsertOne,
    count: u64,
    sent: Arc<Notify>,
}

impl Client for Sender {
    async fn call(&mut self) -> Result<u64> {
        self.count += self.insert.call().await?;
        self.sent.notify_one();
        Ok(1)
    }
}

/// Writers as fast as they can and one process that moves what they wrote; done when all of it has been moved. Times are
/// those of the writers.
async fn sequenced(url: &str, owner: Owner, connections: usize, until: Until) -> Result<Measure> {
    let into = format!("INSERT INTO inbox ({INSERT_COLUMNS}) SELECT {VALUES} RETURNING id, n");
    let (sent, ended) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let mut all = Vec::new();
    for _ in 0..connections {
        let insert = InsertOne::by(&into, url, owner, false).await?;
        all.push(Sender { insert, count: 0, sent: Arc::clone(&sent) });
    }
    let connection = Connection::open(url).await?;
    let (start, cpu) = (Instant::now(), cpu::spent());
    let mut sequencer = JoinSet::new();
    sequencer.spawn(moved(connection, Arc::clone(&sent), Arc::clone(&ended)));
    let (measure, writers) = run_load(all, until).await?;
    ended.store(true, Ordering::SeqCst);
    sent.notify_one();
    let moved = sequencer.join_next().await.context("no sequencer")???;
    let written: u64 = writers.iter().map(|w| w.count).sum();
    anyhow::ensure!(moved == written, "{moved} of {written} events were moved");
    let (time, cpu) = (start.elapsed(), cpu::spent().saturating_sub(cpu));
    #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
    let moved = moved as f64;
    Ok(Measure { rate: moved / time.as_secs_f64(), cpu_ms: cpu.as_secs_f64() * 1_000_000.0 / moved, ..measure })
}

/// Moves batches until the writers have ended and nothing is left; how many events that were.
async fn moved(connection: Connection, sent: Arc<Notify>, ended: Arc<AtomicBool>) -> Result<u64> {
    let text = format!(
        "WITH moved AS (DELETE FROM inbox WHERE n = ANY(ARRAY(SELECT n FROM inbox ORDER BY n LIMIT 1000)) RETURNING *) \
         INSERT INTO event ({INSERT_COLUMNS}) SELECT {INSERT_COLUMNS} FROM moved ORDER BY n"
    );
    let batch = connection.client.prepare(&text).await?;
    let mut all = 0;
    loop {
        let last = ended.load(Ordering::SeqCst);
        let count = connection.client.execute(&batch, &[]).await?;
        all += count;
        if count == 0 {
            if last {
                return Ok(all);
            }
            sent.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watermark_is_the_stores_own_statement() {
        let store = include_str!("../../../crates/store/src/twin/postgres/append.rs");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(store).contains(&words(WATERMARK)));
    }
}
