//! Deliveries that wait for a paused integration, and those that a disabled one gives up.

use crate::support::tenant::{id, order};
use crate::support::{Answer, Tenant, World, json, on_both_databases};

/// A paused webhook with two deliveries that wait.
async fn held(world: &World) -> (Tenant, String) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let hooks = id(&tenant.webhook("hooks", &world.sink, &["order."], json!({ "paused": true })).await);
    tenant.append(order("order.made", "o_1")).await;
    let last = tenant.append(order("order.made", "o_2")).await;
    world.announced(last["sequence"].as_i64().unwrap()).await;
    let waiting = tenant.deliveries().await;
    assert_eq!(
        waiting.iter().map(|d| (&d["status"], &d["attemptCount"])).collect::<Vec<_>>(),
        [(&json!("pending"), &json!(0)); 2]
    );
    (tenant, hooks)
}

async fn a_paused_integration_holds_its_deliveries_until_it_is_resumed(world: &World) {
    let (tenant, hooks) = held(world).await;
    // What another integration is sent shows that the worker came by.
    tenant.slack("chat", &["order."]).await;
    tenant.append(order("order.made", "o_3")).await;
    world.slack.next().await.answer(Answer::slack_posted());
    assert!(world.sink.waiting().is_none(), "a paused integration sent");
    tenant.edit(&hooks, json!({ "paused": false })).await;
    let mut subjects = Vec::new();
    for _ in 0..3 {
        let arrival = world.sink.next().await;
        subjects.push(arrival.json()["subject"]["id"].as_str().unwrap().to_owned());
        arrival.answer(Answer::status(200));
    }
    subjects.sort();
    assert_eq!(subjects, ["o_1", "o_2", "o_3"]);
    tenant.all_delivered().await;
}

async fn a_delivery_that_is_retried_while_it_waits_stays_where_it_is(world: &World) {
    let (tenant, _) = held(world).await;
    let before = tenant.deliveries().await;
    for delivery in &before {
        assert_eq!(tenant.retry(&id(delivery)).await.expect(200), json!({ "outcome": "already_queued" }));
    }
    assert_eq!(tenant.deliveries().await, before);
}

async fn what_waits_for_a_disabled_integration_is_dead_and_not_dropped(world: &World) {
    let (tenant, hooks) = held(world).await;
    tenant.edit(&hooks, json!({ "paused": false, "enabled": false })).await;
    crate::support::eventually("two dead deliveries", async || {
        tenant.deliveries().await.iter().all(|d| d["status"] == "dead").then_some(())
    })
    .await;
    for delivery in tenant.deliveries().await {
        assert_eq!(delivery["lastError"], "notification integration is disabled");
    }
    let told = tenant.events("types=notification_delivery.dead").await;
    assert_eq!(told.iter().map(|e| &e["payload"]["errorClass"]).collect::<Vec<_>>(), ["disabled", "disabled"]);
    assert!(world.sink.waiting().is_none(), "a disabled integration sent");
    // Enabled again, a retry sends them.
    tenant.edit(&hooks, json!({ "enabled": true })).await;
    for delivery in tenant.deliveries().await {
        assert_eq!(tenant.retry(&id(&delivery)).await.expect(200), json!({ "outcome": "requeued" }));
        world.sink.next().await.answer(Answer::status(200));
    }
    tenant.all_delivered().await;
}

async fn a_disabled_integration_is_queued_nothing(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    tenant.webhook("hooks", &world.sink, &["order."], json!({ "enabled": false })).await;
    let last = tenant.append(order("order.made", "o_1")).await;
    world.announced(last["sequence"].as_i64().unwrap()).await;
    assert!(tenant.deliveries().await.is_empty());
}

on_both_databases! {
    a_paused_integration_holds_its_deliveries_until_it_is_resumed,
    a_delivery_that_is_retried_while_it_waits_stays_where_it_is,
    what_waits_for_a_disabled_integration_is_dead_and_not_dropped,
    a_disabled_integration_is_queued_nothing,
}
