//! The PostgreSQL that tests run on: the one `cargo xtask test` has started, or else one private to this process.
//!
//! A test that stops or kills a server must start its own [`PrivatePostgres`]: the shared one belongs to all.

use std::sync::LazyLock;

use anyhow::{Result, anyhow};
pub use courant_pgtest::{Installation, Options, PrivatePostgres, URL_VARIABLE};

static OF_THIS_PROCESS: LazyLock<Result<PrivatePostgres, String>> =
    LazyLock::new(|| PrivatePostgres::start(Options::default()).map_err(|error| format!("{error:#}")));

/// The URL of the shared server's `postgres` database; starts a server on first use when none is given.
pub fn shared_server_url() -> Result<String> {
    if let Some(url) = given_url() {
        return Ok(url);
    }
    match &*OF_THIS_PROCESS {
        Ok(server) => Ok(server.url("postgres")),
        Err(error) => Err(anyhow!("{error}")),
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place of the tests that reads which server they run on")]
fn given_url() -> Option<String> {
    std::env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty())
}

/// The URL of another database on the server that `url` names.
pub(crate) fn with_database(url: &str, database: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let server = match base.rsplit_once('/') {
        Some((server, _)) if !server.ends_with('/') => server,
        _ => base,
    };
    match query {
        Some(query) => format!("{server}/{database}?{query}"),
        None => format!("{server}/{database}"),
    }
}

/// Runs SQL on a connection of its own, which is closed after it.
pub(crate) async fn execute(url: &str, sql: &str) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::select! {
        done = client.batch_execute(sql) => Ok(done?),
        ended = connection => Err(anyhow!("the connection ended: {ended:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn only_the_database_of_a_url_is_replaced() {
        assert_eq!(with_database("postgres://u@h:1/postgres", "x"), "postgres://u@h:1/x");
        assert_eq!(with_database("postgres://u@h:1/a?host=/tmp/s", "x"), "postgres://u@h:1/x?host=/tmp/s");
        assert_eq!(with_database("postgres://u@h:1", "x"), "postgres://u@h:1/x");
    }
}
