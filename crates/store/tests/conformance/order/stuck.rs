//! Writers that do not end: the database ends them, or says who holds the readers back.
//!
//! Broken on purpose: with a horizon that does not look at the locks the first two hand out too early, with one that
//! waits for gaps to be filled all three wait in vain.

use courant_store::{EventQuery, Start};
use courant_testkit::eventually;
use courant_testkit::postgres::{Options as ServerOptions, PrivatePostgres};
use tokio::task::JoinSet;

use crate::gate::Gate;
use crate::world::{Engine, Ground, Raw, Tenant, World, draft, entities, id};

/// The locks that appends hold, and whose they are: a session's, or a prepared transaction's, which has no process and
/// is known by the lock that it holds on its own id.
const HOLDERS: &str = "
    FROM pg_locks l
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    LEFT JOIN pg_locks own ON l.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid'
        AND own.mode = 'ExclusiveLock' AND own.virtualtransaction = l.virtualtransaction
    LEFT JOIN pg_prepared_xacts p ON p.transaction = own.transactionid
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint >> 16) = 19022
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// How many holders there are of which this is true.
async fn holders(raw: &Raw, which: &str) -> i64 {
    raw.number(&format!("SELECT count(*) {HOLDERS} AND {which}")).await
}

/// Appends one event in the transaction that is open, as the store does.
pub async fn append_raw(raw: &Raw, tenant: &Tenant, what: &str) {
    raw.run(&format!(
        "SELECT pg_advisory_xact_lock_shared(
            (19022::bigint << 48) | coalesce(pg_sequence_last_value('event_seq_seq'::regclass), 0));
        INSERT INTO event (tenant_id, id, type, schema_version, entity_type, entity_id, payload, occurred_at)
        VALUES ('{}', gen_random_uuid(), 'task.made', 1, 'task', '{what}', '{{}}', 0)",
        tenant.id
    ))
    .await
    .unwrap();
}

/// Waits until there is exactly this to read after `from`.
pub async fn readable(world: &World, tenant: &Tenant, from: &str, expected: &[&str]) {
    eventually(&format!("{expected:?}"), async || {
        let events = world.since(tenant, from).await;
        (entities(&events) == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_stands_between_append_and_commit_is_ended_by_the_database_and_named_until_then() {
    let world = Ground::new(Engine::Postgres).world().await;
    let tenant = world.tenant().await;
    let from = world.end(&tenant).await;
    let raw = world.raw().await;
    // Long enough for the looks below, which take milliseconds.
    let impatient = format!("{}?options=-c%20idle_in_transaction_session_timeout%3D5s", world.url());
    let (store, mut gate) = Gate::store(&impatient, 4).await;
    let mut tasks = JoinSet::new();
    let change = tenant.change();
    tasks.spawn(async move { store.event_append(change, vec![draft("task.made", "stuck")]).await });
    let held = gate.next().await;
    world.append(&tenant, vec![draft("task.made", "later")]).await;

    assert_eq!(world.since(&tenant, &from).await, [], "the stuck unit holds readers back");
    let named = "a.application_name = 'courant' AND a.state = 'idle in transaction' AND a.pid > 0
        AND now() - a.xact_start < interval '1 minute'";
    assert_eq!((holders(&raw, "true").await, holders(&raw, named).await), (1, 1));

    // Nobody ends it but the database.
    readable(&world, &tenant, &from, &["later"]).await;
    assert_eq!(holders(&raw, "true").await, 0);
    held.commit();
    assert!(tasks.join_next().await.unwrap().unwrap().is_err(), "what was ended is not answered for");
    world.append(&tenant, vec![draft("task.made", "after")]).await;
    readable(&world, &tenant, &from, &["later", "after"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_transaction_holds_readers_back_until_somebody_decides_it() {
    let world = Ground::new(Engine::Postgres).world().await;
    let tenant = world.tenant().await;
    let raw = world.raw().await;
    for (decision, expected) in [("COMMIT", &["prepared", "later"] as &[_]), ("ROLLBACK", &["later"])] {
        let from = world.end(&tenant).await;
        let gid = format!("{decision} of {}", tenant.id);
        raw.run("BEGIN").await.unwrap();
        append_raw(&raw, &tenant, "prepared").await;
        raw.run(&format!("PREPARE TRANSACTION '{gid}'")).await.unwrap();
        world.append(&tenant, vec![draft("task.made", "later")]).await;
        assert_eq!(world.since(&tenant, &from).await, []);
        let named = format!("l.pid IS NULL AND p.gid = '{gid}' AND p.database = current_database()");
        assert_eq!((holders(&raw, "true").await, holders(&raw, &named).await), (1, 1));
        raw.run(&format!("{decision} PREPARED '{gid}'")).await.unwrap();
        assert_eq!(entities(&world.since(&tenant, &from).await), expected);
    }
}

/// A private server: the death of one backend has all of them begin anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_killed_after_it_drew_its_position_holds_nobody_back() {
    let server = PrivatePostgres::start(ServerOptions::default()).unwrap();
    let url = server.create_database("courant").unwrap();
    let store = courant_store::Store::open(&courant_store::Options::server(&url)).await.unwrap();
    let tenant = super::crash::tenant(&store).await;
    let tail = EventQuery { start: Start::Tail, ..crate::world::query(1) };
    let from = store.event_page(tenant.id, tail).await.unwrap().next_cursor;
    let (doomed, mut gate) = Gate::store(&url, 2).await;
    let mut tasks = JoinSet::new();
    let change = tenant.change();
    tasks.spawn(async move { doomed.event_append(change, vec![draft("task.made", "doomed")]).await.is_ok() });
    let held = gate.next().await;
    let raw = Raw::open(&url).await;
    let drawn = raw.number("SELECT pg_sequence_last_value('event_seq_seq')").await;
    let pid = raw.number(&format!("SELECT l.pid::bigint {HOLDERS}")).await;
    let kill = std::process::Command::new("sh").args(["-c", &format!("kill -9 {pid}")]).status().unwrap();
    assert!(kill.success());

    // The server comes back by itself, and nothing needs repair; an id makes the repeat safe.
    let later = courant_store::EventDraft { id: Some(id(1)), ..draft("task.made", "later") };
    eventually("the server to come back", async || store.event_append(tenant.change(), vec![later.clone()]).await.ok())
        .await;
    let after = EventQuery { start: crate::world::after(&from), ..crate::world::query(10) };
    // Until the server notices the death, the lock of the dead one stands.
    eventually("the event that was appended later", async || {
        let page = store.event_page(tenant.id, after.clone()).await.ok()?;
        (entities(&page.items) == ["later"]).then_some(())
    })
    .await;
    assert!(drawn > 0);
    held.commit();
    assert_eq!(tasks.join_all().await, [false]);
}
