//! The scopes of tokens: a ceiling over what their principal holds, on every route.

use courant_api::Scope;

use super::contract::{needs, too_narrow};
use super::routes::{ROUTES, Route};
use super::{Things, fill, things};
use crate::support::{Api, Socket, Tenant, World, json, on_both_databases};

/// Whoever may do everything, below a scope.
fn below(world: &World, tenant: &Tenant, scope: &str) -> Api {
    world.bearer(&tenant.principal, json!({ "scope": scope }))
}

/// How a route refuses or grants its sample: a status, or a close code.
async fn met(api: &Api, route: &Route, things: &Things) -> u16 {
    if route.is_socket() {
        return Socket::open(api, &fill(route.path, things)).await.closed().await.0;
    }
    route.request(api, things).await.status
}

async fn a_scope_that_does_not_reach_a_permission_refuses_whoever_holds_it(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    tenant.bind(world, &tenant.principal, &tenant.principal).await;
    let before = tenant.end().await;
    let none = below(world, &tenant, "openid profile");
    for route in ROUTES.iter().filter(|route| !needs(route).is_empty()) {
        let narrow = too_narrow(route).map(|scope| below(world, &tenant, scope.as_str()));
        for api in narrow.iter().chain([&none]) {
            let status = met(api, route, &things).await;
            let refused: Vec<_> = needs(route).iter().map(|need| need.refused).collect();
            let expected = if route.is_socket() { vec![4403] } else { refused };
            assert!(expected.contains(&status), "{} {}: {status}", route.method, route.template);
        }
    }
    assert_eq!(tenant.end().await, before, "a refused request changed something");
}

async fn a_scope_that_reaches_is_enough_for_whoever_holds_the_permission(world: &World) {
    let tenant = world.tenant().await;
    let to_read = things(world, &tenant, "sample.made").await;
    tenant.bind(world, &tenant.principal, &tenant.principal).await;
    let routes = ROUTES.iter().filter(|route| !needs(route).is_empty() && !route.is_socket());
    for (n, route) in routes.enumerate() {
        let things = match route.method {
            "GET" => to_read.clone(),
            _ => things(world, &tenant, &format!("sample{n}.made")).await,
        };
        let scope = too_narrow(route).map_or(Scope::Read, |narrow| match narrow {
            Scope::Read => Scope::Write,
            Scope::Write | Scope::Admin => Scope::Admin,
        });
        let api = below(world, &tenant, scope.as_str());
        assert_eq!(met(&api, route, &things).await, route.status, "{} {}", route.method, route.template);
    }
}

async fn a_scope_gives_nothing_that_its_principal_does_not_hold(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[("events.read", "tenant")]).await;
    tenant.bind(world, "wide", &member.id).await;
    let wide = world.bearer("wide", json!({ "scope": "control-plane:admin control-plane:write control-plane:read" }));
    wide.get("/events").await.expect(200);
    wide.get("/grants").await.refused(403, "permission_denied");
    let narrow = world.bearer("wide", json!({ "scope": "control-plane:read" }));
    let error = narrow.post("/workspaces", &json!({ "name": "mine" })).await.refused(403, "permission_denied");
    let message = error["message"].as_str().unwrap();
    assert_eq!(message, "the token's scopes do not reach workspaces.manage; control-plane:admin does");
    wide.post("/workspaces", &json!({ "name": "mine" })).await.refused(403, "permission_denied");
}

async fn a_question_about_oneself_is_answered_below_the_scope(world: &World) {
    let tenant = world.tenant().await;
    tenant.bind(world, &tenant.principal, &tenant.principal).await;
    let api = below(world, &tenant, "control-plane:read");
    let checks = ["events.read", "events.append", "grants.manage"]
        .map(|permission| json!({ "permission": permission, "resource": "tenant" }));
    let answer = api.post("/authz:check", &json!({ "checks": checks })).await.expect(200);
    let allowed: Vec<_> = answer["items"].as_array().unwrap().iter().map(|one| one["allowed"].clone()).collect();
    assert_eq!(allowed, [true, false, false], "{answer}");
}

on_both_databases! {
    a_scope_that_does_not_reach_a_permission_refuses_whoever_holds_it,
    a_scope_that_reaches_is_enough_for_whoever_holds_the_permission,
    a_scope_gives_nothing_that_its_principal_does_not_hold,
    a_question_about_oneself_is_answered_below_the_scope,
}
