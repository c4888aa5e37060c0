//! What was tried, whether integrations work, many retries at once, and secrets that are sealed anew.

use courant_api::notify::{AttemptOutcome, DeliveriesRetried, DeliveriesRetry, IntegrationHealth};
use courant_api::{DeliveryId, EventId, IntegrationId, Permission, Resource};
use courant_store::{AttemptQuery, DeliveryQuery, Integration, Options, SealedSecret, Store};
use uuid::Uuid;

use crate::cases;
use crate::outbox::{claim, dead, finish, queue, retry, sent};
use crate::world::{Tenant, World, at, not_found, now};

cases![
    each_attempt_that_landed_is_kept_and_counts,
    attempts_are_forgotten_by_age_and_by_number,
    an_operator_may_do_without_the_history,
    many_dead_deliveries_are_queued_again,
    secrets_are_replaced_only_where_they_are_what_they_were,
];

async fn health(world: &World, tenant: &Tenant) -> IntegrationHealth {
    world.store.integration_list(&tenant.caller, None, 1).await.unwrap().items.remove(0).health
}

async fn each_attempt_that_landed_is_kept_and_counts(world: World) {
    let (tenant, server) = queue(&world, 3).await;
    assert_eq!(health(&world, &tenant).await, IntegrationHealth::default());
    let c = claim(&world.store, server, 1).await;
    finish(&world.store, vec![retry(&c[0], 10), dead(&c[1], false)]).await;
    let failing = health(&world, &tenant).await;
    assert_eq!(
        (failing.consecutive_failures, failing.last_success_at, failing.last_error_at),
        (2, None, Some(at(100)))
    );
    assert_eq!(failing.last_error.as_deref(), Some("HTTP 410"));
    finish(&world.store, vec![sent(&c[2])]).await;
    let works = health(&world, &tenant).await;
    assert_eq!((works.consecutive_failures, works.last_success_at), (0, Some(at(100))));
    assert_eq!(works.last_error.as_deref(), Some("HTTP 410"), "the last error can still be read");
    // One that lands nowhere is nobody's attempt.
    finish(&world.store, vec![sent(&c[2]), dead(&c[1], false)]).await;
    let list = async |query| world.store.attempt_list(&tenant.caller, query, None, 10).await.unwrap().items;
    let all = list(AttemptQuery::default()).await;
    let outcomes: Vec<_> = all.iter().map(|a| (a.outcome, a.attempt, a.integration_name.as_str())).collect();
    assert_eq!(outcomes[0], (AttemptOutcome::Sent, 1, "ops"));
    let mut rest: Vec<_> = outcomes[1..].iter().map(|o| o.0.as_str()).collect();
    rest.sort_unstable();
    assert_eq!(rest, ["dead", "failed"]);
    let one = all[0].clone();
    for query in [
        AttemptQuery { delivery_id: Some(one.delivery_id), ..AttemptQuery::default() },
        AttemptQuery { event_id: Some(EventId(one.event_id)), ..AttemptQuery::default() },
    ] {
        assert_eq!(list(query).await, std::slice::from_ref(&one));
    }
    let of = AttemptQuery { integration_id: Some(one.integration_id), ..AttemptQuery::default() };
    let first = world.store.attempt_list(&tenant.caller, of, None, 2).await.unwrap();
    let second = world.store.attempt_list(&tenant.caller, of, first.next, 2).await.unwrap();
    assert_eq!([first.items, second.items].concat(), all);
    let none = AttemptQuery { integration_id: Some(IntegrationId(Uuid::from_u128(1))), ..AttemptQuery::default() };
    assert_eq!(list(none).await, []);
    let other = world.tenant().await;
    for caller in [other.caller, tenant.caller_with(&[(Permission::TasksRead, Resource::Tenant)])] {
        let seen = world.store.attempt_list(&caller, AttemptQuery::default(), None, 10).await.unwrap();
        assert_eq!(seen.items, []);
        not_found(world.store.delivery_seen(&caller, c[1].attempt.id).await);
    }
    world.store.delivery_seen(&tenant.caller, c[1].attempt.id).await.unwrap();
    not_found(world.store.delivery_seen(&tenant.caller, DeliveryId(Uuid::from_u128(1))).await);
}

async fn attempts_are_forgotten_by_age_and_by_number(world: World) {
    let (tenant, server) = queue(&world, 5).await;
    for (n, delivery) in claim(&world.store, server, 1).await.iter().enumerate() {
        world.store.delivery_finish(vec![sent(delivery)], at(i64::try_from(n).unwrap())).await.unwrap();
    }
    let left = async || {
        let items = world.store.attempt_list(&tenant.caller, AttemptQuery::default(), None, 10).await.unwrap().items;
        items.into_iter().map(|attempt| attempt.at).collect::<Vec<_>>()
    };
    assert_eq!(world.store.attempts_prune(at(2), 100).await.unwrap(), 2);
    assert_eq!(left().await, [at(4), at(3), at(2)]);
    assert_eq!(world.store.attempts_prune(at(0), 1).await.unwrap(), 1);
    assert_eq!(left().await, [at(4), at(3)]);
}

async fn an_operator_may_do_without_the_history(world: World) {
    let (tenant, server) = queue(&world, 1).await;
    let options = Options { keeps_attempts: false, ..Options::command(world.url()) };
    let without = Store::open(&options).await.unwrap();
    let claimed = claim(&without, server, 1).await;
    finish(&without, vec![sent(&claimed[0])]).await;
    assert_eq!(without.attempt_list(&tenant.caller, AttemptQuery::default(), None, 10).await.unwrap().items, []);
    assert_eq!(health(&world, &tenant).await.last_success_at, Some(at(100)), "whether it works is known all the same");
}

async fn many_dead_deliveries_are_queued_again(world: World) {
    let (tenant, server) = queue(&world, 4).await;
    let c = claim(&world.store, server, 1).await;
    finish(&world.store, vec![dead(&c[0], false), dead(&c[1], false), dead(&c[2], false), retry(&c[3], 10)]).await;
    let wish = |limit, dry_run| DeliveriesRetry {
        integration_id: Some(c[0].attempt.integration_id),
        event_types: vec!["journal_event".into()],
        last_error: Some("HTTP 410".into()),
        dry_run: Some(dry_run),
        limit: Some(limit),
    };
    let retried = async |wish| now(world.store.deliveries_requeue(tenant.change_at(200), wish).await.unwrap());
    let told = |matched, requeued| DeliveriesRetried { matched, requeued, remaining: matched - requeued };
    assert_eq!(retried(wish(10, true)).await, told(3, 0));
    assert_eq!(retried(wish(2, false)).await, told(3, 2));
    let stranger = tenant.change_with(&[(Permission::TasksRead, Resource::Tenant)]);
    assert_eq!(now(world.store.deliveries_requeue(stranger, wish(2, false)).await.unwrap()), told(0, 0));
    assert_eq!(retried(DeliveriesRetry::default()).await, told(1, 1));
    let all = world.store.delivery_list(&tenant.caller, DeliveryQuery::default(), None, 10).await.unwrap().items;
    let mut statuses: Vec<_> = all.iter().map(|d| (d.status.as_str(), d.attempt_count)).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [("failed", 1), ("pending", 0), ("pending", 0), ("pending", 0)]);
    assert_eq!(claim(&world.store, server, 200).await.len(), 4, "they are due");
}

async fn secrets_are_replaced_only_where_they_are_what_they_were(world: World) {
    let tenant = world.tenant().await;
    for (name, sealed) in [("one", Some(vec![1, 2])), ("none", None), ("two", Some(vec![3]))] {
        let new = Integration { auth_sealed: sealed, ..tenant.integration(name, &[]) };
        now(world.store.integration_create(tenant.change(), new, None).await.unwrap());
    }
    let all = world.store.secrets_sealed(None, 10).await.unwrap();
    assert_eq!(all.iter().map(|s| s.sealed.clone()).collect::<Vec<_>>(), [vec![1, 2], vec![3]]);
    assert_eq!(world.store.secrets_sealed(Some(all[0].integration_id), 10).await.unwrap(), all[1..]);
    let begin = world.end(&tenant).await;
    assert!(world.store.secret_reseal(all[0].clone(), vec![9]).await.unwrap());
    assert!(!world.store.secret_reseal(all[0].clone(), vec![8]).await.unwrap(), "it is another one by now");
    let stranger = SealedSecret { tenant_id: world.tenant().await.id, ..all[1].clone() };
    assert!(!world.store.secret_reseal(stranger, vec![8]).await.unwrap());
    assert_eq!(world.store.secrets_sealed(None, 1).await.unwrap()[0].sealed, [9]);
    assert_eq!(world.since(&tenant, &begin).await, [], "nobody sees a change");

    for id in ["old", "new"] {
        world.store.encryption_key_add(id.into(), vec![1]).await.unwrap();
    }
    world.store.encryption_key_forget("old".into()).await.unwrap();
    assert_eq!(world.store.encryption_keys().await.unwrap(), [("new".to_owned(), vec![1])]);
    world.store.encryption_key_forget("none".into()).await.unwrap();
}
