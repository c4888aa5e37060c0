//! Counts what reading statements examine, for tests that assert the work and not the time.
//!
//! On PostgreSQL it is entries of the journal's indexes and rows of its sequential scans, by the plans that prepared
//! statements really get; on SQLite it is steps of its virtual machine. One switch for the whole process: a test that uses
//! it stands alone in its binary.

use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::StatementStatus;
use tokio_postgres::types::ToSql;

use super::sql::{Dialect, Statement};
use super::tx::Connection;
use super::value::{Row, Value};
use crate::Error;

static ON: AtomicBool = AtomicBool::new(false);

/// Switches counting on.
pub fn start() {
    ON.store(true, Ordering::SeqCst);
}

pub(super) fn is_on() -> bool {
    ON.load(Ordering::SeqCst)
}

/// The transaction's own count so far.
const EXAMINED: &str = "SELECT sum(pg_stat_get_xact_tuples_returned(c.oid))::bigint FROM pg_class c
    WHERE c.oid = 'event'::regclass OR c.oid IN (SELECT i.indexrelid FROM pg_index i WHERE i.indrelid = 'event'::regclass)";

pub(super) async fn query(
    connection: &mut Connection,
    statement: &'static Statement,
    params: &[Value],
) -> Result<Vec<Row>, Error> {
    match connection {
        Connection::Postgres { client, .. } => {
            let prepared = client.prepare_cached(statement.text(Dialect::Postgres)).await?;
            let params: Vec<_> = params.iter().map(|p| p as &(dyn ToSql + Sync)).collect();
            client.batch_execute("BEGIN").await?;
            let before: i64 = client.query_one(EXAMINED, &[]).await?.get(0);
            let rows = client.query(&prepared, &params).await?;
            let after: i64 = client.query_one(EXAMINED, &[]).await?.get(0);
            client.batch_execute("COMMIT").await?;
            statement.examined.fetch_add((after - before).unsigned_abs(), Ordering::SeqCst);
            Ok(rows.into_iter().map(Row::Pg).collect())
        }
        Connection::Sqlite(connection) => {
            let mut prepared = connection.prepare_cached(statement.text(Dialect::Sqlite))?;
            let columns = prepared.column_count();
            prepared.reset_status(StatementStatus::VmStep);
            let mut out = Vec::new();
            let mut rows = prepared.query(rusqlite::params_from_iter(params))?;
            while let Some(row) = rows.next()? {
                let cells: Result<Vec<_>, _> = (0..columns).map(|i| row.get(i)).collect();
                out.push(Row::Lite(cells?));
            }
            drop(rows);
            let steps = prepared.get_status(StatementStatus::VmStep);
            statement.examined.fetch_add(u64::from(steps.unsigned_abs()), Ordering::SeqCst);
            Ok(out)
        }
        Connection::Gone => Err(Error::gone()),
    }
}
