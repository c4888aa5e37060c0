//! What arrives, where, and from which events.

use crate::support::tenant::{BOT_TOKEN, WEBHOOK_SECRET, id, order};
use crate::support::{Answer, Arrival, Tenant, Value, World, json, on_both_databases};

async fn tenant(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    tenant.register(&["order.made", "order.paid", "order_parcel.sent"]).await;
    tenant
}

/// Takes the next webhook: its notification.
async fn taken(world: &World) -> Value {
    let arrival = world.sink.next().await;
    let notification = arrival.verified(WEBHOOK_SECRET);
    arrival.answer(Answer::status(200));
    notification
}

async fn an_event_is_one_slack_message_of_one_attachment_with_two_blocks(world: &World) {
    let tenant = tenant(world).await;
    tenant.slack("chat", &["order."]).await;
    tenant.append(order("order.made", "o_1")).await;
    let arrival = world.slack.next().await;
    assert_eq!((arrival.method.as_str(), arrival.target.as_str()), ("POST", "/api/chat.postMessage"));
    assert_eq!(arrival.header("authorization"), format!("Bearer {BOT_TOKEN}"));
    assert_eq!(arrival.header("content-type"), "application/json; charset=utf-8");
    let message = arrival.json();
    assert_eq!((&message["channel"], message.get("text")), (&json!("#ops"), None));
    let [attachment] = &message["attachments"].as_array().unwrap()[..] else { panic!("{message}") };
    let [headline, context] = &attachment["blocks"].as_array().unwrap()[..] else { panic!("{message}") };
    let color = attachment["color"].as_str().unwrap();
    assert!(color.len() == 7 && color.starts_with('#'), "{color}");
    assert_eq!((&headline["type"], &context["type"]), (&json!("section"), &json!("context")));
    let headline = headline["text"]["text"].as_str().unwrap().lines().next().unwrap();
    let (_emoji, plain) = headline.split_once(' ').unwrap();
    assert_eq!(attachment["fallback"], plain.replace('*', ""));
    assert!(plain.contains("Order 1"), "{plain}");
    assert!(context["elements"][0]["text"].as_str().unwrap().contains("via chat"));
    let delivery = tenant.deliveries().await.remove(0);
    assert_eq!(message["metadata"]["event_payload"]["delivery_id"], delivery["id"]);
    arrival.answer(Answer::slack_posted());
    tenant.all_delivered().await;
    assert!(world.slack.waiting().is_none(), "it was told twice");
}

async fn an_event_is_one_signed_webhook_that_verifies(world: &World) {
    let tenant = tenant(world).await;
    let headers = json!({ "url": world.sink.url("/in?team=ops"), "headers": { "X-Team": "ops" } });
    tenant.webhook("hooks", &world.sink, &["order.made"], json!({ "providerConfig": headers })).await;
    let appended = tenant.append(order("order.made", "o_1")).await;
    let arrival: Arrival = world.sink.next().await;
    let notification = arrival.verified(WEBHOOK_SECRET);
    assert_eq!((arrival.target.as_str(), arrival.header("x-team")), ("/in?team=ops", "ops"));
    assert_eq!(arrival.header("content-type"), "application/json");
    assert_eq!(arrival.header("webhook-id"), notification["id"].as_str().unwrap());
    let delivery = tenant.deliveries().await.remove(0);
    assert_eq!((&delivery["id"], &delivery["status"]), (&notification["id"], &json!("processing")));
    let event = tenant.get(&format!("/events/{}", id(&appended))).await.expect(200);
    let expected = json!({
        "id": delivery["id"], "eventType": "journal_event", "eventId": event["id"], "sequence": event["sequence"],
        "orgId": tenant.id, "occurredAt": event["occurredAt"],
        "subject": { "kind": "order", "id": "o_1", "name": "Order 1" }, "labels": {}, "url": null,
        "event": {
            "type": "order.made", "schemaVersion": 1, "entityType": "order", "entityId": "o_1", "workspaceId": null,
            "actorId": tenant.principal, "correlationId": event["correlationId"], "causationId": null,
            "payload": event["payload"],
        },
    });
    assert_eq!(notification, expected);
    arrival.answer(Answer::status(204));
    tenant.all_delivered().await;
    assert!(world.sink.waiting().is_none(), "it was told twice");
}

async fn a_webhook_may_ask_for_cloud_events(world: &World) {
    let tenant = tenant(world).await;
    let config = json!({ "url": world.sink.url("/in"), "format": "cloudevent" });
    tenant.webhook("hooks", &world.sink, &["order."], json!({ "providerConfig": config })).await;
    let appended = tenant.append(order("order.made", "o_1")).await;
    let arrival = world.sink.next().await;
    let event = arrival.verified(WEBHOOK_SECRET);
    assert_eq!(arrival.header("content-type"), "application/cloudevents+json");
    assert_eq!(
        (&event["specversion"], &event["type"], &event["id"]),
        (&json!("1.0"), &json!("order.made"), &appended["id"])
    );
    assert_eq!(event["data"], json!({ "amount": 7, "name": "Order 1" }));
    arrival.answer(Answer::status(200));
    tenant.all_delivered().await;
}

async fn an_integration_hears_of_what_it_names_and_only_from_its_creation_on(world: &World) {
    let tenant = tenant(world).await;
    tenant.append(order("order.made", "too_early")).await;
    tenant.webhook("hooks", &world.sink, &["order.made", "workspace."], json!({})).await;
    tenant.webhook("silent", &world.sink, &[], json!({})).await;
    for (name, entity) in [("order.paid", "not_named"), ("order_parcel.sent", "not_named"), ("order.made", "o_1")] {
        tenant.append(order(name, entity)).await;
    }
    let workspace = tenant.workspace(None).await;
    let last = tenant.append(order("order.paid", "not_named")).await;
    let mut subjects = vec![taken(world).await["subject"]["id"].clone(), taken(world).await["subject"]["id"].clone()];
    subjects.sort_by_key(ToString::to_string);
    let mut expected = vec![json!(workspace), json!("o_1")];
    expected.sort_by_key(ToString::to_string);
    assert_eq!(subjects, expected);
    world.announced(last["sequence"].as_i64().unwrap()).await;
    tenant.all_delivered().await;
    assert!(world.sink.waiting().is_none());
}

async fn a_workspace_narrows_what_an_integration_hears(world: &World) {
    let tenant = tenant(world).await;
    let root = tenant.workspace(None).await;
    let below = tenant.workspace(Some(&root)).await;
    let beside = tenant.workspace(None).await;
    tenant.webhook("hooks", &world.sink, &["order."], json!({ "workspaceId": root })).await;
    let mut last = json!(null);
    for (workspace, entity) in
        [(Some(&beside), "beside"), (None, "tenant"), (Some(&below), "below"), (Some(&beside), "again")]
    {
        let mut event = order("order.made", entity);
        event["workspaceId"] = json!(workspace);
        last = tenant.append(event).await;
    }
    assert_eq!(taken(world).await["subject"]["id"], "below");
    world.announced(last["sequence"].as_i64().unwrap()).await;
    tenant.all_delivered().await;
    assert!(world.sink.waiting().is_none());
}

async fn an_integration_falls_silent_when_its_saver_may_no_longer_read(world: &World) {
    let tenant = tenant(world).await;
    let maker = tenant.member(&[("notification_integration.create", "tenant")]).await;
    let grant = tenant.grant(&maker.id, "events.read", "tenant").await;
    let maker = crate::support::Tenant { principal: maker.id.clone(), api: maker.api.clone(), ..tenant.clone() };
    maker.webhook("hooks", &world.sink, &["order."], json!({})).await;
    tenant.append(order("order.made", "o_1")).await;
    assert_eq!(taken(world).await["subject"]["id"], "o_1");
    assert_eq!(tenant.delete(&format!("/grants/{grant}")).await.status, 204);
    let last = tenant.append(order("order.made", "o_2")).await;
    world.announced(last["sequence"].as_i64().unwrap()).await;
    tenant.all_delivered().await;
    assert!(world.sink.waiting().is_none());
}

async fn tenants_do_not_hear_each_others_events(world: &World) {
    let (mine, other) = (tenant(world).await, tenant(world).await);
    mine.webhook("hooks", &world.sink, &["order."], json!({})).await;
    other.append(order("order.made", "foreign")).await;
    mine.append(order("order.made", "own")).await;
    let notification = taken(world).await;
    assert_eq!((&notification["subject"]["id"], &notification["orgId"]), (&json!("own"), &json!(mine.id)));
    mine.all_delivered().await;
    assert!(world.sink.waiting().is_none());
    assert_eq!(other.deliveries().await, Vec::<Value>::new());
}

async fn many_events_arrive_once_each(world: &World) {
    let tenant = tenant(world).await;
    tenant.webhook("hooks", &world.sink, &["order."], json!({})).await;
    let events: Vec<_> = (0..150).map(|n| order("order.made", &format!("o_{n}"))).collect();
    tenant.post("/events?until=readable", &json!({ "events": events })).await.expect(201);
    let mut sequences = Vec::new();
    for _ in 0..150 {
        sequences.push(taken(world).await["sequence"].as_i64().unwrap());
    }
    tenant.all_delivered().await;
    assert!(world.sink.waiting().is_none());
    sequences.sort_unstable();
    sequences.dedup();
    assert_eq!(sequences.len(), 150);
}

on_both_databases! {
    an_event_is_one_slack_message_of_one_attachment_with_two_blocks,
    an_event_is_one_signed_webhook_that_verifies,
    a_webhook_may_ask_for_cloud_events,
    an_integration_hears_of_what_it_names_and_only_from_its_creation_on,
    a_workspace_narrows_what_an_integration_hears,
    an_integration_falls_silent_when_its_saver_may_no_longer_read,
    tenants_do_not_hear_each_others_events,
    many_events_arrive_once_each,
}
