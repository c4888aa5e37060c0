//! One suite, both databases.
#![allow(clippy::unwrap_used, reason = "tests")]
use courant_store::{Options, Store};
use courant_testkit::TestDatabase;

#[tokio::test]
async fn smoke() {
    for db in [TestDatabase::sqlite(), TestDatabase::postgres().await] {
        let store = Store::open(&Options::server(db.url())).await.unwrap();
        for (name, _) in store.statements() { let _ = name; }
        store.prepare_statements().await.unwrap();
    }
}
