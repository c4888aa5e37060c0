//! Creating integrations, and what is refused.

use crate::support::tenant::{BOT_TOKEN, WEBHOOK_SECRET, id};
use crate::support::{Value, World, json, no_such_id, on_both_databases};

fn slack() -> Value {
    json!({
        "name": "ops", "provider": "slack", "journalTypes": ["order."],
        "providerConfig": { "defaultChannel": "#ops" }, "authConfig": { "botToken": BOT_TOKEN },
    })
}

fn webhook() -> Value {
    json!({
        "name": "ops", "provider": "webhook", "journalTypes": ["order."],
        "providerConfig": { "url": "https://hooks.example.com/in" }, "authConfig": { "secret": WEBHOOK_SECRET },
    })
}

/// `body` with the value at this JSON pointer replaced; the last step may be new.
fn with(body: &Value, pointer: &str, value: Value) -> Value {
    let mut body = body.clone();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    body.pointer_mut(parent).unwrap()[field] = value;
    body
}

async fn an_integration_is_shown_as_it_was_created_without_its_secret(world: &World) {
    let tenant = world.tenant().await;
    let path = tenant.org("/notification-integrations");
    for (name, body) in [("chat", slack()), ("hooks", webhook())] {
        let created = tenant.post(&path, &with(&body, "/name", json!(name))).await;
        let view = created.expect(201);
        assert_eq!(created.etag(), "\"1\"");
        let expected = json!({
            "id": view["id"], "name": name, "provider": body["provider"], "enabled": true, "paused": false,
            "disabledReason": null, "events": [], "journalTypes": ["order."], "workspaceId": null,
            "stackLabelSelector": {}, "changesOnly": false, "findingsDigestSchedule": null,
            "providerConfig": body["providerConfig"], "hasAuthConfig": true, "version": 1,
            "createdAt": view["createdAt"], "updatedAt": view["createdAt"], "generatedSecret": null,
            "health": { "lastSuccessAt": null, "lastErrorAt": null, "lastError": null, "consecutiveFailures": 0 },
        });
        assert_eq!(view, expected);
        let read = tenant.get(&format!("{path}/{}", id(&view))).await;
        assert_eq!((read.expect(200), read.etag()), (view, "\"1\""));
    }
    let listed = tenant.get(&path).await.expect(200);
    let names: Vec<_> = listed["items"].as_array().unwrap().iter().map(|i| &i["name"]).collect();
    assert_eq!(names, ["hooks", "chat"]);
}

async fn each_wrong_field_is_pointed_at(world: &World) {
    let tenant = world.tenant().await;
    let path = tenant.org("/notification-integrations");
    let before = tenant.end().await;
    let long = "x".repeat(101);
    let many = json!((0..21).map(|n| format!("t{n}.")).collect::<Vec<_>>());
    for (good, pointer, bad) in [
        (slack(), "/name", json!("")),
        (slack(), "/name", json!(long)),
        (slack(), "/name", json!("a/b")),
        (slack(), "/name", json!(" ops")),
        (slack(), "/name", json!("ops*")),
        (slack(), "/provider", json!("pigeon")),
        (slack(), "/journalTypes", json!(["Order."])),
        (slack(), "/journalTypes", json!(["a.,b."])),
        (slack(), "/journalTypes", json!([""])),
        (slack(), "/journalTypes", many),
        (slack(), "/enabled", json!("yes")),
        (slack(), "/workspaceId", json!("7")),
        (slack(), "/providerConfig/defaultChannel", json!("")),
        (slack(), "/providerConfig/defaultChannel", json!("#a b")),
        (slack(), "/providerConfig/colour", json!("red")),
        (slack(), "/authConfig/botToken", json!("not-a-token")),
        (slack(), "/authConfig/other", json!("x")),
        (webhook(), "/providerConfig/url", json!("ftp://example.com/")),
        (webhook(), "/providerConfig/url", json!("https://u:p@example.com/")),
        (webhook(), "/providerConfig/url", json!("/in")),
        (webhook(), "/providerConfig/format", json!("xml")),
        (webhook(), "/providerConfig/headers", json!({ "Webhook-Id": "1" })),
        (webhook(), "/providerConfig/headers", json!({ "Authorization": "Bearer x" })),
        (webhook(), "/providerConfig/headers", json!({ "X-A": "a\r\nX-B: b" })),
        (webhook(), "/authConfig/secret", json!("whsec_short")),
        (webhook(), "/authConfig/secret", json!("c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0")),
    ] {
        let error = tenant.post(&path, &with(&good, pointer, bad.clone())).await.refused(400, "invalid_request");
        let told = error["details"]["pointer"].as_str().unwrap();
        assert!(told.starts_with(pointer), "{bad} at {pointer}: {error}");
    }
    for (good, pointer) in [
        (slack(), "/providerConfig/defaultChannel"),
        (slack(), "/authConfig/botToken"),
        (webhook(), "/providerConfig/url"),
    ] {
        let mut body = good;
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(field);
        let error = tenant.post(&path, &body).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["pointer"], pointer);
    }
    assert_eq!(tenant.end().await, before);
}

async fn no_refusal_repeats_the_secret_that_it_refuses(world: &World) {
    let tenant = world.tenant().await;
    let path = tenant.org("/notification-integrations");
    for (body, pointer) in [(slack(), "/authConfig/botToken"), (webhook(), "/authConfig/secret")] {
        for planted in ["planted-secret", "xoxb planted-secret", "whsec_planted-secret"] {
            tenant.post(&path, &with(&body, pointer, json!(planted))).await.refused(400, "invalid_request");
        }
        tenant.post(&path, &with(&body, pointer, json!(["planted-secret"]))).await.refused(400, "invalid_request");
        tenant.post(&path, &with(&body, "/authConfig", json!("planted-secret"))).await.refused(400, "invalid_request");
    }
    let told = world.heard().into_iter().find(|answer| answer.contains("planted-secret"));
    assert_eq!(told, None);
}

async fn a_name_is_taken_once_and_by_each_tenant(world: &World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    tenant.post(&tenant.org("/notification-integrations"), &slack()).await.expect(201);
    let again = tenant.post(&tenant.org("/notification-integrations"), &webhook()).await;
    again.refused(409, "conflict");
    other.post(&other.org("/notification-integrations"), &slack()).await.expect(201);
}

async fn a_workspace_must_be_there(world: &World) {
    let tenant = world.tenant().await;
    let path = tenant.org("/notification-integrations");
    let reply = tenant.post(&path, &with(&slack(), "/workspaceId", json!(no_such_id()))).await;
    assert_eq!(reply.refused(404, "not_found")["message"], "workspace not found");
    let workspace = tenant.workspace(None).await;
    let view = tenant.post(&path, &with(&slack(), "/workspaceId", json!(workspace))).await.expect(201);
    assert_eq!(view["workspaceId"], json!(workspace));
}

async fn an_integration_tells_no_more_than_its_maker_may_read(world: &World) {
    let tenant = world.tenant().await;
    let (mine, other) = (tenant.workspace(None).await, tenant.workspace(None).await);
    let maker = tenant
        .member(&[("notification_integration.create", "tenant"), ("events.read", &format!("workspace:{mine}"))])
        .await;
    let path = tenant.org("/notification-integrations");
    maker.post(&path, &slack()).await.refused(403, "permission_denied");
    maker.post(&path, &with(&slack(), "/workspaceId", json!(other))).await.refused(403, "permission_denied");
    maker.post(&path, &with(&slack(), "/workspaceId", json!(mine))).await.expect(201);
    let silent = with(&with(&slack(), "/journalTypes", json!([])), "/name", json!("silent"));
    maker.post(&path, &silent).await.expect(201);
}

on_both_databases! {
    an_integration_is_shown_as_it_was_created_without_its_secret,
    each_wrong_field_is_pointed_at,
    no_refusal_repeats_the_secret_that_it_refuses,
    a_name_is_taken_once_and_by_each_tenant,
    a_workspace_must_be_there,
    an_integration_tells_no_more_than_its_maker_may_read,
}
