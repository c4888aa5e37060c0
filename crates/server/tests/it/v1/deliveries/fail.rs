//! What fails: again later, or never again and in sight.

use courant_api::Timestamp;
use courant_testkit::Receiver;

use crate::support::tenant::{WEBHOOK_SECRET, id, order};
use crate::support::{Answer, Tenant, Value, World, json, on_both_databases};

/// The journalled deaths, as (error class, attempts).
async fn deaths(tenant: &Tenant) -> Vec<(String, i64)> {
    let told = tenant.events("types=notification_delivery.dead").await;
    let payload = |event: &Value| {
        let payload = &event["payload"];
        (payload["errorClass"].as_str().unwrap().to_owned(), payload["attemptCount"].as_i64().unwrap())
    };
    told.iter().map(payload).collect()
}

async fn tenant(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    tenant
}

async fn a_permanent_failure_is_dead_at_once_and_says_why(world: &World) {
    let tenant = world.tenant().await;
    let (integration, dead) = tenant.dead_delivery(world).await;
    let host = world.sink.address();
    assert_eq!(dead["lastError"], format!("HTTP 404 from {host}"));
    assert_eq!((&dead["integrationId"], &dead["attemptCount"]), (&json!(integration), &json!(1)));
    assert_eq!((&dead["eventType"], &dead["integrationName"]), (&json!("journal_event"), &json!("billing")));
    assert_eq!(dead["subject"], json!({ "kind": "order", "id": "o_1", "name": "Order 1" }));
    let journalled = tenant.events("types=notification_delivery.dead").await.remove(0);
    assert_eq!((&journalled["entityId"], &journalled["actorId"]), (&dead["id"], &Value::Null));
    let expected = json!({
        "integrationId": integration, "integrationName": "billing", "eventType": "journal_event", "attemptCount": 1,
        "errorClass": "destination",
    });
    assert_eq!(journalled["payload"], expected);
}

async fn each_kind_of_refusal_has_its_class(world: &World) {
    let tenant = tenant(world).await;
    tenant.webhook("hooks", &world.sink, &["order."], json!({})).await;
    for (n, (status, class)) in
        [(401, "credential"), (404, "destination"), (422, "payload"), (302, "destination")].into_iter().enumerate()
    {
        tenant.append(order("order.made", "o_1")).await;
        world.sink.next().await.answer(Answer::status(status));
        let told = crate::support::eventually("a death", async || {
            let told = deaths(&tenant).await;
            (told.len() > n).then_some(told)
        });
        assert_eq!(told.await.pop(), Some((class.to_owned(), 1)), "{status}");
    }
}

async fn slacks_own_errors_are_told_by_their_code(world: &World) {
    let tenant = tenant(world).await;
    tenant.slack("chat", &["order."]).await;
    tenant.append(order("order.made", "o_1")).await;
    world.slack.next().await.answer(Answer::slack_refused("channel_not_found"));
    let dead = tenant.delivery("dead").await;
    assert!(dead["lastError"].as_str().unwrap().contains("channel_not_found"), "{dead}");
    assert_eq!(deaths(&tenant).await, [("destination".to_owned(), 1)]);
}

async fn a_failure_that_passes_is_tried_again_under_the_same_id(world: &World) {
    let tenant = tenant(world).await;
    tenant.webhook("hooks", &world.sink, &["order."], json!({})).await;
    tenant.append(order("order.made", "o_1")).await;
    let first = world.sink.next().await;
    let (id, body) = (first.header("webhook-id").to_owned(), first.body.clone());
    first.answer(Answer::status(503));
    // The pause before the second attempt may be as good as none, so it is not looked for in the list.
    let second = world.sink.next().await;
    second.verified(WEBHOOK_SECRET);
    assert_eq!((second.header("webhook-id"), &second.body), (id.as_str(), &body));
    let now = tenant.deliveries().await.remove(0);
    assert_eq!((&now["attemptCount"], &now["status"]), (&json!(2), &json!("processing")));
    assert_eq!(now["lastError"], format!("HTTP 503 from {}", world.sink.address()));
    second.answer(Answer::status(200));
    tenant.all_delivered().await;
    assert_eq!(deaths(&tenant).await, []);
}

async fn a_receiver_that_asks_for_time_gets_it_but_no_more_than_an_hour(world: &World) {
    let tenant = tenant(world).await;
    tenant.webhook("hooks", &world.sink, &["order."], json!({})).await;
    for (asked, from, to) in [(1200, 1200, 1300), (7 * 24 * 3600, 3600, 3700)] {
        tenant.append(order("order.made", "o_1")).await;
        let before = courant_server::clock::now();
        world.sink.next().await.answer(Answer::status(429).retry_after(asked));
        let failed = crate::support::eventually("a failed delivery", async || {
            let newest = tenant.deliveries().await.into_iter().next()?;
            (newest["status"] == "failed").then_some(newest)
        })
        .await;
        let run_at: Timestamp = serde_json::from_value(failed["runAt"].clone()).unwrap();
        let seconds = run_at.unix_seconds() - before.unix_seconds();
        assert!((from..to).contains(&seconds), "asked for {asked} s, waits {seconds} s");
        assert_eq!(failed["lastError"], format!("HTTP 429 from {}", world.sink.address()));
    }
}

async fn the_last_attempt_of_the_budget_ends_it(world: &World) {
    let world = World::start(world.engine, &[("COURANT_NOTIFICATION_MAX_ATTEMPTS", "2")]).await;
    let tenant = tenant(&world).await;
    tenant.webhook("hooks", &world.sink, &["order."], json!({})).await;
    tenant.append(order("order.made", "o_1")).await;
    for status in [500, 503] {
        world.sink.next().await.answer(Answer::status(status));
    }
    let dead = tenant.delivery("dead").await;
    assert_eq!(
        (&dead["attemptCount"], &dead["lastError"]),
        (&json!(2), &json!(format!("HTTP 503 from {}", world.sink.address())))
    );
    assert_eq!(deaths(&tenant).await, [("transient".to_owned(), 2)]);
    world.finish().await;
}

async fn a_target_that_is_gone_for_good_disables_its_integration(world: &World) {
    let tenant = tenant(world).await;
    let hooks = id(&tenant.webhook("hooks", &world.sink, &["order."], json!({})).await);
    tenant.append(order("order.made", "o_1")).await;
    world.sink.next().await.answer(Answer::status(410));
    tenant.delivery("dead").await;
    let path = tenant.org(&format!("/notification-integrations/{hooks}"));
    let view = tenant.get(&path).await.expect(200);
    assert_eq!((&view["enabled"], &view["version"]), (&json!(false), &json!(2)));
    assert_eq!(view["disabledReason"], format!("HTTP 410 from {}", world.sink.address()));
    let types: Vec<_> = tenant.events("types=notification_").await.iter().map(|e| e["type"].clone()).collect();
    assert_eq!(
        types,
        ["notification_integration.created", "notification_delivery.dead", "notification_integration.disabled"]
    );
    // It hears no more until it is enabled again, which clears the reason.
    let unheard = tenant.append(order("order.made", "o_2")).await;
    world.announced(unheard["sequence"].as_i64().unwrap()).await;
    assert_eq!(tenant.deliveries().await.len(), 1);
    assert_eq!(tenant.edit(&hooks, json!({ "enabled": true })).await["disabledReason"], Value::Null);
    tenant.append(order("order.made", "o_3")).await;
    let arrival = world.sink.next().await;
    assert_eq!(arrival.json()["subject"]["id"], "o_3");
    arrival.answer(Answer::status(200));
}

async fn a_target_that_the_operator_has_not_allowed_is_never_reached(world: &World) {
    let tenant = tenant(world).await;
    let secret_service = Receiver::start().await;
    let port = secret_service.address().port();
    for (n, host) in
        ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"].into_iter().enumerate()
    {
        let config = json!({ "url": format!("http://{host}:{port}/in") });
        let hooks = tenant
            .webhook(&format!("hooks {n}"), &secret_service, &["order."], json!({ "providerConfig": config }))
            .await;
        tenant.append(order("order.made", "o_1")).await;
        let dead = tenant.delivery("dead").await;
        assert!(dead["lastError"].as_str().unwrap().contains("not allowed"), "{host}: {dead}");
        assert_eq!(deaths(&tenant).await.last().unwrap(), &("blocked".to_owned(), 1));
        let path = tenant.org(&format!("/notification-integrations/{}", id(&hooks)));
        assert_eq!(tenant.delete(&path).await.status, 204);
    }
    assert!(secret_service.waiting().is_none(), "a blocked target was reached");
}

async fn the_death_of_a_notification_about_notifications_is_not_journalled(world: &World) {
    let tenant = tenant(world).await;
    tenant.webhook("watcher", &world.sink, &["notification_"], json!({})).await;
    tenant.slack("chat", &[]).await;
    let arrival = world.sink.next().await;
    assert_eq!(arrival.json()["event"]["type"], "notification_integration.created");
    arrival.answer(Answer::status(404));
    tenant.delivery("dead").await;
    assert_eq!(deaths(&tenant).await, []);
}

on_both_databases! {
    a_permanent_failure_is_dead_at_once_and_says_why,
    each_kind_of_refusal_has_its_class,
    slacks_own_errors_are_told_by_their_code,
    a_failure_that_passes_is_tried_again_under_the_same_id,
    a_receiver_that_asks_for_time_gets_it_but_no_more_than_an_hour,
    the_last_attempt_of_the_budget_ends_it,
    a_target_that_is_gone_for_good_disables_its_integration,
    a_target_that_the_operator_has_not_allowed_is_never_reached,
    the_death_of_a_notification_about_notifications_is_not_journalled,
}
