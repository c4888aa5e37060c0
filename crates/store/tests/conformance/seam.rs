//! Units of work: whole or not at all, whatever becomes of their request; and who may open a database.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;

use courant_api::notify::IntegrationView;
use courant_store::{Edit, Error, Integration, Options, Store};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::cases;
use crate::gate::Gate;
use crate::outbox::{claim, dead, finish, queue, sent, stored};
use crate::world::{Tenant, World, at, draft, entities, now, query};

cases![
    a_unit_that_fails_halfway_leaves_nothing,
    a_unit_that_panics_leaves_nothing_and_the_store_usable,
    a_dropped_request_does_not_cut_its_write,
    dropped_reads_do_not_use_up_the_connections,
    a_commit_whose_connection_is_lost_is_not_called_a_success,
    one_server_runs_on_a_sqlite_file_and_commands_beside_it,
    a_newer_schema_is_refused,
    an_edited_migration_is_refused,
    an_older_schema_is_refused_by_those_who_may_not_migrate,
    servers_that_start_at_once_migrate_once,
    a_journal_keeps_its_identity,
];

async fn with_integration(world: &World) -> (Tenant, IntegrationView) {
    let tenant = world.tenant().await;
    let made = world.store.integration_create(tenant.change(), tenant.integration("ops", &["task."]), None).await;
    (tenant, now(made.unwrap()))
}

async fn a_unit_that_fails_halfway_leaves_nothing(world: World) {
    let (tenant, server) = queue(&world, 2).await;
    let claimed = claim(&world.store, server, 1).await;
    let raw = world.raw().await;
    raw.run("UPDATE integration SET provider_config = 'no json'").await.unwrap();
    let (rows, events) = (stored(&world, &tenant).await, world.events(&tenant).await);
    // The first mark deletes its row, the second one meets the broken integration.
    let marks = || vec![sent(&claimed[0]), dead(&claimed[1], true)];
    let outcome = world.store.delivery_finish(marks(), at(2)).await;
    assert!(matches!(outcome, Err(Error::Corrupt(_))), "{outcome:?}");
    assert_eq!((stored(&world, &tenant).await, world.events(&tenant).await), (rows, events));
    raw.run("UPDATE integration SET provider_config = '{}'").await.unwrap();
    assert_eq!(finish(&world.store, marks()).await, [true, true]);
}

async fn a_unit_that_panics_leaves_nothing_and_the_store_usable(world: World) {
    let (tenant, ops) = with_integration(&world).await;
    let begin = world.end(&tenant).await;
    for _ in 0..2 {
        let edit: Edit = Arc::new(|_| panic!("a unit that panics on purpose"));
        let outcome = world.store.integration_update(tenant.change(), ops.id, edit).await;
        assert!(matches!(outcome, Err(Error::Panicked(_))), "{outcome:?}");
    }
    assert_eq!(world.since(&tenant, &begin).await, []);
    assert_eq!(world.store.integration_get(&tenant.caller, ops.id).await.unwrap(), ops);
    let edit: Edit = Arc::new(|i| Ok(Integration { paused: true, ..i.clone() }.into()));
    assert!(now(world.store.integration_update(tenant.change(), ops.id, edit).await.unwrap()).paused);
}

async fn a_dropped_request_does_not_cut_its_write(world: World) {
    let (tenant, ops) = with_integration(&world).await;
    let (begun, has_begun) = oneshot::channel();
    let (go, gone) = mpsc::channel();
    let ends = Mutex::new((Some(begun), gone));
    let edit: Edit = Arc::new(move |i| {
        let mut ends = ends.lock().unwrap();
        ends.0.take().unwrap().send(()).unwrap();
        tokio::task::block_in_place(|| ends.1.recv().unwrap());
        Ok(Integration { paused: true, ..i.clone() }.into())
    });
    let mut appended = world.store.appended();
    appended.mark_unchanged();
    let request = world.store.integration_update(tenant.change(), ops.id, edit);
    tokio::select! {
        outcome = request => panic!("nobody has let it go: {outcome:?}"),
        begun = has_begun => begun.unwrap(),
    }
    assert!(!appended.has_changed().unwrap());
    go.send(()).unwrap();
    // Its readers are woken although nobody waits for the answer.
    appended.changed().await.unwrap();
    assert!(world.store.integration_get(&tenant.caller, ops.id).await.unwrap().paused);
}

async fn dropped_reads_do_not_use_up_the_connections(world: World) {
    let tenant = world.tenant().await;
    world.append(&tenant, (0..500).map(|n| draft("task.made", n.to_string())).collect()).await;
    for _ in 0..200 {
        let mut read = Box::pin(world.store.event_page(tenant.id, query(1000)));
        poll_fn(|context| {
            let _ = read.as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
        drop(read);
        assert_eq!(world.store.event_page(tenant.id, query(1)).await.unwrap().items.len(), 1);
    }
}

async fn a_commit_whose_connection_is_lost_is_not_called_a_success(world: World) {
    if !world.is_postgres() {
        return; // There is no connection to lose.
    }
    let tenant = world.tenant().await;
    let begin = world.end(&tenant).await;
    let (store, mut gate) = Gate::store(world.url(), 1).await;
    let mut tasks = JoinSet::new();
    let (writer, change) = (store.clone(), tenant.change());
    tasks.spawn(async move { writer.event_append(change, vec![draft("task.made", "lost")]).await });
    let held = gate.next().await;
    let end = "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction'";
    assert_eq!(world.raw().await.number(end).await, 1);
    held.commit();
    let outcome = tasks.join_next().await.unwrap().unwrap();
    assert!(matches!(outcome, Err(Error::OutcomeUnknown)), "{outcome:?}");
    assert_eq!(world.since(&tenant, &begin).await, []);

    let (writer, change) = (store.clone(), tenant.change());
    tasks.spawn(async move { writer.event_append(change, vec![draft("task.made", "kept")]).await });
    gate.next().await.commit();
    tasks.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(entities(&world.since(&tenant, &begin).await), ["kept"], "the pool has replaced the connection");
}

async fn one_server_runs_on_a_sqlite_file_and_commands_beside_it(world: World) {
    if world.is_postgres() {
        Store::open(&Options::server(world.url())).await.expect("several servers share one PostgreSQL");
        return;
    }
    let tenant = world.tenant().await;
    let second = Store::open(&Options::server(world.url())).await;
    assert!(matches!(&second, Err(Error::Configuration(why)) if why.contains("another server")), "{second:?}");
    let path = world.url().strip_prefix("sqlite://").unwrap();
    let link = format!("{path}.link");
    std::os::unix::fs::symlink(path, &link).unwrap();
    let by_link = Store::open(&Options::server(format!("sqlite://{link}"))).await;
    assert!(matches!(&by_link, Err(Error::Configuration(_))), "{by_link:?}");

    let command = Store::open(&Options::command(world.url())).await.unwrap();
    command.event_append(tenant.change(), vec![draft("task.made", "by the command")]).await.unwrap();
    assert_eq!(entities(&world.events(&tenant).await)[4..], ["by the command"]);
    assert!(world.store.is_embedded());
}

async fn refused(url: &str, reason: &str) {
    for options in [Options::command(url), Options { exclusive: false, ..Options::server(url) }] {
        let outcome = Store::open(&options).await;
        assert!(matches!(&outcome, Err(Error::Configuration(why)) if why.contains(reason)), "{outcome:?}");
    }
}

async fn a_newer_schema_is_refused(world: World) {
    let raw = world.raw().await;
    raw.run("INSERT INTO schema_migration (number, name, checksum) VALUES (9999, '9999_future', 'x')").await.unwrap();
    refused(world.url(), "migration 9999").await;
}

async fn an_edited_migration_is_refused(world: World) {
    let raw = world.raw().await;
    raw.run("UPDATE schema_migration SET checksum = 'x' WHERE number = 1").await.unwrap();
    refused(world.url(), "0001_access").await;
}

async fn an_older_schema_is_refused_by_those_who_may_not_migrate(world: World) {
    let empty = world.ground.database().await;
    Store::open(&Options::command(empty.url())).await.unwrap_err();
    if let Some(dir) = empty.sqlite_dir() {
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "looking makes no file");
    }
    Store::open(&Options::command(world.url())).await.unwrap();
    let raw = world.raw().await;
    raw.run("DELETE FROM schema_migration WHERE number = (SELECT max(number) FROM schema_migration)").await.unwrap();
    let outcome = Store::open(&Options::command(world.url())).await;
    assert!(matches!(&outcome, Err(Error::Configuration(why)) if why.contains("courant migrate")), "{outcome:?}");
}

async fn servers_that_start_at_once_migrate_once(world: World) {
    let empty = world.ground.database().await;
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let options = Options { exclusive: false, ..Options::server(empty.url()) };
        tasks.spawn(async move { Store::open(&options).await.unwrap() });
    }
    let stores = tasks.join_all().await;
    let tenant = courant_api::TenantId(uuid::Uuid::from_u128(1));
    let cursors: Vec<_> = stores.iter().map(|s| s.journal_cursor(tenant, 1)).collect();
    assert!(cursors.iter().all(|c| *c == cursors[0]), "they made one journal");
}

async fn a_journal_keeps_its_identity(world: World) {
    let tenant = world.tenant().await;
    world.append(&tenant, vec![draft("task.made", "a")]).await;
    let reopened = crate::second_server(&world).await;
    reopened.ping().await.unwrap();
    for event in world.events(&tenant).await {
        assert_eq!(reopened.event_get(tenant.id, event.id).await.unwrap(), event, "its cursor is the same");
    }
    let absent = Store::open(&Options::server("mysql://localhost/x")).await;
    assert!(matches!(absent, Err(Error::Configuration(_))), "{absent:?}");
}
