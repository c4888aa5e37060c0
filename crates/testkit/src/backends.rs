//! PostgreSQL's side of Courant's connections, for a test to end them: as an administrator, a crash or a time-out would.
//!
//! It touches nothing but the database it was given, and of that only Courant's own connections.

use anyhow::Result;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

/// An administrator of one database.
#[derive(Debug)]
pub struct Backends {
    client: Client,
    _connection: JoinSet<()>,
}

/// Which of Courant's backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// One of them all, by a number that picks it.
    Any(u32),
    /// Those that stand between an append and its commit.
    Writers,
    /// Those that listen for other servers' commits.
    Listeners,
}

impl Backends {
    /// Connects to the database.
    pub async fn connect(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // Its end is the client's, or the client's calls say why.
            let _ = connection.await;
        });
        Self { client, _connection: tasks }
    }

    /// Ends them; how many there were.
    pub async fn end(&self, which: Which) -> usize {
        self.try_end(which).await.expect("an answer of the database")
    }

    async fn try_end(&self, which: Which) -> Result<usize> {
        const OURS: &str =
            "FROM pg_stat_activity a WHERE a.datname = current_database() AND a.application_name LIKE 'courant%'";
        let sql = match which {
            Which::Any(number) => format!(
                "SELECT pg_terminate_backend(a.pid) {OURS} ORDER BY a.pid
                OFFSET {number} % (SELECT greatest(count(*), 1) {OURS}) LIMIT 1"
            ),
            Which::Writers => format!(
                "SELECT pg_terminate_backend(a.pid) {OURS} AND a.pid IN (
                    SELECT l.pid FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1
                        AND (l.classid::bigint >> 16) = 19022)"
            ),
            Which::Listeners => {
                format!("SELECT pg_terminate_backend(a.pid) {OURS} AND a.application_name = 'courant listener'")
            }
        };
        let ended = self.client.query(&sql, &[]).await?;
        Ok(ended.iter().filter(|row| row.get(0)).count())
    }

    /// From now on every commit of events takes up to this much longer, so that writers are met on their way to it.
    pub async fn slow_commits(&self, most_ms: u32) {
        let sql = format!(
            "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN PERFORM pg_sleep(random() * {most_ms} / 1000.0); RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION linger()"
        );
        self.client.batch_execute(&sql).await.expect("a trigger");
    }
}
