//! Payloads that cannot be kept are refused wherever in a batch they stand, and nothing of the batch is stored.
//!
//! Broken on purpose: without the check of the text in `ops/journal.rs` the first fails on both databases.

use http::Method;

use crate::support::{Reply, Tenant, World, on_both_databases};

const LARGEST: usize = 256 * 1024;
const DEEPEST: usize = 64;

fn event(payload: &str) -> String {
    format!(r#"{{"type":"order.made","entityType":"order","entityId":"o_1","payload":{payload}}}"#)
}

async fn send(tenant: &Tenant, events: &[String]) -> Reply {
    let body = format!(r#"{{"events":[{}]}}"#, events.join(","));
    tenant.call(Method::POST, "/events?until=readable").text("application/json", body).await
}

/// An object of this many bytes.
fn of_size(bytes: usize) -> String {
    let frame = r#"{"a":""}"#.len();
    format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - frame))
}

/// Objects inside one another.
fn of_depth(depth: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
}

async fn what_cannot_be_kept_is_refused_at_any_place_of_a_batch(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let before = tenant.end().await;
    for (payload, at) in [
        (r#"{"a":"\u0000"}"#.to_owned(), "/a"),
        (r#"{"a\u0000":1}"#.to_owned(), ""),
        (r#"{"a":["x","\ud800"]}"#.to_owned(), "/a/1"),
        (r#"{"a":"\udc00\ud800"}"#.to_owned(), "/a"),
        (r#"{"a":1e400}"#.to_owned(), "/a"),
        (r#"{"a":{"b":-1e400}}"#.to_owned(), "/a/b"),
        (r#"{"a":1,"b":2,"a":3}"#.to_owned(), "/a"),
        (r#"{"a":1,"\u0061":3}"#.to_owned(), "/a"),
        (of_depth(DEEPEST + 1), "/a"),
        (of_size(LARGEST + 1), ""),
    ] {
        for position in 0..3 {
            let mut events = vec![event("{}"); 3];
            events[position] = event(&payload);
            let shown: String = payload.chars().take(40).collect();
            let error = send(&tenant, &events).await.refused(422, "invalid_event_payload");
            let pointer = error["details"]["errors"][0]["pointer"].as_str().unwrap();
            let start = format!("/events/{position}/payload{at}");
            assert!(pointer.starts_with(&start), "{shown}: {pointer} does not start with {start}");
        }
    }
    assert_eq!(tenant.end().await, before, "a part of a refused batch was stored");
}

async fn what_just_fits_is_kept(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let payloads = [of_depth(DEEPEST), of_size(LARGEST), r#"{"a":"\ud83d\ude00","b":1e308,"c":-0.0}"#.to_owned()];
    let events: Vec<_> = payloads.iter().map(|payload| event(payload)).collect();
    send(&tenant, &events).await.expect(201);
    let page = tenant.get("/events?types=order.").await;
    for payload in &payloads {
        assert!(page.text().contains(&format!(r#""payload":{payload}"#)));
    }
}

async fn what_cannot_be_kept_beside_a_payload_is_a_bad_body(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let before = tenant.end().await;
    for (text, pointer) in [
        (event("{}").replace("o_1", "\\u0000"), "/events/1/entityId"),
        (event("{}").replace("o_1", "\\ud800"), "/events/1/entityId"),
        (event("{}").replace(r#""entityId""#, r#""entityId":"o_2","entityId""#), "/events/1/entityId"),
    ] {
        let error = send(&tenant, &[event("{}"), text]).await.refused(422, "invalid_body");
        assert_eq!(error["details"]["errors"][0]["pointer"], pointer);
    }
    for text in [event("{}").replace("o_1", "\u{0}"), event("{"), event("01"), event("NaN"), event("'x'"), event("{},")]
    {
        send(&tenant, &[event("{}"), text]).await.refused(400, "invalid_request");
    }
    assert_eq!(tenant.end().await, before);
}

on_both_databases! {
    what_cannot_be_kept_is_refused_at_any_place_of_a_batch,
    what_just_fits_is_kept,
    what_cannot_be_kept_beside_a_payload_is_a_bad_body,
}
