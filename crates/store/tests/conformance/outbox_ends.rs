//! How deliveries end otherwise: dead, recovered, queued again, pruned.

use courant_api::notify::{DeliveryStatus, RetryOutcome};
use courant_api::{DeliveryId, Permission, Resource};
use courant_store::{Claimed, DeliveryQuery};
use serde_json::json;
use uuid::Uuid;

use crate::cases;
use crate::outbox::{add, claim, dead, finish, queue, retry, sent, stored};
use crate::world::{Tenant, World, at, draft, not_found, now, payload, types};

cases![
    a_death_is_told_once,
    a_death_of_news_about_notifications_is_not_told,
    a_target_that_is_gone_disables_its_integration_once,
    work_of_a_server_that_is_gone_is_taken_back,
    work_in_hand_for_too_long_is_taken_back,
    work_over_its_budget_dies_when_it_is_taken_back,
    only_what_is_dead_is_queued_again,
    a_requeue_needs_the_right_on_the_integrations_name,
    dead_deliveries_are_pruned_by_their_last_attempt,
    deliveries_are_listed_by_status_and_right_in_pages,
    the_backlog_counts_each_status,
];

const STALE_US: i64 = 300_000_000;

async fn a_death_is_told_once(world: World) {
    let (tenant, server) = queue(&world, 1).await;
    let claimed = claim(&world.store, server, 1).await.remove(0);
    let begin = world.end(&tenant).await;
    assert_eq!(finish(&world.store, vec![dead(&claimed, false)]).await, [true]);
    assert_eq!(finish(&world.store, vec![dead(&claimed, false)]).await, [false]);
    assert_eq!(stored(&world, &tenant).await, [("dead", 1, Some("HTTP 410".into()))]);
    assert_eq!(claim(&world.store, server, 9999).await.len(), 0);

    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["notification_delivery.dead"]);
    assert_eq!(
        (told[0].entity_id.as_str(), told[0].actor_id, told[0].occurred_at),
        (claimed.attempt.id.to_string().as_str(), None, at(100))
    );
    let expected = json!({
        "integrationId": claimed.integration.id, "integrationName": "ops", "eventType": "journal_event",
        "attemptCount": 1, "errorClass": "destination",
    });
    assert_eq!(payload(&told[0]), expected);
}

async fn a_death_of_news_about_notifications_is_not_told(world: World) {
    let tenant = world.tenant().await;
    now(world
        .store
        .integration_create(tenant.change(), tenant.integration("watch", &["notification_"]), None)
        .await
        .unwrap());
    now(world.store.integration_create(tenant.change(), tenant.integration("ops", &["task."]), None).await.unwrap());
    assert_eq!(world.announce(at(0)).await, 1);
    let server = world.store.server_register(at(0)).await.unwrap();
    let claimed = claim(&world.store, server, 1).await.remove(0);
    assert_eq!(claimed.attempt.cause_type, "notification_integration.created");
    let begin = world.end(&tenant).await;
    assert_eq!(finish(&world.store, vec![dead(&claimed, false)]).await, [true]);
    assert_eq!(stored(&world, &tenant).await.len(), 1, "it is dead and in sight");
    assert_eq!(world.since(&tenant, &begin).await, []);
}

async fn a_target_that_is_gone_disables_its_integration_once(world: World) {
    let (tenant, server) = queue(&world, 3).await;
    let claimed = claim(&world.store, server, 1).await;
    let begin = world.end(&tenant).await;
    assert_eq!(finish(&world.store, vec![dead(&claimed[0], true), dead(&claimed[1], true)]).await, [true, true]);
    assert_eq!(finish(&world.store, vec![dead(&claimed[2], true)]).await, [true]);

    let ops = world.store.integration_get(&tenant.caller, claimed[0].integration.id).await.unwrap();
    assert_eq!((ops.enabled, ops.disabled_reason.as_deref(), ops.version), (false, Some("HTTP 410"), 2));
    assert_eq!(ops.updated_at, at(100));
    let told = world.since(&tenant, &begin).await;
    let disabled: Vec<_> = told.iter().filter(|e| e.event_type == "notification_integration.disabled").collect();
    assert_eq!((told.len(), disabled.len()), (4, 1));
    assert_eq!(payload(disabled[0]), json!({"name": "ops", "provider": "webhook", "changes": ["enabled"]}));
    world.append(&tenant, vec![draft("task.made", "later")]).await;
    assert_eq!(world.announce(at(101)).await, 0);
}

async fn work_of_a_server_that_is_gone_is_taken_back(world: World) {
    let (tenant, gone) = queue(&world, 1).await;
    let lost = claim(&world.store, gone, 1).await.remove(0);
    let recover = async |second| world.store.delivery_recover(at(second), STALE_US, 8).await.unwrap();
    assert!(world.store.server_beat(gone, at(5)).await.unwrap());
    assert_eq!(recover(15).await, 0, "a heartbeat counts for ten seconds");
    assert_eq!(recover(16).await, 1);
    assert_eq!(recover(16).await, 0);
    assert_eq!(stored(&world, &tenant).await, [("pending", 1, None)]);
    let server = world.store.server_register(at(16)).await.unwrap();
    let heir = claim(&world.store, server, 16).await.remove(0);
    assert_eq!(
        (heir.attempt.id, heir.attempt.attempt_count, heir.attempt.claim_token),
        (lost.attempt.id, 2, 2),
        "the lost attempt counts"
    );

    // One that has left in order is gone at once.
    world.store.server_leave(server).await.unwrap();
    assert_eq!(recover(16).await, 1);
}

async fn work_in_hand_for_too_long_is_taken_back(world: World) {
    let (tenant, server) = queue(&world, 2).await;
    assert_eq!(
        world.store.delivery_claim(server, at(1), 1, courant_store::Lanes::default()).await.unwrap().deliveries.len(),
        1
    );
    let later = claim(&world.store, server, 200).await;
    assert_eq!(later.len(), 1);
    let recover = async |second| {
        assert!(world.store.server_beat(server, at(second)).await.unwrap());
        world.store.delivery_recover(at(second), STALE_US, 8).await.unwrap()
    };
    assert_eq!(recover(301).await, 0, "five minutes have not passed");
    assert_eq!(recover(302).await, 1);
    let statuses: Vec<_> = stored(&world, &tenant).await.into_iter().map(|s| s.0).collect();
    assert_eq!(statuses.iter().filter(|s| **s == "processing").count(), 1);
    assert_eq!(finish(&world.store, vec![sent(&later[0])]).await, [true]);
}

async fn work_over_its_budget_dies_when_it_is_taken_back(world: World) {
    let (tenant, server) = queue(&world, 2).await;
    let begin = world.end(&tenant).await;
    let claimed = claim(&world.store, server, 1).await;
    assert_eq!(finish(&world.store, vec![retry(&claimed[0], 2)]).await, [true]);
    assert_eq!(claim(&world.store, server, 2).await.len(), 1);
    // One row has had two attempts, the other one.
    assert_eq!(world.store.delivery_recover(at(1000), STALE_US, 2).await.unwrap(), 2);
    let mut ended = stored(&world, &tenant).await;
    ended.sort();
    let [(dead, 2, Some(why)), (back, 1, None)] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!((*dead, *back), ("dead", "pending"));
    assert!(why.contains("may have arrived"), "{why}");
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["notification_delivery.dead"]);
    assert_eq!(payload(&told[0])["attemptCount"], 2);
    assert_eq!(payload(&told[0])["errorClass"], "transient");
}

/// One delivery in each status, by age: dead, failed, processing, pending.
async fn one_of_each(world: &World) -> (Tenant, Vec<Claimed>, Vec<DeliveryId>) {
    let (tenant, server) = queue(world, 3).await;
    let claimed = claim(&world.store, server, 1).await;
    assert_eq!(finish(&world.store, vec![dead(&claimed[0], false), retry(&claimed[1], 500)]).await, [true, true]);
    add(world, &tenant, 1, 50).await;
    let listed = world.store.delivery_list(&tenant.caller, DeliveryQuery::default(), None, 10).await.unwrap().items;
    let ids: Vec<_> = listed.iter().rev().map(|d| d.id).collect();
    let statuses: Vec<_> = listed.iter().rev().map(|d| d.status.as_str()).collect();
    assert_eq!(statuses, ["dead", "failed", "processing", "pending"]);
    (tenant, claimed, ids)
}

async fn only_what_is_dead_is_queued_again(world: World) {
    let (tenant, claimed, ids) = one_of_each(&world).await;
    let before = stored(&world, &tenant).await;
    let requeue = async |id| now(world.store.delivery_requeue(tenant.change_at(700), id).await.unwrap()).outcome;
    for id in &ids[1..] {
        assert_eq!(requeue(*id).await, RetryOutcome::AlreadyQueued);
    }
    assert_eq!(stored(&world, &tenant).await, before);
    assert_eq!(requeue(ids[0]).await, RetryOutcome::Requeued);
    assert_eq!(requeue(ids[0]).await, RetryOutcome::AlreadyQueued);
    let listed = world.store.delivery_list(&tenant.caller, DeliveryQuery::default(), None, 10).await.unwrap().items;
    let again = &listed[3];
    assert_eq!((again.id, again.status, again.attempt_count), (claimed[0].attempt.id, DeliveryStatus::Pending, 0));
    assert_eq!((again.last_error.as_deref(), again.run_at), (None, at(700)));
    not_found(world.store.delivery_requeue(tenant.change(), DeliveryId(Uuid::from_u128(1))).await);
}

async fn a_requeue_needs_the_right_on_the_integrations_name(world: World) {
    let (tenant, _, ids) = one_of_each(&world).await;
    let update = Permission::NotificationIntegrationUpdate;
    let with =
        |permission, name: &str| tenant.change_with(&[(permission, Resource::NotificationIntegration(name.into()))]);
    not_found(world.store.delivery_requeue(with(update, "dev"), ids[0]).await);
    not_found(world.store.delivery_requeue(with(Permission::NotificationIntegrationRead, "ops"), ids[0]).await);
    let outcome = now(world.store.delivery_requeue(with(update, "ops"), ids[0]).await.unwrap()).outcome;
    assert_eq!(outcome, RetryOutcome::Requeued);
}

async fn dead_deliveries_are_pruned_by_their_last_attempt(world: World) {
    let (tenant, ..) = one_of_each(&world).await;
    assert_eq!(world.store.delivery_prune(at(1)).await.unwrap(), 0, "its last attempt was at 1");
    assert_eq!(world.store.delivery_prune(at(2)).await.unwrap(), 1);
    let statuses: Vec<_> = stored(&world, &tenant).await.into_iter().map(|s| s.0).collect();
    assert_eq!(statuses, ["failed", "processing", "pending"], "only what is dead goes");
    assert_eq!(world.store.delivery_prune(at(9999)).await.unwrap(), 0);
}

async fn deliveries_are_listed_by_status_and_right_in_pages(world: World) {
    use DeliveryStatus::{Dead, Failed, Pending, Processing};
    let (tenant, _, ids) = one_of_each(&world).await;
    now(world.store.integration_create(tenant.change(), tenant.integration("dev", &["task."]), None).await.unwrap());
    world.append(&tenant, vec![draft("task.made", "x")]).await;
    assert_eq!(world.announce(at(60)).await, 2);
    let list = async |caller: &_, statuses: &[DeliveryStatus], limit| {
        let (mut seen, mut key) = (Vec::new(), None);
        loop {
            let page = world
                .store
                .delivery_list(
                    caller,
                    DeliveryQuery { statuses: statuses.to_vec(), ..DeliveryQuery::default() },
                    key,
                    limit,
                )
                .await
                .unwrap();
            assert!(page.items.len() <= usize::try_from(limit).unwrap());
            seen.extend(page.items.into_iter().map(|d| (d.integration_name, d.status)));
            key = page.next;
            if key.is_none() {
                return seen
                    .into_iter()
                    .map(|(name, status)| format!("{name} {}", status.as_str()))
                    .collect::<Vec<_>>();
            }
        }
    };
    let read = |name: &str| {
        let resource = Resource::NotificationIntegration(name.into());
        tenant.caller_with(&[(Permission::NotificationIntegrationRead, resource)])
    };
    for limit in [1, 2, 100] {
        assert_eq!(list(&tenant.caller, &[], limit).await.len(), 6);
        assert_eq!(list(&read("dev"), &[], limit).await, ["dev pending"]);
        assert_eq!(list(&read("ops"), &[Pending], limit).await, ["ops pending", "ops pending"]);
        assert_eq!(list(&read("ops"), &[Dead, Processing], limit).await, ["ops processing", "ops dead"]);
        assert_eq!(list(&tenant.caller, &[Failed], limit).await, ["ops failed"]);
        assert_eq!(list(&read("other"), &[], limit).await, Vec::<String>::new());
    }
    let page = world
        .store
        .delivery_list(&tenant.caller, DeliveryQuery { statuses: vec![Dead], ..DeliveryQuery::default() }, None, 1)
        .await
        .unwrap();
    assert_eq!((page.items[0].id, page.next), (ids[0], None));
}

async fn the_backlog_counts_each_status(world: World) {
    assert_eq!(world.store.delivery_backlog().await.unwrap(), []);
    let (tenant, ..) = one_of_each(&world).await;
    add(&world, &tenant, 2, 60).await;
    let mut backlog = world.store.delivery_backlog().await.unwrap();
    backlog.sort();
    let expected = [("dead", 1), ("failed", 1), ("pending", 3), ("processing", 1)].map(|(s, n)| (s.to_owned(), n));
    assert_eq!(backlog, expected);
}
