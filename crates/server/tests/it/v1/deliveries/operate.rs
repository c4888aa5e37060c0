//! What operators ask and do: tests, many retries at once, health, and what was tried.

use courant_api::announced::AnnouncedType;

use crate::support::tenant::{BOT_TOKEN, WEBHOOK_SECRET, id, order};
use crate::support::{Answer, Tenant, Value, World, json, no_such_id, on_both_databases};

/// Sends a test in the background; the answer comes when the receiver has answered.
async fn tested(world: &World, tenant: &Tenant, integration: &str, query: &str, answer: Answer) -> (Value, Value) {
    let path = tenant.org(&format!("/notification-integrations/{integration}/test{query}"));
    let (reply, arrival) = futures_util::future::join(tenant.act(&path).into_future(), async {
        let arrival = world.sink.next().await;
        let told = arrival.verified(WEBHOOK_SECRET);
        arrival.answer(answer);
        told
    })
    .await;
    (reply.expect(200), arrival)
}

async fn every_announced_type_can_be_tested_and_nothing_is_stored(world: &World) {
    let tenant = world.tenant().await;
    let hook = id(&tenant.webhook("hooks", &world.sink, &[], json!({ "enabled": false })).await);
    let before = tenant.events("").await;
    for announced in AnnouncedType::ALL {
        let query = format!("?eventType={announced}");
        let (reply, told) = tested(world, &tenant, &hook, &query, Answer::status(204)).await;
        assert_eq!((&reply["outcome"], &reply["error"]), (&json!("sent"), &json!(null)));
        assert_eq!((&reply["eventType"], &told["eventType"]), (&json!(announced), &json!(announced)));
        assert_eq!(reply["answer"], json!({ "status": 204, "body": "" }));
        let family = announced.as_str().split('_').next().unwrap();
        let detail = match family {
            "preview" | "run" | "pull" => "deployment",
            "explore" => "findings",
            other => other,
        };
        assert!(told[detail].is_object() && told.get("event").is_none(), "{told}");
    }
    let (_, told) = tested(world, &tenant, &hook, "?event_type=journal_event", Answer::status(200)).await;
    assert_eq!((&told["eventType"], told["event"].is_object()), (&json!("journal_event"), true));
    assert_eq!(tenant.deliveries().await, Vec::<Value>::new());
    assert_eq!(tenant.get(&tenant.org("/notification-attempts")).await.expect(200)["items"], json!([]));
    assert_eq!(tenant.events("").await, before);

    let path = tenant.org(&format!("/notification-integrations/{hook}/test"));
    tenant.act(&format!("{path}?eventType=deployment_done")).await.refused(400, "invalid_request");
    tenant
        .act(&tenant.org(&format!("/notification-integrations/{}/test", no_such_id())))
        .await
        .refused(404, "not_found");
    let reader = tenant.member(&[("notification_integration.read", "notification_integration:*")]).await;
    reader.act(&path).await.refused(404, "not_found");
}

async fn a_test_tells_what_it_would_be_told_first_and_shows_the_answer_without_secrets(world: &World) {
    let tenant = world.tenant().await;
    let with = json!({ "events": ["task_completed", "approval_requested"], "journalTypes": ["order."] });
    let hook = id(&tenant.webhook("hooks", &world.sink, &[], with).await);
    let (reply, told) = tested(world, &tenant, &hook, "", Answer::status(200)).await;
    assert_eq!((&reply["eventType"], &told["eventType"]), (&json!("approval_requested"), &json!("approval_requested")));
    let journal = id(&tenant.webhook("journal", &world.sink, &["order."], json!({})).await);
    let (_, told) = tested(world, &tenant, &journal, "", Answer::status(200)).await;
    assert_eq!((&told["eventType"], &told["event"]["type"]), (&json!("journal_event"), &json!("order.tested")));

    let (reply, _) = tested(world, &tenant, &hook, "", Answer::status(410)).await;
    assert_eq!((&reply["outcome"], &reply["answer"]["status"]), (&json!("failed"), &json!(410)));
    assert!(reply["error"].as_str().unwrap().starts_with("HTTP 410"), "{reply}");
    let view = tenant.get(&tenant.org(&format!("/notification-integrations/{hook}"))).await.expect(200);
    assert_eq!(view["enabled"], true, "a test disables nothing");
    assert_eq!(view["health"]["consecutiveFailures"], 0, "nor does it count");

    let chat = id(&tenant.slack("chat", &["order."]).await);
    let path = tenant.org(&format!("/notification-integrations/{chat}/test"));
    let (reply, ()) = futures_util::future::join(tenant.act(&path).into_future(), async {
        world.slack.next().await.answer(Answer::slack_refused(&format!("invalid_auth {BOT_TOKEN}")));
    })
    .await;
    let text = reply.text().to_owned();
    assert_eq!(reply.expect(200)["outcome"], "failed");
    assert!(!text.contains(BOT_TOKEN) && text.contains("invalid_auth"), "{text}");
}

/// Dead deliveries of two integrations, of two types.
async fn dead(world: &World, tenant: &Tenant) -> (String, String) {
    tenant.register(&["order.made", "order.paid"]).await;
    let first = id(&tenant.webhook("first", &world.sink, &["order."], json!({})).await);
    let second = id(&tenant.webhook("second", &world.sink, &["order.made"], json!({})).await);
    for n in 0..3 {
        tenant.append(order("order.made", &format!("o_{n}"))).await;
    }
    tenant.append(order("order.paid", "o_9")).await;
    for _ in 0..7 {
        world.sink.next().await.answer(Answer::status(404));
    }
    crate::support::eventually("seven dead deliveries", async || {
        (tenant.deliveries().await.iter().filter(|d| d["status"] == "dead").count() == 7).then_some(())
    })
    .await;
    (first, second)
}

async fn many_dead_deliveries_are_queued_again_by_a_filter(world: &World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let (first, second) = dead(world, &tenant).await;
    other.dead_delivery(world).await;
    let path = tenant.org("/notification-deliveries:retry");
    let retry = async |body: Value| tenant.post(&path, &body).await.expect(200);
    let told = |matched: i64, requeued: i64| json!({ "matched": matched, "requeued": requeued, "remaining": matched - requeued });
    tenant.edit(&first, json!({ "paused": true })).await;
    tenant.edit(&second, json!({ "paused": true })).await;
    for (filter, matched) in [
        (json!({}), 7),
        (json!({ "integrationId": first }), 4),
        (json!({ "integrationId": second }), 3),
        (json!({ "eventTypes": ["journal_event"] }), 7),
        (json!({ "eventTypes": ["task_completed"] }), 0),
        (json!({ "lastError": format!("HTTP 404 from {}", world.sink.address()) }), 7),
        (json!({ "lastError": "HTTP 500" }), 0),
    ] {
        let mut dry = filter.clone();
        dry["dryRun"] = true.into();
        assert_eq!(retry(dry).await, told(matched, 0), "{filter}");
    }
    assert_eq!(retry(json!({ "integrationId": first, "limit": 3 })).await, told(4, 3));
    assert_eq!(retry(json!({ "integrationId": first, "limit": 3 })).await, told(1, 1));
    assert_eq!(retry(json!({ "integrationId": first })).await, told(0, 0));
    let of =
        |status: &str, of: &str| tenant.org(&format!("/notification-deliveries?status={status}&integrationId={of}"));
    let queued = tenant.get(&of("pending", &first)).await.expect(200)["items"].as_array().unwrap().clone();
    assert_eq!(queued.len(), 4);
    assert!(queued.iter().all(|d| d["attemptCount"] == 0 && d["lastError"].is_null()), "{queued:?}");

    tenant.post(&path, &json!({ "integrationId": no_such_id() })).await.refused(404, "not_found");
    // Only what the caller may update counts.
    let member = tenant.member(&[("notification_integration.update", "notification_integration:first")]).await;
    member.post(&path, &json!({ "integrationId": second })).await.refused(404, "not_found");
    assert_eq!(member.post(&path, &json!({})).await.expect(200), told(0, 0));
    let member = tenant.member(&[("notification_integration.update", "notification_integration:sec*")]).await;
    assert_eq!(member.post(&path, &json!({})).await.expect(200), told(3, 3));
    for odd in
        [json!({ "limit": 0 }), json!({ "limit": 10_001 }), json!({ "eventTypes": [""] }), json!({ "all": true })]
    {
        tenant.post(&path, &odd).await.refused(400, "invalid_request");
    }
    assert_eq!(other.delivery("dead").await["status"], "dead", "another org's stay as they are");
    for integration in [&first, &second] {
        tenant.edit(integration, json!({ "paused": false })).await;
    }
    for _ in 0..7 {
        world.sink.next().await.answer(Answer::status(200));
    }
    tenant.all_delivered().await;
}

async fn deliveries_are_filtered_by_integration_and_type(world: &World) {
    let tenant = world.tenant().await;
    let (first, second) = dead(world, &tenant).await;
    let count = async |query: &str| {
        let page = tenant.get(&tenant.org(&format!("/notification-deliveries?{query}"))).await.expect(200);
        page["items"].as_array().unwrap().len()
    };
    assert_eq!(count(&format!("integrationId={first}")).await, 4);
    assert_eq!(count(&format!("integrationId={second}&status=dead&eventType=journal_event")).await, 3);
    assert_eq!(count("eventType=task_completed").await, 0);
    assert_eq!(count("status=pending").await, 0);
    tenant.get(&tenant.org("/notification-deliveries?eventType=order.made")).await.refused(400, "invalid_request");
}

async fn health_and_attempts_say_whether_it_was_sent(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let hook = id(&tenant.webhook("hooks", &world.sink, &["order."], json!({})).await);
    let path = tenant.org(&format!("/notification-integrations/{hook}"));
    let health = async || tenant.get(&path).await.expect(200)["health"].clone();
    let attempts = async |query: &str| {
        let mut page = tenant.get(&tenant.org(&format!("/notification-attempts?{query}"))).await.expect(200);
        page["items"].take()
    };
    let appended = tenant.append(order("order.made", "o_1")).await;
    world.sink.next().await.answer(Answer::status(404));
    let delivery = tenant.delivery("dead").await;
    let failed = health().await;
    assert_eq!((&failed["consecutiveFailures"], &failed["lastSuccessAt"]), (&json!(1), &json!(null)));
    assert_eq!(failed["lastError"], delivery["lastError"]);
    tenant.retry(&id(&delivery)).await.expect(200);
    world.sink.next().await.answer(Answer::status(200));
    tenant.all_delivered().await;
    let works = health().await;
    assert_eq!(works["consecutiveFailures"], 0);
    assert!(works["lastSuccessAt"].as_str() >= works["lastErrorAt"].as_str(), "{works}");

    let tried = attempts(&format!("eventId={}", id(&appended))).await;
    let outcomes: Vec<_> =
        tried.as_array().unwrap().iter().map(|a| (a["outcome"].clone(), a["error"].clone())).collect();
    assert_eq!(outcomes, [(json!("sent"), json!(null)), (json!("dead"), delivery["lastError"].clone())]);
    assert_eq!((&tried[0]["deliveryId"], &tried[0]["attempt"]), (&delivery["id"], &json!(1)));
    assert_eq!(attempts(&format!("integrationId={hook}")).await, tried);
    assert_eq!(attempts(&format!("deliveryId={}", id(&delivery))).await, tried);
    for missing in ["deliveryId", "eventId", "integrationId"] {
        let path = tenant.org(&format!("/notification-attempts?{missing}={}", no_such_id()));
        tenant.get(&path).await.refused(404, "not_found");
    }
    let elsewhere = tenant.member(&[("notification_integration.read", "notification_integration:other")]).await;
    assert_eq!(elsewhere.get(&tenant.org("/notification-attempts")).await.expect(200)["items"], json!([]));
    tenant.delete(&path).await.expect(204);
    assert_eq!(attempts("").await, json!([]));
}

on_both_databases! {
    every_announced_type_can_be_tested_and_nothing_is_stored,
    a_test_tells_what_it_would_be_told_first_and_shows_the_answer_without_secrets,
    many_dead_deliveries_are_queued_again_by_a_filter,
    deliveries_are_filtered_by_integration_and_type,
    health_and_attempts_say_whether_it_was_sent,
}
