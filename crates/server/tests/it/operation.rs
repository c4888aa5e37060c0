//! Health, metrics, and the orderly end.

use crate::support::tenant::order;
use crate::support::{Answer, World, eventually, json, on_both_databases};

/// The value of a sample in the Prometheus text.
fn sample(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

async fn health_and_readiness_are_told(world: &World) {
    for path in ["/healthz", "/readyz"] {
        assert_eq!(world.api.get(path).await.expect(200), json!({ "status": "ok" }));
    }
    assert_eq!(world.api.get("/api/v1/healthz").await.status, 404);
}

async fn metrics_count_requests_and_deliveries(world: &World) {
    let tenant = world.tenant().await;
    tenant.dead_delivery(world).await;
    tenant.append(order("order.placed", "o_2")).await;
    world.sink.next().await.answer(Answer::status(200));
    tenant.get(&format!("/workspaces/{}", crate::support::no_such_id())).await.refused(404, "not_found");
    tenant.get("/nothing").await;
    let text = eventually("the metrics", async || {
        let reply = world.api.get("/metrics").await;
        assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        let text = reply.text().to_owned();
        // Measured now and then, so not at once.
        let stored = sample(&text, r#"courant_notification_deliveries{status="dead"}"#)?;
        let sent = sample(&text, r#"courant_notification_deliveries_total{outcome="sent"}"#)?;
        let horizon = sample(&text, "courant_journal_horizon")?;
        (stored >= 1.0 && sent >= 1.0 && horizon >= 1.0).then_some(text)
    })
    .await;
    for name in [
        r#"courant_notification_deliveries_total{outcome="dead"}"#,
        r#"courant_http_requests_total{method="GET",route="/api/v1/workspaces/{id}",status="404"}"#,
        r#"courant_http_requests_total{method="GET",route="unmatched",status="404"}"#,
        r#"courant_http_requests_total{method="POST",route="/api/v1/bootstrap",status="201"}"#,
        r#"courant_http_request_seconds_count{method="POST",route="/api/v1/events"}"#,
    ] {
        assert!(sample(&text, name).is_some_and(|value| value >= 1.0), "{name} in\n{text}");
    }
    for name in ["courant_announcer_lag_positions", r#"courant_notification_deliveries{status="processing"}"#] {
        assert!(sample(&text, name).is_some(), "{name} in\n{text}");
    }
    assert!(!text.contains(&tenant.id), "a tenant's id is a label");
}

async fn metrics_can_have_an_address_of_their_own(world: &World) {
    let world = World::start(world.engine, &[("COURANT_METRICS_LISTEN", "127.0.0.1:0")]).await;
    let apart = world.api.at(world.metrics_address.unwrap());
    assert!(apart.get("/metrics").await.text().contains("courant_"));
    for path in ["/healthz", "/api/v1/events", "/api/v1/openapi.json"] {
        assert_eq!(apart.get(path).await.status, 404);
    }
    assert_eq!(world.api.get("/metrics").await.status, 404);
    world.finish().await;
}

async fn an_orderly_end_waits_for_the_sends_in_hand(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    tenant.webhook("hooks", &world.sink, &["order."], json!({})).await;
    tenant.slack("chat", &["order."]).await;
    tenant.append(order("order.made", "o_1")).await;
    let (webhook, message) = (world.sink.next().await, world.slack.next().await);
    tokio::join!(world.stop(), async {
        world.app.stop.cancelled().await;
        webhook.answer(Answer::status(200));
        message.answer(Answer::slack_posted());
    });
    assert_eq!(world.store().await.delivery_backlog().await.unwrap(), []);
}

async fn a_stopping_server_is_not_ready(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    tenant.webhook("hooks", &world.sink, &["order."], json!({})).await;
    tenant.append(order("order.made", "o_1")).await;
    let in_hand = world.sink.next().await;
    let peer = world.second_listener().await;
    assert_eq!(world.api.at(peer).get("/readyz").await.status, 200);
    tokio::join!(world.stop(), async {
        world.app.stop.cancelled().await;
        world.api.at(peer).get("/readyz").await.refused(503, "unavailable");
        assert_eq!(world.api.at(peer).get("/healthz").await.status, 200);
        in_hand.answer(Answer::status(200));
    });
}

on_both_databases! {
    health_and_readiness_are_told,
    metrics_count_requests_and_deliveries,
    metrics_can_have_an_address_of_their_own,
    an_orderly_end_waits_for_the_sends_in_hand,
    a_stopping_server_is_not_ready,
}
