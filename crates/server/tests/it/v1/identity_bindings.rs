//! `/identity-bindings`

use crate::support::{World, json, no_such_id, on_both_databases, tenant};

async fn a_binding_is_made_read_listed_and_ended(world: &World) {
    let tenant = world.tenant().await;
    let body = json!({ "issuer": world.issuer.name(), "subject": "zoe", "principalId": tenant.principal });
    let made = tenant.post("/identity-bindings", &body).await.expect(201);
    for (name, value) in body.as_object().unwrap() {
        assert_eq!(&made[name], value);
    }
    let path = format!("/identity-bindings/{}", tenant::id(&made));
    assert_eq!(tenant.get(&path).await.expect(200), made);
    let second = tenant.bind(world, "grace", &tenant.principal).await;
    let page = tenant.get("/identity-bindings?limit=1").await.expect(200);
    assert_eq!((page["items"][0]["id"].as_str(), &page["hasMore"]), (Some(second.as_str()), &json!(true)));
    let rest = tenant.get(&format!("/identity-bindings?cursor={}", page["nextCursor"].as_str().unwrap())).await;
    assert_eq!(rest.expect(200)["items"], json!([made]));
    let zoe = world.bearer("zoe", json!({}));
    zoe.get("/events").await.expect(200);
    tenant.delete(&path).await.expect(204);
    zoe.get("/events").await.refused(401, "unauthenticated");
    assert_eq!(tenant.get(&path).await.refused(404, "not_found")["message"], "identity binding not found");
    tenant.delete(&path).await.refused(404, "not_found");
    // What was ended may be bound again, to somebody else.
    let member = tenant.member(&[]).await;
    tenant.bind(world, "zoe", &member.id).await;
    zoe.get("/events").await.refused(403, "permission_denied");
    let events = tenant.events("types=identity_binding.").await;
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let (created, revoked) = ("identity_binding.created", "identity_binding.revoked");
    assert_eq!(types, [created, created, revoked, created]);
    let payload = json!({ "principalId": tenant.principal, "issuer": world.issuer.name() });
    assert_eq!(events[2]["payload"], payload);
    assert!(events.iter().all(|event| !event.to_string().contains("zoe")), "a login's name is personal");
}

async fn what_is_no_binding_is_refused_by_field(world: &World) {
    let tenant = world.tenant().await;
    let good = json!({ "issuer": world.issuer.name(), "subject": "ada", "principalId": tenant.principal });
    for (field, bad) in [
        ("issuer", json!("")),
        ("issuer", json!("x".repeat(501))),
        ("subject", json!("")),
        ("subject", json!("x".repeat(256))),
        ("subject", json!("a\nb")),
        ("subject", json!(7)),
        ("principalId", json!("ada")),
        ("more", json!(true)),
    ] {
        let mut body = good.clone();
        body[field] = bad;
        let error = tenant.post("/identity-bindings", &body).await.refused(400, "invalid_request");
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
    for (field, absent) in [
        ("issuer", "https://login.example.com".to_owned()),
        ("issuer", format!("{}/", world.issuer.name())),
        ("principalId", no_such_id()),
    ] {
        let mut body = good.clone();
        body[field] = absent.into();
        tenant.post("/identity-bindings", &body).await.refused(404, "not_found");
    }
}

async fn nobody_becomes_somebody_who_may_do_more(world: &World) {
    let tenant = world.tenant().await;
    let keeper = tenant.member(&[("identity_bindings.manage", "tenant"), ("events.read", "tenant")]).await;
    let to = |principal: &str| json!({ "issuer": world.issuer.name(), "subject": "me", "principalId": principal });
    let error = keeper.post("/identity-bindings", &to(&tenant.principal)).await.refused(403, "permission_denied");
    assert!(error["message"].as_str().unwrap().ends_with("is required on tenant"), "{error}");
    let reader = tenant.member(&[("events.read", "tenant")]).await;
    keeper.post("/identity-bindings", &to(&reader.id)).await.expect(201);
}

async fn the_same_request_twice_binds_once(world: &World) {
    let tenant = world.tenant().await;
    let body = json!({ "issuer": world.issuer.name(), "subject": "ada", "principalId": tenant.principal });
    let send = async || tenant.post("/identity-bindings", &body).header("idempotency-key", "b-1").await.expect(201);
    assert_eq!(send().await, send().await);
}

on_both_databases! {
    a_binding_is_made_read_listed_and_ended,
    what_is_no_binding_is_refused_by_field,
    nobody_becomes_somebody_who_may_do_more,
    the_same_request_twice_binds_once,
}
