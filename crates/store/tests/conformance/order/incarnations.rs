//! Positions that were taken back: restored copies, lossy failovers, clean promotions.
//!
//! To see these tests fail, let `settle` in `db/postgres.rs` return at once, or let `Store::open` leave out
//! `open_embedded`: then the readers skip what stands where the lost events stood, without a word.

use std::path::Path;

use courant_api::event::EventPage;
use courant_store::{Error, EventQuery, Options, Start, Store};
use courant_testkit::TestDatabase;
use courant_testkit::postgres::{Options as ServerOptions, PrivatePostgres};

use crate::world::{Tenant, after, at, draft, entities, key, now, query};

async fn open(url: &str) -> Store {
    Store::open(&Options::server(url)).await.unwrap()
}

async fn tenant(store: &Store) -> Tenant {
    let nobody = courant_store::Change::by_server(courant_api::TenantId(uuid::Uuid::nil()), at(0));
    let made = now(store.tenant_bootstrap(nobody, "acme".into(), key("first")).await.unwrap());
    let caller = store.caller_by_key(key("first").hash, at(0)).await.unwrap().unwrap();
    Tenant { id: made.tenant_id, admin: made.principal_id, caller }
}

async fn append(store: &Store, tenant: &Tenant, names: &[&str]) {
    store.event_append(tenant.change(), names.iter().map(|n| draft("task.made", *n)).collect()).await.unwrap();
}

async fn end(store: &Store, tenant: &Tenant) -> String {
    store.event_page(tenant.id, EventQuery { start: Start::Tail, ..query(1) }).await.unwrap().next_cursor
}

async fn read(store: &Store, tenant: &Tenant, cursor: &str) -> Result<EventPage, Error> {
    store.event_page(tenant.id, EventQuery { start: after(cursor), ..query(100) }).await
}

async fn reads(store: &Store, tenant: &Tenant, cursor: &str) -> Vec<String> {
    let page = read(store, tenant, cursor).await.unwrap();
    entities(&page.items).into_iter().map(str::to_owned).collect()
}

async fn refused(store: &Store, tenant: &Tenant, cursor: &str) {
    let outcome = read(store, tenant, cursor).await;
    assert!(matches!(outcome, Err(Error::CursorFromOtherJournal)), "{outcome:?}");
}

/// The story that every way of losing shares: `kept` lies at what the copy holds, `lost` above it.
async fn a_loss_is_noticed(store: &Store, tenant: &Tenant, kept: &str, lost: &str) {
    // At first the lost position lies ahead of everything, later it would be in the middle of other events.
    refused(store, tenant, lost).await;
    assert_eq!(reads(store, tenant, kept).await, Vec::<String>::new());
    append(store, tenant, &["other 1", "other 2", "other 3", "other 4"]).await;
    refused(store, tenant, lost).await;
    let page = read(store, tenant, kept).await.unwrap();
    assert_eq!(entities(&page.items), ["other 1", "other 2", "other 3", "other 4"]);
    assert_eq!(reads(store, tenant, &page.items[1].cursor).await, ["other 3", "other 4"]);
    assert_eq!(reads(store, tenant, &page.next_cursor).await, Vec::<String>::new());
    assert_eq!(store.journal_cursor(tenant.id, page.items[3].sequence), page.items[3].cursor);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_that_another_server_restores_refuses_what_was_read_after_it() {
    let (first, second) = tokio::task::spawn_blocking(|| {
        let start = || PrivatePostgres::start(ServerOptions::default()).unwrap();
        (start(), start())
    })
    .await
    .unwrap();
    let original = open(&first.create_database("courant").unwrap()).await;
    let tenant = tenant(&original).await;
    append(&original, &tenant, &["a", "b"]).await;
    let kept = end(&original, &tenant).await;
    let archive = first.dump("courant").unwrap();
    append(&original, &tenant, &["c", "d"]).await;
    let lost = end(&original, &tenant).await;

    let restored = open(&second.restore("courant", &archive).unwrap()).await;
    a_loss_is_noticed(&restored, &tenant, &kept, &lost).await;
    // Two copies of one dump are two journals, although they stand at the same position.
    let copy = open(&second.restore("copy", &archive).unwrap()).await;
    append(&copy, &tenant, &["else 1", "else 2", "else 3", "else 4"]).await;
    refused(&copy, &tenant, &end(&restored, &tenant).await).await;
    // The original is not concerned.
    refused(&original, &tenant, &end(&restored, &tenant).await).await;
    assert_eq!(reads(&original, &tenant, &kept).await, ["c", "d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_whose_database_went_back_refuses_what_was_read_meanwhile() {
    let mut server = PrivatePostgres::start(ServerOptions::default()).unwrap();
    let url = server.create_database("courant").unwrap();
    let store = open(&url).await;
    let tenant = tenant(&store).await;
    append(&store, &tenant, &["a", "b"]).await;
    let kept = end(&store, &tenant).await;
    server.back_up().unwrap();
    // The connections are gone with the server; the next ones meet the same database.
    let store = open(&url).await;
    append(&store, &tenant, &["c", "d"]).await;
    let lost = end(&store, &tenant).await;
    server.put_back().unwrap();
    while store.ping().await.is_err() {}
    a_loss_is_noticed(&store, &tenant, &kept, &lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_promotion_keeps_every_cursor() {
    let mut server = PrivatePostgres::start(ServerOptions::default()).unwrap();
    let url = server.create_database("courant").unwrap();
    let store = open(&url).await;
    let tenant = tenant(&store).await;
    append(&store, &tenant, &["a", "b"]).await;
    let middle = store.event_page(tenant.id, EventQuery { start: Start::Tail, ..query(1) }).await.unwrap();
    let (middle, last) = (middle.prev_cursor.unwrap(), middle.next_cursor);
    for _ in 0..2 {
        server.promote().unwrap();
        while store.ping().await.is_err() {}
    }
    append(&store, &tenant, &["c"]).await;
    assert_eq!(reads(&store, &tenant, &last).await, ["c"]);
    assert_eq!(reads(&store, &tenant, &middle).await, ["c"]);
    assert_eq!(server.execute("courant", "SELECT count(*) FROM journal_incarnation").unwrap(), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedded_file_that_is_put_back_refuses_what_was_read_after_the_copy() {
    let database = TestDatabase::sqlite();
    let file = Path::new(database.url().strip_prefix("sqlite://").unwrap());
    let first = open(database.url()).await;
    let tenant = tenant(&first).await;
    append(&first, &tenant, &["a", "b"]).await;
    let kept = end(&first, &tenant).await;
    let copy = file.with_file_name("copy.db");
    let raw = rusqlite::Connection::open(file).unwrap();
    raw.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    append(&first, &tenant, &["c", "d"]).await;
    let lost = end(&first, &tenant).await;
    drop((first, raw));

    // Another place stands for the old one: what counts is what the file says.
    let store = open(&format!("sqlite://{}", copy.display())).await;
    a_loss_is_noticed(&store, &tenant, &kept, &lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_of_an_embedded_server_keep_every_cursor() {
    let database = TestDatabase::sqlite();
    let first = open(database.url()).await;
    let tenant = tenant(&first).await;
    append(&first, &tenant, &["a", "b"]).await;
    let last = end(&first, &tenant).await;
    let file = Path::new(database.url().strip_prefix("sqlite://").unwrap());
    // Each start is on a copy of the file before: nothing was lost, whatever became of the server before.
    let (mut from, mut seen) = (file.to_owned(), Vec::new());
    for start in 0..3 {
        let next = file.with_file_name(format!("start-{start}.db"));
        let raw = rusqlite::Connection::open(&from).unwrap();
        raw.execute("VACUUM INTO ?1", [next.to_str().unwrap()]).unwrap();
        let store = open(&format!("sqlite://{}", next.display())).await;
        append(&store, &tenant, &["c"]).await;
        seen.push("c".to_owned());
        assert_eq!(reads(&store, &tenant, &last).await, seen);
        from = next;
    }
}
