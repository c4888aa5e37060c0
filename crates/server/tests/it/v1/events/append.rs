//! Appending: all or nothing, once for each id, only what the catalogue knows.

use super::entities;
use crate::support::tenant::order;
use crate::support::{Tenant, Value, World, json, no_such_id, on_both_databases};

async fn tenant_with_types(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    tenant.register(&["order.made", "order.paid"]).await;
    tenant
}

fn with(mut event: Value, field: &str, value: impl Into<Value>) -> Value {
    event[field] = value.into();
    event
}

fn batch(events: &[Value]) -> Value {
    json!({ "events": events })
}

/// Sends a batch that must be refused; nothing of it may be stored.
async fn refused(tenant: &Tenant, events: &[Value], status: u16, code: &str) -> Value {
    let before = tenant.end().await;
    let error = tenant.post("/events", &batch(events)).await.refused(status, code);
    assert_eq!(tenant.end().await, before, "a part of a refused batch was stored");
    error
}

async fn a_batch_is_appended_in_its_order(world: &World) {
    let tenant = tenant_with_types(world).await;
    let events: Vec<_> = (0..5).map(|n| order("order.made", &format!("o_{n}"))).collect();
    let answer = tenant.post("/events?until=readable", &batch(&events)).await.expect(201);
    let stored = tenant.events("types=order.").await;
    assert_eq!(entities(&stored), ["o_0", "o_1", "o_2", "o_3", "o_4"]);
    for (item, event) in answer["items"].as_array().unwrap().iter().zip(&stored) {
        let expected = json!({
            "id": event["id"], "sequence": event["sequence"], "duplicate": false, "cursor": event["cursor"],
        });
        assert_eq!(*item, expected);
    }
}

async fn cursors_come_only_with_the_wait_for_readers(world: &World) {
    let tenant = tenant_with_types(world).await;
    let answer = tenant.post("/events", &batch(&[order("order.made", "o_1")])).await.expect(201);
    assert_eq!(answer["items"][0]["cursor"], Value::Null);
    let error = tenant
        .post("/events?until=stored", &batch(&[order("order.made", "o_1")]))
        .await
        .refused(400, "invalid_request");
    assert_eq!(error["details"]["parameter"], "until");
}

async fn an_id_is_appended_once_and_only_with_the_same_content(world: &World) {
    let tenant = tenant_with_types(world).await;
    let event = with(order("order.made", "o_1"), "id", no_such_id());
    let first = tenant.append(event.clone()).await;
    assert_eq!(first["duplicate"], false);
    // A repeat by somebody else, in another batch and with other events, is the same event.
    let producer = tenant.member(&[("events.append", "tenant")]).await;
    let again =
        producer.post("/events?until=readable", &batch(&[order("order.paid", "o_2"), event.clone()])).await.expect(201);
    assert_eq!(again["items"][1], with(first.clone(), "duplicate", true));
    assert_eq!(again["items"][0]["duplicate"], false);

    for (field, other) in [
        ("entityId", json!("o_9")),
        ("type", json!("order.paid")),
        ("payload", json!({ "amount": 8 })),
        ("workspaceId", json!(tenant.workspace(None).await)),
    ] {
        let error = refused(
            &tenant,
            &[order("order.made", "o_3"), with(event.clone(), field, other)],
            409,
            "event_id_conflict",
        )
        .await;
        assert_eq!(error["details"]["id"], event["id"], "{field}");
    }
    let twice = batch(&[event.clone(), event.clone()]);
    let items = tenant.post("/events", &twice).await.expect(201)["items"].take();
    assert_eq!((&items[0]["sequence"], &items[1]["sequence"]), (&first["sequence"], &first["sequence"]));
    assert_eq!(entities(&tenant.events("types=order.").await), ["o_1", "o_2"]);
}

async fn an_id_twice_in_one_batch_is_one_event(world: &World) {
    let tenant = tenant_with_types(world).await;
    let event = with(order("order.made", "o_1"), "id", no_such_id());
    let answer = tenant.post("/events?until=readable", &batch(&[event.clone(), event.clone()])).await.expect(201);
    let items = answer["items"].as_array().unwrap();
    assert_eq!((&items[0]["duplicate"], &items[1]["duplicate"]), (&json!(false), &json!(true)));
    assert_eq!(items[0]["sequence"], items[1]["sequence"]);
    assert_eq!(tenant.events("types=order.").await.len(), 1);
    let event = with(event, "id", no_such_id());
    refused(&tenant, &[event.clone(), with(event, "entityId", "o_2")], 409, "event_id_conflict").await;
}

async fn another_tenants_event_id_is_free(world: &World) {
    let (tenant, other) = (tenant_with_types(world).await, tenant_with_types(world).await);
    let event = with(order("order.made", "o_1"), "id", no_such_id());
    tenant.append(event.clone()).await;
    assert_eq!(other.append(event.clone()).await["duplicate"], false);
    assert_eq!(other.append(event).await["duplicate"], true);
}

async fn types_are_known_and_not_the_cores(world: &World) {
    let tenant = tenant_with_types(world).await;
    let good = order("order.made", "o_1");
    for position in 0..3 {
        let mut events = vec![good.clone(); 3];
        events[position] = order("order.unknown", "o_1");
        let error = refused(&tenant, &events, 422, "unknown_event_type").await;
        assert!(error["message"].as_str().unwrap().contains(&format!("/events/{position}/type")), "{error}");
        for reserved in ["task.created", "workspace.created", "notification_delivery.dead", "deployment.invented"] {
            events[position] = order(reserved, "o_1");
            refused(&tenant, &events, 403, "reserved_event_type").await;
        }
        events[position] = with(good.clone(), "entityType", "invoice");
        let error = refused(&tenant, &events, 400, "invalid_request").await;
        assert_eq!(error["details"]["pointer"], format!("/events/{position}/entityType"));
    }
}

async fn every_fault_against_the_schema_is_pointed_at(world: &World) {
    let tenant = tenant_with_types(world).await;
    let broken = with(order("order.made", "o_1"), "payload", json!({ "amount": "7", "name": 8 }));
    let no_object = with(order("order.made", "o_1"), "payload", json!([]));
    let error = refused(&tenant, &[order("order.made", "o_1"), broken, no_object], 422, "invalid_event_payload").await;
    let mut pointers: Vec<_> =
        error["details"]["errors"].as_array().unwrap().iter().map(|e| e["pointer"].as_str().unwrap()).collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/events/1/payload/amount", "/events/1/payload/name", "/events/2/payload"]);
}

async fn a_payload_is_kept_as_it_was_written(world: &World) {
    let tenant = tenant_with_types(world).await;
    let payload = r#"{ "z":1.50, "name":"\u00e9\/",  "big":12345678901234567890, "amount":7 }"#;
    let body =
        format!(r#"{{"events":[{{"type":"order.made","entityType":"order","entityId":"o_1","payload":{payload}}}]}}"#);
    tenant.call(http::Method::POST, "/events?until=readable").text("application/json", body).await.expect(201);
    let page = tenant.get("/events?types=order.").await;
    assert!(page.text().contains(&format!(r#""payload":{payload}"#)), "{}", page.text());
}

async fn one_to_five_hundred_events_go_in_a_batch(world: &World) {
    let tenant = tenant_with_types(world).await;
    let events = vec![order("order.made", "o_1"); 501];
    for wrong in [&events[..0], &events[..]] {
        let error = refused(&tenant, wrong, 400, "invalid_request").await;
        assert_eq!(error["details"]["pointer"], "/events");
    }
    tenant.post("/events?until=readable", &batch(&events[..500])).await.expect(201);
    assert_eq!(tenant.events("types=order.").await.len(), 500);
}

async fn texts_have_bounds(world: &World) {
    let tenant = tenant_with_types(world).await;
    let good = order("order.made", "o_1");
    let long = "x".repeat(201);
    for (field, bad) in [
        ("entityId", json!("")),
        ("entityId", json!(long)),
        ("entityId", json!(" o_1")),
        ("entityId", json!("o\n1")),
        ("entityId", json!(7)),
        ("entityType", json!("")),
        ("correlationId", json!(long)),
        ("causationId", json!("")),
        ("id", json!("not-a-uuid")),
        ("workspaceId", json!("7")),
    ] {
        let error =
            refused(&tenant, &[good.clone(), with(good.clone(), field, bad.clone())], 400, "invalid_request").await;
        assert_eq!(error["details"]["pointer"], format!("/events/1/{field}"), "{bad}: {error}");
    }
    let mut without = good;
    without.as_object_mut().unwrap().remove("payload");
    refused(&tenant, &[without], 400, "invalid_request").await;
}

async fn a_workspace_must_be_there_and_the_right_on_it(world: &World) {
    let tenant = tenant_with_types(world).await;
    let (own, other) = (tenant.workspace(None).await, tenant.workspace(None).await);
    let at = |workspace: &str| with(order("order.made", "o_1"), "workspaceId", workspace);
    for position in 0..2 {
        let mut events = vec![at(&own), at(&own)];
        events[position] = at(&no_such_id());
        assert_eq!(refused(&tenant, &events, 404, "not_found").await["message"], "workspace not found");
    }
    let producer = tenant.member(&[("events.append", &format!("workspace:{own}"))]).await;
    producer.post("/events?until=readable", &batch(&[at(&own)])).await.expect(201);
    let before = tenant.end().await;
    for events in [[at(&own), at(&other)], [order("order.made", "o_1"), at(&own)]] {
        producer.post("/events", &batch(&events)).await.refused(403, "permission_denied");
    }
    assert_eq!(tenant.end().await, before);
    let stored = tenant.events("types=order.").await;
    assert_eq!((&stored[0]["workspaceId"], &stored[0]["actorId"]), (&json!(own), &json!(producer.id)));
}

async fn an_event_says_where_it_comes_from(world: &World) {
    let tenant = tenant_with_types(world).await;
    let told = with(with(order("order.made", "o_2"), "correlationId", "c-7"), "causationId", "k-7");
    let call = tenant.post("/events?until=readable", &batch(&[order("order.made", "o_1"), told]));
    call.header("x-request-id", "r-1").header("x-correlation-id", "c-1").await.expect(201);
    let stored = tenant.events("types=order.").await;
    let of = |event: &Value| [event["requestId"].clone(), event["correlationId"].clone(), event["causationId"].clone()];
    assert_eq!(of(&stored[0]), [json!("r-1"), json!("c-1"), Value::Null]);
    assert_eq!(of(&stored[1]), [json!("r-1"), json!("c-7"), json!("k-7")]);
    assert_eq!(stored[0]["actorId"], json!(tenant.principal));
}

on_both_databases! {
    a_batch_is_appended_in_its_order,
    cursors_come_only_with_the_wait_for_readers,
    an_id_is_appended_once_and_only_with_the_same_content,
    an_id_twice_in_one_batch_is_one_event,
    another_tenants_event_id_is_free,
    types_are_known_and_not_the_cores,
    every_fault_against_the_schema_is_pointed_at,
    a_payload_is_kept_as_it_was_written,
    one_to_five_hundred_events_go_in_a_batch,
    texts_have_bounds,
    a_workspace_must_be_there_and_the_right_on_it,
    an_event_says_where_it_comes_from,
}
