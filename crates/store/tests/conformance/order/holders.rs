//! Who holds the horizon is named: a session by its process, a prepared transaction by its name.

use courant_store::{Options, Store};
use courant_testkit::postgres::{Options as ServerOptions, PrivatePostgres};
use tokio::task::JoinSet;

use crate::gate::Gate;
use crate::world::{Engine, Ground, Raw, at, draft, key, now};

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_appended_and_not_ended_is_named() {
    let world = Ground::new(Engine::Postgres).world().await;
    let tenant = world.tenant().await;
    let (store, mut gate) = Gate::store(world.url(), 4).await;
    let mut tasks = JoinSet::new();
    let change = tenant.change();
    tasks.spawn(async move { store.event_append(change, vec![draft("task.made", "held")]).await.is_ok() });
    let held = gate.next().await;
    let status = world.store.journal_status(tenant.id, at(0), None).await.unwrap();
    assert_eq!((status.distance, status.holders.len()), (0, 0), "it holds nobody back yet");

    let later = world.append(&tenant, vec![draft("task.made", "later")]).await[0];
    let status = world.store.journal_status(tenant.id, at(0), None).await.unwrap();
    assert_eq!((status.head.sequence, status.distance), (later.seq, later.seq - status.horizon.sequence));
    assert!(status.distance >= 1);
    let [holder] = status.holders.as_slice() else { panic!("{:?}", status.holders) };
    let raw = world.raw().await;
    let pid = raw.number("SELECT pid::bigint FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()").await;
    assert_eq!((holder.pid, holder.application_name.as_deref()), (Some(pid), Some("courant")));
    assert_eq!((holder.state.as_deref(), &holder.gid), (Some("idle in transaction"), &None));
    assert!(holder.age_seconds.is_some_and(|age| age >= 0));
    held.commit();
    assert_eq!(tasks.join_all().await, [true]);
    let status = world.store.journal_status(tenant.id, at(0), None).await.unwrap();
    assert_eq!((status.distance, status.holders.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_transaction_that_has_appended_is_named() {
    let settings = vec![("max_prepared_transactions".to_owned(), "4".to_owned())];
    let server = PrivatePostgres::start(ServerOptions { fsync: false, settings }).unwrap();
    let url = server.create_database("courant").unwrap();
    let store = Store::open(&Options::server(&url)).await.unwrap();
    let nobody = courant_store::Change::by_server(courant_api::TenantId(uuid::Uuid::nil()), at(0));
    let made = now(store.tenant_bootstrap(nobody, "acme".into(), key("first")).await.unwrap());
    let raw = Raw::open(&url).await;
    // An append as ours takes its lock, in a transaction that somebody else has prepared and forgotten.
    raw.run(
        "BEGIN;
        SELECT pg_advisory_xact_lock_shared((19022::bigint << 48) | pg_sequence_last_value('event_seq_seq'::regclass));
        INSERT INTO event (tenant_id, id, type, schema_version, entity_type, entity_id, payload, occurred_at)
        SELECT tenant_id, gen_random_uuid(), 'task.made', 1, 'task', 'stuck', '{}', 0 FROM event LIMIT 1;
        PREPARE TRANSACTION 'forgotten'",
    )
    .await
    .unwrap();
    let change = courant_store::Change::by_server(made.tenant_id, at(0));
    store.event_append(change, vec![draft("task.made", "later")]).await.unwrap();
    let status = store.journal_status(made.tenant_id, at(0), None).await.unwrap();
    let [holder] = status.holders.as_slice() else { panic!("{:?}", status.holders) };
    assert_eq!((holder.pid, holder.gid.as_deref(), &holder.state), (None, Some("forgotten"), &None));
    assert!(holder.age_seconds.is_some_and(|age| age >= 0) && status.distance > 0, "{status:?}");
    raw.run("ROLLBACK PREPARED 'forgotten'").await.unwrap();
    let status = store.journal_status(made.tenant_id, at(0), None).await.unwrap();
    assert_eq!((status.distance, status.holders.len()), (0, 0));
}
