//! `Idempotency-Key`: a repeated request gets the first answer, and nothing happens twice.

use courant_server::http::v1;
use http::Method;

use crate::support::{Value, World, json, on_both_databases};

async fn a_repeat_gets_the_first_answer_and_changes_nothing(world: &World) {
    let tenant = world.tenant().await;
    let make = || tenant.post("/workspaces", &json!({ "name": "one" })).header("idempotency-key", "k-1");
    let first = make().await;
    first.expect(201);
    let before = tenant.end().await;
    let again = make().await;
    assert_eq!((again.expect(201), again.header("idempotency-replayed")), (first.expect(201), Some("true")));
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(tenant.end().await, before);
    // Another key is another request.
    let other = tenant.post("/workspaces", &json!({ "name": "one" })).header("idempotency-key", "k-2").await;
    assert_ne!(other.expect(201)["id"], first.expect(201)["id"]);
}

async fn a_key_belongs_to_one_request_of_one_principal(world: &World) {
    let (tenant, stranger) = (world.tenant().await, world.tenant().await);
    let member = tenant.member(&[("workspaces.manage", "tenant"), ("principals.manage", "tenant")]).await;
    let body = json!({ "name": "one" });
    tenant.post("/workspaces", &body).header("idempotency-key", "k-1").await.expect(201);
    let before = tenant.end().await;
    for conflict in [
        tenant.post("/workspaces", &json!({ "name": "two" })),
        tenant.post("/principals", &json!({ "kind": "agent", "displayName": "x" })),
        member.post("/workspaces", &body),
    ] {
        conflict.header("idempotency-key", "k-1").await.refused(409, "idempotency_conflict");
    }
    assert_eq!(tenant.end().await, before);
    let free = stranger.post("/workspaces", &body).header("idempotency-key", "k-1").await;
    assert_eq!((free.status, free.header("idempotency-replayed")), (201, None));
}

async fn a_refused_request_leaves_its_key_free(world: &World) {
    let tenant = world.tenant().await;
    let root = tenant.workspace(None).await;
    let child = tenant.workspace(Some(&root)).await;
    let archive = || tenant.act(&format!("/workspaces/{root}:archive")).header("idempotency-key", "k-1");
    archive().await.refused(409, "conflict");
    tenant.act(&format!("/workspaces/{child}:archive")).await.expect(200);
    let done = archive().await;
    assert!(done.expect(200)["archivedAt"].is_string());
    assert_eq!(archive().await.header("idempotency-replayed"), Some("true"));
}

async fn a_secret_that_is_shown_once_is_not_in_a_replay(world: &World) {
    let tenant = world.tenant().await;
    let webhook = json!({
        "name": "hooks", "provider": "webhook", "providerConfig": { "url": "https://hooks.example.com/" },
    });
    for (path, body, secret) in [
        ("/api-keys".to_owned(), json!({ "principalId": tenant.principal }), "apiKey"),
        (tenant.org("/notification-integrations"), webhook, "generatedSecret"),
    ] {
        let make = || tenant.post(&path, &body).header("idempotency-key", secret);
        let mut first = make().await.expect(201);
        assert!(first[secret].is_string(), "{first}");
        let again = make().await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        first[secret] = Value::Null;
        assert_eq!(again.expect(201), first);
    }
}

async fn every_post_honours_a_key_but_the_one_whose_events_have_ids(world: &World) {
    let document = world.api.get("/openapi.json").await.expect(200);
    let mut honouring = 0;
    for endpoint in v1::endpoints().iter().filter(|e| e.method() == Method::POST) {
        let operation = &document["paths"][endpoint.path()]["post"];
        let told = operation["parameters"].to_string().contains("Idempotency-Key");
        assert_eq!(told, endpoint.path() != "/api/v1/events", "{}", endpoint.path());
        honouring += usize::from(told);
    }
    assert!(honouring >= 8, "{honouring}");
    let tenant = world.tenant().await;
    for bad in ["", "two words", &"k".repeat(201)] {
        let reply = tenant.post("/workspaces", &json!({ "name": "x" })).header("idempotency-key", bad).await;
        reply.refused(400, "invalid_request");
    }
}

on_both_databases! {
    a_repeat_gets_the_first_answer_and_changes_nothing,
    a_key_belongs_to_one_request_of_one_principal,
    a_refused_request_leaves_its_key_free,
    a_secret_that_is_shown_once_is_not_in_a_replay,
    every_post_honours_a_key_but_the_one_whose_events_have_ids,
}
