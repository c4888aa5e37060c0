//! Migrations: pairs under one number, applied in order, never edited after release.

use sha2::{Digest as _, Sha256};

use super::{postgres, sqlite};
use crate::Error;

struct Migration {
    number: i64,
    name: &'static str,
    postgres: &'static str,
    sqlite: &'static str,
}

macro_rules! migrations {
    ($($number:literal $name:literal;)+) => {
        const MIGRATIONS: &[Migration] = &[$(Migration {
            number: $number,
            name: $name,
            postgres: include_str!(concat!("../../migrations/", $name, ".postgres.sql")),
            sqlite: include_str!(concat!("../../migrations/", $name, ".sqlite.sql")),
        }),+];
    };
}

migrations! {
    1 "0001_access";
    2 "0002_journal";
    3 "0003_notify";
    4 "0004_retention";
    5 "0005_roles";
    6 "0006_identity";
    7 "0007_work";
    8 "0008_deployments";
    9 "0009_ends";
    10 "0010_announced";
    11 "0011_attempts";
}

const CREATE: &str = "CREATE TABLE IF NOT EXISTS schema_migration \
    (number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL)";
const APPLIED: &str = "SELECT number, checksum FROM schema_migration ORDER BY number";
const EXISTS: &str = "SELECT to_regclass('schema_migration') IS NOT NULL";
const RECORD: &str = "INSERT INTO schema_migration (number, name, checksum) VALUES ($1, $2, $3)";

/// Serialises servers that start together; any number that nothing else uses.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7166187209)";

pub async fn postgres(pool: &postgres::Pool, may_migrate: bool) -> Result<(), Error> {
    let mut client = pool.client().await?;
    if !may_migrate {
        let exists = client.query_one(EXISTS, &[]).await?.get(0);
        let applied = if exists { client.query(APPLIED, &[]).await? } else { Vec::new() };
        let applied: Vec<_> = applied.iter().map(|row| (row.get(0), row.get(1))).collect();
        return up_to_date(&applied, |m| m.postgres);
    }
    let tx = client.transaction().await?;
    tx.batch_execute(LOCK).await?;
    tx.batch_execute(CREATE).await?;
    let applied: Vec<_> = tx.query(APPLIED, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect();
    for migration in pending(&applied, |m| m.postgres)? {
        tx.batch_execute(migration.postgres).await?;
        tx.execute(RECORD, &[&migration.number, &migration.name, &checksum(migration.postgres)]).await?;
        tracing::info!(migration = migration.name, "schema migrated");
    }
    tx.commit().await?;
    Ok(())
}

pub async fn sqlite(handle: &sqlite::Handle, may_migrate: bool) -> Result<(), Error> {
    handle
        .on_writer(move |mut connection| {
            let outcome = if may_migrate { migrate_sqlite(&mut connection) } else { look_at_sqlite(&connection) };
            (connection, outcome)
        })
        .await
}

fn migrate_sqlite(connection: &mut rusqlite::Connection) -> Result<(), Error> {
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    tx.execute_batch(CREATE)?;
    let applied = applied_on_sqlite(&tx)?;
    for migration in pending(&applied, |m| m.sqlite)? {
        tx.execute_batch(migration.sqlite)?;
        tx.execute(RECORD, rusqlite::params![migration.number, migration.name, checksum(migration.sqlite)])?;
        tracing::info!(migration = migration.name, "schema migrated");
    }
    tx.commit()?;
    Ok(())
}

fn look_at_sqlite(connection: &rusqlite::Connection) -> Result<(), Error> {
    let applied =
        if connection.table_exists(None, "schema_migration")? { applied_on_sqlite(connection)? } else { Vec::new() };
    up_to_date(&applied, |m| m.sqlite)
}

fn applied_on_sqlite(connection: &rusqlite::Connection) -> Result<Vec<(i64, String)>, Error> {
    let mut statement = connection.prepare(APPLIED)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Refuses a schema that still needs a migration, for those that may not migrate it.
fn up_to_date(applied: &[(i64, String)], text: impl Fn(&Migration) -> &'static str) -> Result<(), Error> {
    match pending(applied, text)?.next() {
        None => Ok(()),
        Some(m) => Err(Error::Configuration(format!("the database lacks migration {}; run `courant migrate`", m.name))),
    }
}

/// What is still to be applied; a database that is newer than this binary, or that ran an edited migration, is refused.
fn pending(
    applied: &[(i64, String)],
    text: impl Fn(&Migration) -> &'static str,
) -> Result<impl Iterator<Item = &'static Migration>, Error> {
    for (number, sum) in applied {
        match MIGRATIONS.iter().find(|m| m.number == *number) {
            None => {
                return Err(Error::Configuration(format!(
                    "the database has migration {number}, which this version of courant does not know; use a newer one"
                )));
            }
            Some(m) if checksum(text(m)) != *sum => {
                return Err(Error::Configuration(format!(
                    "migration {} was applied from another text than this version's",
                    m.name
                )));
            }
            Some(_) => {}
        }
    }
    let last = applied.last().map_or(0, |(number, _)| *number);
    Ok(MIGRATIONS.iter().filter(move |m| m.number > last))
}

fn checksum(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _infallible = write!(hex, "{byte:02x}");
        hex
    })
}
