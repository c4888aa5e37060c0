//! The PostgreSQL that tests run on: the one `cargo xtask test` has started, or else one private to this process.
//!
//! A test that stops or kills a server must start its own [`PrivatePostgres`]: the shared one belongs to all.

use std::net::{SocketAddr, ToSocketAddrs as _};
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

/// The user part, the address and the rest of a URL.
fn parts(url: &str) -> (&str, &str, &str) {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(after_scheme);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let start = rest.get(..end).and_then(|authority| authority.rfind('@')).map_or(0, |at| at + 1);
    let (before, address) = url.split_at(scheme.len() + start);
    let (address, after) = address.split_at(end - start);
    (before, address, after)
}

/// Where the server that `url` names listens.
pub(crate) fn address_of(url: &str) -> SocketAddr {
    let (_, address, _) = parts(url);
    let mut found = address.to_socket_addrs().or_else(|_| (address, 5432).to_socket_addrs()).expect("a host and port");
    found.next().expect("an address")
}

/// The URL of the same database at another address.
pub(crate) fn with_address(url: &str, address: SocketAddr) -> String {
    let (before, _, after) = parts(url);
    format!("{before}{address}{after}")
}

/// Runs SQL on a connection of its own, which is closed after it.
pub(crate) async fn execute(url: &str, sql: &str) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::select! {
        done = client.batch_execute(sql) => Ok(done?),
        ended = connection => Err(anyhow!("the connection ended: {ended:?}")),
    }
}

/// The text in the only column of what SQL answers.
pub(crate) async fn texts(url: &str, sql: &str) -> Result<Vec<String>> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let rows = tokio::select! {
        rows = client.query(sql, &[]) => rows?,
        ended = connection => return Err(anyhow!("the connection ended: {ended:?}")),
    };
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::{address_of, with_address, with_database};

    #[test]
    fn only_the_database_of_a_url_is_replaced() {
        assert_eq!(with_database("postgres://u@h:1/postgres", "x"), "postgres://u@h:1/x");
        assert_eq!(with_database("postgres://u@h:1/a?host=/tmp/s", "x"), "postgres://u@h:1/x?host=/tmp/s");
        assert_eq!(with_database("postgres://u@h:1", "x"), "postgres://u@h:1/x");
    }

    #[test]
    fn only_the_address_of_a_url_is_replaced() {
        let other = "127.0.0.1:7".parse().unwrap();
        assert_eq!(with_address("postgres://u:p@h:1/a?b=c", other), "postgres://u:p@127.0.0.1:7/a?b=c");
        assert_eq!(with_address("postgres://h", other), "postgres://127.0.0.1:7");
        assert_eq!(address_of("postgres://u@127.0.0.1:1/a"), "127.0.0.1:1".parse().unwrap());
        assert_eq!(address_of("postgres://127.0.0.1/a@b"), "127.0.0.1:5432".parse().unwrap());
    }
}
