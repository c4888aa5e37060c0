//! Test databases on a real server.

use std::path::Path;

use courant_testkit::TestDatabase;
use courant_testkit::postgres::shared_server_url;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    #[expect(clippy::disallowed_methods, reason = "the connection ends with its client")]
    tokio::spawn(connection);
    client
}

async fn exists(name: &str) -> bool {
    let client = connect(&shared_server_url().expect("a server")).await;
    let sql = format!("SELECT 1 FROM pg_database WHERE datname = '{name}'");
    let answer = client.simple_query(&sql).await.expect("an answer");
    answer.iter().any(|line| matches!(line, SimpleQueryMessage::Row(_)))
}

#[tokio::test]
async fn each_postgres_database_is_new_and_gone_after_use() {
    let (one, two) = tokio::join!(TestDatabase::postgres(), TestDatabase::postgres());
    let client = connect(one.url()).await;
    client.batch_execute("CREATE TABLE t (n int)").await.unwrap();
    assert!(connect(two.url()).await.batch_execute("SELECT * FROM t").await.is_err());

    let name = one.url().rsplit('/').next().unwrap().to_owned();
    assert!(exists(&name).await);
    drop(one);
    assert!(!exists(&name).await);
    assert!(client.batch_execute("SELECT 1").await.is_err());
}

#[test]
fn a_sqlite_database_is_a_file_to_be_in_a_directory_of_its_own() {
    let database = TestDatabase::sqlite();
    let file = database.url().strip_prefix("sqlite://").unwrap().to_owned();
    assert!(file.starts_with('/') && file.ends_with("/courant.db"));
    assert!(!Path::new(&file).exists());
    std::fs::write(&file, "x").unwrap();
    assert_eq!(std::fs::read_dir(database.sqlite_dir().unwrap()).unwrap().count(), 1);

    drop(database);
    assert!(!Path::new(&file).exists());
}
