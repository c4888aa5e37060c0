//! The first answer of a keyed request, written with its change and given again.

use std::sync::Arc;

use courant_api::access::{GrantCreate, PrincipalCreate, PrincipalKind, PrincipalView, TenantBootstrapped};
use courant_api::{Permission, Resource, TenantId};
use courant_store::{Change, Changed, Error, Idempotency};
use serde_json::Value;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::cases;
use crate::gate::Gate;
use crate::world::{World, at, conflict, key, now};

cases![
    a_repeat_gets_the_first_answer_and_changes_nothing,
    a_key_used_for_something_else_is_a_conflict,
    a_key_used_by_somebody_else_is_a_conflict,
    secrets_are_not_kept_for_a_replay,
    an_answer_is_kept_for_a_day,
    what_was_rolled_back_keeps_no_answer,
    of_requests_at_once_one_runs,
    a_request_that_still_runs_is_told_from_one_that_ended,
    keys_of_two_tenants_have_nothing_to_do_with_one_another,
];

const HOUR: i64 = 3600;

fn keyed(change: Change, key: &str, fingerprint: u8) -> Change {
    Change { idempotency: Some(Idempotency { key: key.into(), fingerprint: [fingerprint; 32] }), ..change }
}

async fn create(world: &World, change: Change, name: &str) -> Result<Changed<PrincipalView>, Error> {
    let new = PrincipalCreate { kind: PrincipalKind::Service, display_name: name.into() };
    world.store.principal_create(change, new).await
}

fn before<T>(changed: Changed<T>) -> Value {
    match changed {
        Changed::Before(body) => serde_json::from_str(&body).unwrap(),
        Changed::Now(_) => panic!("it ran again"),
    }
}

async fn a_repeat_gets_the_first_answer_and_changes_nothing(world: World) {
    let tenant = world.tenant().await;
    let first = now(create(&world, keyed(tenant.change(), "k", 1), "a").await.unwrap());
    let begin = world.end(&tenant).await;
    for second in [0, 5, 23 * HOUR] {
        let again = create(&world, keyed(tenant.change_at(second), "k", 1), "a").await.unwrap();
        assert_eq!(before(again), serde_json::to_value(&first).unwrap());
    }
    assert_eq!(world.since(&tenant, &begin).await, []);
    assert_eq!(world.store.principal_list(tenant.id, None, 10).await.unwrap().items.len(), 2);
    now(create(&world, keyed(tenant.change(), "other", 1), "a").await.unwrap());
    now(create(&world, tenant.change(), "a").await.unwrap());
}

async fn a_key_used_for_something_else_is_a_conflict(world: World) {
    let tenant = world.tenant().await;
    now(create(&world, keyed(tenant.change(), "k", 1), "a").await.unwrap());
    let begin = world.end(&tenant).await;
    let other = create(&world, keyed(tenant.change(), "k", 2), "b").await;
    assert!(matches!(other, Err(Error::IdempotencyConflict)), "{other:?}");
    assert_eq!(world.since(&tenant, &begin).await, []);
}

async fn a_key_used_by_somebody_else_is_a_conflict(world: World) {
    let tenant = world.tenant().await;
    let somebody = world.principal(&tenant).await;
    now(create(&world, keyed(tenant.change(), "k", 1), "a").await.unwrap());
    for actor_id in [Some(somebody), None] {
        let theirs = keyed(Change { actor_id, ..tenant.change() }, "k", 1);
        let outcome = create(&world, theirs, "a").await;
        assert!(matches!(outcome, Err(Error::IdempotencyConflict)), "{outcome:?}");
    }
    let server = || keyed(Change::by_server(tenant.id, at(0)), "server", 1);
    let first = now(create(&world, server(), "s").await.unwrap());
    assert_eq!(before(create(&world, server(), "s").await.unwrap())["id"], first.id.to_string());
}

async fn secrets_are_not_kept_for_a_replay(world: World) {
    let nobody = || keyed(Change::by_server(TenantId(uuid::Uuid::nil()), at(0)), "boot", 1);
    let boot = async || world.store.tenant_bootstrap(nobody(), "acme".into(), key("first")).await.unwrap();
    let first = now(boot().await);
    assert!(first.api_key.is_some());
    let again: TenantBootstrapped = serde_json::from_value(before(boot().await)).unwrap();
    assert_eq!(again, TenantBootstrapped { api_key: None, ..first });
    assert_eq!(world.store.tenant_count().await.unwrap(), 1);

    let tenant = world.tenant().await;
    let make_key = async || {
        world.store.api_key_create(keyed(tenant.change(), "key", 1), tenant.admin, key("second")).await.unwrap()
    };
    let first = now(make_key().await);
    assert!(first.api_key.is_some());
    let again = before(make_key().await);
    assert_eq!((&again["apiKey"], &again["id"]), (&Value::Null, &Value::from(first.id.to_string())));

    let integration = tenant.integration("ops", &["task."]);
    let add = async || {
        let change = keyed(tenant.change(), "hook", 1);
        world.store.integration_create(change, integration.clone(), Some("whsec_x".into())).await.unwrap()
    };
    assert_eq!(now(add().await).generated_secret.as_deref(), Some("whsec_x"));
    let again = before(add().await);
    assert_eq!((&again["generatedSecret"], &again["name"]), (&Value::Null, &Value::from("ops")));
    assert_eq!(
        world
            .raw()
            .await
            .number("SELECT count(*) FROM idempotency WHERE body LIKE '%secret of%' OR body LIKE '%whsec_x%'")
            .await,
        0
    );
}

async fn an_answer_is_kept_for_a_day(world: World) {
    let tenant = world.tenant().await;
    let at_second = |second| keyed(tenant.change_at(second), "k", 1);
    let first = now(create(&world, at_second(0), "a").await.unwrap());
    assert_eq!(world.store.idempotency_prune(at(24 * HOUR - 1)).await.unwrap(), 0);
    before(create(&world, at_second(24 * HOUR - 1), "a").await.unwrap());
    // A day later the key is fresh, for any request, whether the old answer has been pruned or not.
    let second = now(create(&world, keyed(tenant.change_at(24 * HOUR), "k", 2), "b").await.unwrap());
    assert_ne!(first.id, second.id);
    let again = before(create(&world, keyed(tenant.change_at(25 * HOUR), "k", 2), "b").await.unwrap());
    assert_eq!(again["id"], second.id.to_string());
    assert_eq!(world.store.idempotency_prune(at(47 * HOUR)).await.unwrap(), 0);
    assert_eq!(world.store.idempotency_prune(at(48 * HOUR)).await.unwrap(), 1);
    now(create(&world, keyed(tenant.change_at(48 * HOUR), "k", 3), "c").await.unwrap());
}

async fn what_was_rolled_back_keeps_no_answer(world: World) {
    let tenant = world.tenant().await;
    let new = GrantCreate::to(tenant.admin, Permission::All, Resource::Tenant);
    conflict(world.store.grant_create(keyed(tenant.change(), "k", 1), new).await);
    assert_eq!(world.raw().await.number("SELECT count(*) FROM idempotency").await, 0);
    now(create(&world, keyed(tenant.change(), "k", 2), "a").await.unwrap());
}

async fn of_requests_at_once_one_runs(world: World) {
    let tenant = world.tenant().await;
    let begin = world.end(&tenant).await;
    let world = Arc::new(world);
    let start = Arc::new(Barrier::new(8));
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (world, start, change) = (Arc::clone(&world), Arc::clone(&start), keyed(tenant.change(), "k", 1));
        tasks.spawn(async move {
            start.wait().await;
            create(&world, change, "a").await
        });
    }
    let mut ran = 0;
    for outcome in tasks.join_all().await {
        match outcome {
            Ok(Changed::Now(_)) => ran += 1,
            Ok(Changed::Before(_)) => {}
            Err(Error::IdempotencyInFlight) => assert!(world.is_postgres(), "one writer has nothing in flight"),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(ran, 1);
    assert_eq!(world.since(&tenant, &begin).await.len(), 1);
}

async fn a_request_that_still_runs_is_told_from_one_that_ended(world: World) {
    if !world.is_postgres() {
        return; // One unit runs at a time: the next one finds its answer.
    }
    let tenant = world.tenant().await;
    let (store, mut gate) = Gate::store(world.url(), 2).await;
    let mut first = JoinSet::new();
    let change = || keyed(tenant.change(), "k", 1);
    for committing in [false, true] {
        let (store, change) = (store.clone(), change());
        let new = PrincipalCreate { kind: PrincipalKind::Service, display_name: "a".into() };
        first.spawn(async move { store.principal_create(change, new).await });
        let held = gate.next().await;
        for fingerprint in [1, 2] {
            let outcome = create(&world, keyed(tenant.change(), "k", fingerprint), "a").await;
            assert!(matches!(outcome, Err(Error::IdempotencyInFlight)), "{outcome:?}");
        }
        if committing {
            held.commit();
        } else {
            held.roll_back();
        }
        assert_eq!(first.join_next().await.unwrap().unwrap().is_ok(), committing);
    }
    before(create(&world, change(), "a").await.unwrap());
}

async fn keys_of_two_tenants_have_nothing_to_do_with_one_another(world: World) {
    let (one, two) = (world.tenant().await, world.tenant().await);
    now(create(&world, keyed(one.change(), "k", 1), "a").await.unwrap());
    now(create(&world, keyed(two.change(), "k", 2), "b").await.unwrap());
    before(create(&world, keyed(one.change(), "k", 1), "a").await.unwrap());
}
