//! Tokens of an issuer over HTTP and sockets.

use courant_server::clock;
use courant_testkit::{Issuer, Published, SigningKey};

use crate::support::{Engine, Socket, World, json, no_such_id, on_both_databases, tenant};

async fn a_login_acts_as_the_principal_that_it_is_bound_to(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[("workspaces.manage", "tenant"), ("events.read", "tenant")]).await;
    tenant.bind(world, "ada@example.com", &member.id).await;
    let ada = world.bearer("ada@example.com", json!({}));
    let made = ada.post("/workspaces", &json!({ "name": "hers" })).await.expect(201);
    let events = ada.get("/events?types=workspace.created").await.expect(200);
    assert_eq!(events["items"][0]["actorId"], member.id.as_str());
    let mut socket = Socket::events(&ada, "types=workspace.").await;
    assert_eq!(socket.event().await["entityId"], made["id"]);
}

async fn a_token_that_does_not_count_is_refused_like_every_other(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[("events.read", "tenant")]).await;
    tenant.bind(world, "ada", &member.id).await;
    let disabled = tenant.member(&[("events.read", "tenant")]).await;
    tenant.bind(world, "disabled", &disabled.id).await;
    tenant.patch(&format!("/principals/{}", disabled.id), &json!({ "status": "disabled" })).await.expect(200);
    let unbound = tenant.bind(world, "unbound", &member.id).await;
    tenant.delete(&format!("/identity-bindings/{unbound}")).await.expect(204);
    world.bearer("ada", json!({})).get("/events").await.expect(200);
    let expected = world.api.get("/events").await;
    let now = clock::now().micros() / 1_000_000;
    let other_key = SigningKey::generate("first", "ES256");
    for api in [
        world.bearer("nobody", json!({})),
        world.bearer("Ada", json!({})),
        world.bearer("ada ", json!({})),
        world.bearer("disabled", json!({})),
        world.bearer("unbound", json!({})),
        world.bearer("ada", json!({ "exp": now - 3600 })),
        world.bearer("ada", json!({ "aud": "other" })),
        world.bearer("ada", json!({ "iss": "https://login.example.com" })),
        world.api.with(&world.issuer.token(&other_key, now, json!({ "sub": "ada" }))),
        world.api.with(&"a".repeat(9000)),
    ] {
        let reply = api.get("/events").await;
        assert_eq!(reply.comparable(), expected.comparable());
        let ended = Socket::events(&api, "").await.closed().await;
        assert_eq!(ended, (4401, "unauthenticated".to_owned()));
    }
}

async fn a_login_stands_for_one_principal_of_one_tenant(world: &World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    mine.bind(world, "ada", &mine.principal).await;
    for tenant in [&mine, &theirs] {
        let body = json!({ "issuer": world.issuer.name(), "subject": "ada", "principalId": tenant.principal });
        tenant.post("/identity-bindings", &body).await.refused(409, "conflict");
    }
    let org = world.bearer("ada", json!({})).get(&theirs.org("/notification-integrations")).await;
    org.refused(404, "not_found");
}

on_both_databases! {
    a_login_acts_as_the_principal_that_it_is_bound_to,
    a_token_that_does_not_count_is_refused_like_every_other,
    a_login_stands_for_one_principal_of_one_tenant,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_issuers_keys_cannot_be_had_nobody_says_that_a_token_is_bad() {
    let world = World::start(Engine::Sqlite, &[]).await;
    let tenant = world.tenant().await;
    tenant.bind(&world, "ada", &tenant.principal).await;
    world.issuer.meet(Published::Answer(500, String::new(), None));
    let ada = world.bearer("ada", json!({}));
    let error = ada.get("/events").await.refused(503, "unavailable");
    assert!(!error.to_string().contains(&world.issuer.name()), "{error}");
    assert_eq!(Socket::events(&ada, "").await.closed().await, (4503, "unavailable".to_owned()));
    // Keys of the server's own go on.
    tenant.get("/events").await.expect(200);
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_issuer_for_one_tenant_speaks_for_no_other() {
    let (key, before) = (SigningKey::generate("first", "EdDSA"), World::start(Engine::Sqlite, &[]).await);
    let issuer = Issuer::start(&[&key]).await;
    let (mine, theirs) = (before.tenant().await, before.tenant().await);
    let setting = format!("{} ; audience=platform ; tenant={}", issuer.name(), mine.id);
    let world = before.restart(&[("COURANT_OIDC_ISSUERS", &setting)]).await;
    let (mine, theirs) = (mine.api.at(address(&world)), theirs.api.at(address(&world)));
    let whom = |api: &crate::support::Api| {
        let api = api.clone();
        async move { tenant::id(&api.get("/principals").await.expect(200)["items"][0]) }
    };
    let body = |principal: String| json!({ "issuer": issuer.name(), "subject": "ada", "principalId": principal });
    theirs.post("/identity-bindings", &body(whom(&theirs).await)).await.refused(404, "not_found");
    mine.post("/identity-bindings", &body(whom(&mine).await)).await.expect(201);
    let now = clock::now().micros() / 1_000_000;
    let token = issuer.token(&key, now, json!({ "sub": "ada", "aud": ["platform", no_such_id()] }));
    world.api.with(&token).get("/events").await.expect(200);
    let usual = issuer.token(&key, now, json!({ "sub": "ada" }));
    world.api.with(&usual).get("/events").await.refused(401, "unauthenticated");
    world.finish().await;
}

fn address(world: &World) -> std::net::SocketAddr {
    world.api.host().parse().unwrap()
}
