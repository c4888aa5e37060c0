//! `POST …/notification-deliveries/{id}/retry`: out of the dead-letter view.

use crate::support::tenant::{WEBHOOK_SECRET, id};
use crate::support::{Answer, World, json, no_such_id, on_both_databases};

async fn a_dead_delivery_that_is_retried_arrives_under_its_id(world: &World) {
    let tenant = world.tenant().await;
    let (_, dead) = tenant.dead_delivery(world).await;
    assert_eq!(tenant.retry(&id(&dead)).await.expect(200), json!({ "outcome": "requeued" }));
    let arrival = world.sink.next().await;
    assert_eq!(arrival.verified(WEBHOOK_SECRET)["id"], dead["id"]);
    // It starts over: the count is this attempt's alone, and the old error is gone.
    let under_way = tenant.deliveries().await.remove(0);
    assert_eq!((&under_way["status"], &under_way["attemptCount"]), (&json!("processing"), &json!(1)));
    assert!(under_way["lastError"].is_null());
    assert_eq!(tenant.retry(&id(&dead)).await.expect(200), json!({ "outcome": "already_queued" }));
    arrival.answer(Answer::status(200));
    tenant.all_delivered().await;
    assert!(world.sink.waiting().is_none(), "it was sent twice");
}

async fn a_sent_a_missing_a_foreign_and_a_refused_one_are_the_same_bytes(world: &World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let (_, dead) = tenant.dead_delivery(world).await;
    let (_, foreign) = other.dead_delivery(world).await;
    tenant.retry(&id(&dead)).await.expect(200);
    world.sink.next().await.answer(Answer::status(200));
    tenant.all_delivered().await;
    let sent = tenant.retry(&id(&dead)).await;
    assert_eq!(sent.refused(404, "not_found")["message"], "notification delivery not found");
    let elsewhere = tenant.member(&[("notification_integration.update", "notification_integration:elsewhere")]).await;
    let refused = elsewhere.act(&tenant.org(&format!("/notification-deliveries/{}/retry", id(&dead)))).await;
    let other_org = tenant.act(&other.org(&format!("/notification-deliveries/{}/retry", id(&foreign)))).await;
    for reply in [
        tenant.retry(&no_such_id()).await,
        tenant.retry(&id(&foreign)).await,
        tenant.retry("not-an-id").await,
        other_org,
        refused,
    ] {
        assert_eq!(reply.comparable(), sent.comparable());
    }
    assert_eq!(other.delivery("dead").await, foreign);
}

async fn a_retry_that_fails_is_dead_again_and_told_again(world: &World) {
    let tenant = world.tenant().await;
    let (_, dead) = tenant.dead_delivery(world).await;
    tenant.retry(&id(&dead)).await.expect(200);
    world.sink.next().await.answer(Answer::status(400));
    let again = tenant.delivery("dead").await;
    assert_eq!((&again["id"], &again["attemptCount"]), (&dead["id"], &json!(1)));
    assert_eq!(again["lastError"], format!("HTTP 400 from {}", world.sink.address()));
    let told = tenant.events("types=notification_delivery.dead").await;
    assert_eq!(told.iter().map(|e| &e["payload"]["errorClass"]).collect::<Vec<_>>(), ["destination", "payload"]);
}

async fn the_message_of_a_retry_is_that_of_its_event_whatever_has_changed(world: &World) {
    let tenant = world.tenant().await;
    let (integration, dead) = tenant.dead_delivery(world).await;
    tenant
        .edit(&integration, json!({ "name": "renamed", "providerConfig": { "url": world.sink.url("/moved") } }))
        .await;
    assert_eq!(tenant.delivery("dead").await["integrationName"], "renamed");
    tenant.retry(&id(&dead)).await.expect(200);
    let arrival = world.sink.next().await;
    assert_eq!(arrival.target, "/moved");
    assert_eq!(arrival.verified(WEBHOOK_SECRET)["subject"], dead["subject"]);
    arrival.answer(Answer::status(200));
    tenant.all_delivered().await;
}

async fn a_retry_honours_an_idempotency_key(world: &World) {
    let tenant = world.tenant().await;
    let (_, dead) = tenant.dead_delivery(world).await;
    let retry = || {
        let path = tenant.org(&format!("/notification-deliveries/{}/retry", id(&dead)));
        tenant.act(&path).header("idempotency-key", "again")
    };
    assert_eq!(retry().await.expect(200), json!({ "outcome": "requeued" }));
    world.sink.next().await.answer(Answer::status(200));
    tenant.all_delivered().await;
    let replayed = retry().await;
    assert_eq!(replayed.expect(200), json!({ "outcome": "requeued" }));
    assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
    assert!(world.sink.waiting().is_none());
}

on_both_databases! {
    a_dead_delivery_that_is_retried_arrives_under_its_id,
    a_sent_a_missing_a_foreign_and_a_refused_one_are_the_same_bytes,
    a_retry_that_fails_is_dead_again_and_told_again,
    the_message_of_a_retry_is_that_of_its_event_whatever_has_changed,
    a_retry_honours_an_idempotency_key,
}
