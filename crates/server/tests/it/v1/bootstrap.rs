//! `POST /bootstrap`: the first tenant, by who knows the server's secret.

use crate::support::world::BOOTSTRAP_SECRET;
use crate::support::{Tenant, Value, World, json, on_both_databases};

async fn the_secret_makes_a_tenant_whose_key_may_do_everything(world: &World) {
    let made = world.api.with(BOOTSTRAP_SECRET).post("/bootstrap", &json!({ "name": "acme" })).await.expect(201);
    let tenant = Tenant::new(&world.api, &made);
    assert!(tenant.key.starts_with("cak_"), "{made}");
    let types: Vec<_> = tenant.events("").await.iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(types, ["tenant.bootstrapped", "principal.created", "grant.created", "api_key.created"]);
    let grants = tenant.get("/grants").await.expect(200);
    assert_eq!((&grants["items"][0]["permission"], &grants["items"][0]["resource"]), (&json!("*"), &json!("tenant")));
    let principals = tenant.get("/principals").await.expect(200);
    assert_eq!(principals["items"][0]["id"], json!(tenant.principal));
}

async fn another_secret_or_a_key_makes_none(world: &World) {
    let tenant = world.tenant().await;
    let before = world.app.store.tenant_count().await.unwrap();
    let body = json!({ "name": "acme" });
    for wrong in ["", "wrong", BOOTSTRAP_SECRET.trim_start_matches('t'), &format!("{BOOTSTRAP_SECRET}x"), &tenant.key] {
        world.api.with(wrong).post("/bootstrap", &body).await.refused(401, "unauthenticated");
    }
    assert_eq!(world.app.store.tenant_count().await.unwrap(), before);
    // Nor does the secret open anything else.
    tenant.api.with(BOOTSTRAP_SECRET).get("/principals").await.refused(401, "unauthenticated");
}

async fn without_a_secret_nobody_makes_a_tenant(world: &World) {
    let closed = World::start(world.engine, &[("COURANT_BOOTSTRAP_SECRET", "")]).await;
    let body = json!({ "name": "acme" });
    for credential in ["", "anything", BOOTSTRAP_SECRET] {
        closed.api.with(credential).post("/bootstrap", &body).await.refused(401, "unauthenticated");
    }
    closed.api.anonymous().post("/bootstrap", &body).await.refused(401, "unauthenticated");
    assert_eq!(closed.app.store.tenant_count().await.unwrap(), 0);
    closed.finish().await;
}

async fn a_replay_makes_no_second_tenant_and_hides_the_key(world: &World) {
    let api = world.api.with(BOOTSTRAP_SECRET);
    let body = json!({ "name": "acme" });
    let call = || api.post("/bootstrap", &body).header("idempotency-key", "first-tenant");
    let first = call().await;
    let mut made = first.expect(201);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = call().await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    made["apiKey"] = Value::Null;
    assert_eq!(again.expect(201), made);
    assert_eq!(world.app.store.tenant_count().await.unwrap(), 1);
    let other = api.post("/bootstrap", &json!({ "name": "umbrella" })).header("idempotency-key", "first-tenant");
    other.await.refused(409, "idempotency_conflict");
}

async fn a_tenants_name_has_bounds(world: &World) {
    let api = world.api.with(BOOTSTRAP_SECRET);
    for bad in [json!(""), json!(" acme"), json!("a\tb"), json!("x".repeat(201)), json!(7), Value::Null] {
        let error = api.post("/bootstrap", &json!({ "name": bad })).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["pointer"], "/name", "{bad}");
    }
    api.post("/bootstrap", &json!({ "name": "é".repeat(200) })).await.expect(201);
}

on_both_databases! {
    the_secret_makes_a_tenant_whose_key_may_do_everything,
    another_secret_or_a_key_makes_none,
    without_a_secret_nobody_makes_a_tenant,
    a_replay_makes_no_second_tenant_and_hides_the_key,
    a_tenants_name_has_bounds,
}
