//! `/api-keys`

use courant_server::clock;

use crate::support::{World, eventually, json, no_such_id, on_both_databases};

async fn a_key_is_shown_once_and_never_again(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[]).await;
    let heard = world.heard().iter().filter(|answer| answer.contains(&member.key)).count();
    assert_eq!(heard, 1);
    let listed = tenant.get("/api-keys").await.expect(200);
    let row = listed["items"].as_array().unwrap().iter().find(|k| k["id"] == json!(member.key_id)).unwrap().clone();
    assert!(member.key.starts_with(row["prefix"].as_str().unwrap()), "{row}");
    assert!(row["apiKey"].is_null() && row["revokedAt"].is_null());
    tenant.get("/events?limit=1000").await.expect(200);
    let heard = world.heard().iter().filter(|answer| answer.contains(&member.key)).count();
    assert_eq!(heard, 1, "the key was shown again");
}

async fn a_revoked_key_stops_and_stays_revoked(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[("events.read", "tenant")]).await;
    member.get("/events").await.expect(200);
    let path = format!("/api-keys/{}:revoke", member.key_id);
    let revoked = tenant.act(&path).await.expect(200);
    assert!(revoked["revokedAt"].is_string() && revoked["apiKey"].is_null());
    eventually("the key to stop", async || (member.get("/events").await.status == 401).then_some(())).await;
    let before = tenant.end().await;
    assert_eq!(tenant.act(&path).await.expect(200), revoked);
    assert_eq!(tenant.end().await, before);
    assert_eq!(
        tenant.act(&format!("/api-keys/{}:revoke", no_such_id())).await.refused(404, "not_found")["message"],
        "API key not found"
    );
}

async fn a_key_ends_at_its_time(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[("events.read", "tenant")]).await;
    let soon = clock::now().plus_micros(1_500_000);
    let body = json!({ "principalId": member.id, "expiresAt": soon });
    let made = tenant.post("/api-keys", &body).await.expect(201);
    let short = tenant.api.with(made["apiKey"].as_str().unwrap());
    eventually("the key to end", async || (short.get("/events").await.status == 401).then_some(())).await;
    assert!(clock::now() >= soon, "the key ended early");
    member.get("/events").await.expect(200);
    let past = json!({ "principalId": member.id, "expiresAt": "2020-01-01T00:00:00Z" });
    let error = tenant.post("/api-keys", &past).await.refused(400, "invalid_request");
    assert_eq!(error["details"]["pointer"], "/expiresAt");
}

async fn a_key_belongs_to_a_principal_that_is_there(world: &World) {
    let tenant = world.tenant().await;
    let missing = tenant.post("/api-keys", &json!({ "principalId": no_such_id() })).await;
    assert_eq!(missing.refused(404, "not_found")["message"], "principal not found");
    tenant.post("/api-keys", &json!({ "principalId": "7" })).await.refused(400, "invalid_request");
}

on_both_databases! {
    a_key_is_shown_once_and_never_again,
    a_revoked_key_stops_and_stays_revoked,
    a_key_ends_at_its_time,
    a_key_belongs_to_a_principal_that_is_there,
}
