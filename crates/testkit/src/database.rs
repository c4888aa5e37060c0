//! An empty database of a test's own, on either engine, gone when the test ends.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::process;
use std::thread;

use anyhow::Result;
use tempfile::TempDir;

use crate::eventually::PATIENCE;
use crate::postgres;

/// An empty database that nobody else uses. Keep it alive as long as anything is connected to it.
#[derive(Debug)]
pub struct TestDatabase {
    url: String,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    Postgres { server_url: String, name: String },
    Sqlite(TempDir),
}

impl TestDatabase {
    /// A new database on the shared PostgreSQL ([`postgres::shared_server_url`]). Panics, saying why, when it cannot.
    pub async fn postgres() -> Self {
        Self::try_postgres().await.expect("a PostgreSQL database for the test")
    }

    async fn try_postgres() -> Result<Self> {
        let server_url = postgres::shared_server_url()?;
        let name = format!("test_{}_{:016x}", process::id(), RandomState::new().build_hasher().finish());
        // Nobody can be connected to template0, so tests may create databases at the same time.
        postgres::execute(&server_url, &format!("CREATE DATABASE {name} TEMPLATE template0")).await?;
        let url = postgres::with_database(&server_url, &name);
        Ok(Self { url, kept: Kept::Postgres { server_url, name } })
    }

    /// A SQLite file that does not exist yet, in a directory of its own.
    pub fn sqlite() -> Self {
        let dir = tempfile::Builder::new().prefix("courant-test-").tempdir().expect("a directory for the test");
        let file = dir.path().canonicalize().expect("the directory just made").join("courant.db");
        Self { url: format!("sqlite://{}", file.display()), kept: Kept::Sqlite(dir) }
    }

    /// `postgres://…` or `sqlite:///…/courant.db`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs statements behind the back of whoever else is connected.
    async fn run(&self, sql: &str) {
        match &self.kept {
            Kept::Postgres { .. } => postgres::execute(&self.url, sql).await.expect("statements of a test"),
            Kept::Sqlite(_) => {
                let path = self.url.trim_start_matches("sqlite://");
                let file = rusqlite::Connection::open(path).expect("the file of the test");
                file.busy_timeout(PATIENCE).expect("a file that can be waited for");
                file.execute_batch(sql).expect("statements of a test");
            }
        }
    }

    /// Raises every tenant's floor and deletes what lies at or below it, as a prune does.
    pub async fn raise_floor(&self, floor: i64) {
        self.run(&format!(
            "UPDATE journal SET deleted_seq = {floor};
            INSERT INTO tenant_journal SELECT t.id, {floor}, {floor}, 0 FROM tenant t WHERE TRUE
            ON CONFLICT (tenant_id) DO UPDATE SET floor_seq = {floor};
            DELETE FROM event WHERE seq <= {floor}"
        ))
        .await;
    }

    /// Every row of every table, in words and in order.
    pub async fn contents(&self) -> Vec<String> {
        let mut rows = match &self.kept {
            Kept::Postgres { .. } => postgres_contents(&self.url).await.expect("the rows of the test's database"),
            Kept::Sqlite(_) => {
                sqlite_contents(self.url.trim_start_matches("sqlite://")).expect("the rows of the test's file")
            }
        };
        rows.sort();
        rows
    }

    /// Makes the journal another one, as a restore does; a negative number is none that can be read.
    pub async fn set_incarnation(&self, tag: i64) {
        self.run(&format!("UPDATE journal SET incarnation = {tag}")).await;
    }

    /// Whether it is on PostgreSQL.
    pub fn is_postgres(&self) -> bool {
        matches!(self.kept, Kept::Postgres { .. })
    }

    /// The directory that holds nothing but the SQLite file and its companions.
    pub fn sqlite_dir(&self) -> Option<&Path> {
        match &self.kept {
            Kept::Postgres { .. } => None,
            Kept::Sqlite(dir) => Some(dir.path()),
        }
    }
}

async fn postgres_contents(url: &str) -> Result<Vec<String>> {
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
    let tables = postgres::texts(url, tables).await?;
    let each: Vec<_> = tables.iter().map(|t| format!("SELECT '{t}: ' || t::text FROM \"{t}\" t")).collect();
    if each.is_empty() { Ok(Vec::new()) } else { postgres::texts(url, &each.join(" UNION ALL ")).await }
}

fn sqlite_contents(path: &str) -> rusqlite::Result<Vec<String>> {
    let file = rusqlite::Connection::open(path)?;
    file.busy_timeout(PATIENCE)?;
    let mut tables = file.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut all = Vec::new();
    for table in tables {
        let mut rows = file.prepare(&format!("SELECT * FROM \"{table}\""))?;
        let columns = rows.column_count();
        let words = rows.query_map([], |row| {
            let cells =
                (0..columns).map(|i| row.get::<_, rusqlite::types::Value>(i)).collect::<rusqlite::Result<Vec<_>>>()?;
            Ok(format!("{table}: {cells:?}"))
        })?;
        for row in words {
            all.push(row?);
        }
    }
    Ok(all)
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Kept::Postgres { server_url, name } = &self.kept else {
            return;
        };
        // On a thread of its own, for a runtime cannot be entered from within another. Best effort: the whole server
        // goes away after the tests.
        thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(postgres::execute(server_url, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")))
            });
        });
    }
}
