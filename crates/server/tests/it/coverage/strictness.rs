//! What every route refuses: what it does not know, by name.

use courant_server::http::v1;

use super::routes::{ROUTES, Route, Who};
use super::{Things, fill, things};
use crate::support::world::BOOTSTRAP_SECRET;
use crate::support::{Api, Tenant, Value, World, on_both_databases};

fn caller(world: &World, tenant: &Tenant, route: &Route) -> Api {
    if matches!(route.who, Who::Bootstrap) { world.api.with(BOOTSTRAP_SECRET) } else { tenant.api.clone() }
}

fn body(route: &Route, things: &Things) -> Option<Value> {
    route.body.map(|body| serde_json::from_str(&fill(body, things)).unwrap())
}

async fn an_unknown_query_parameter_is_refused_by_name(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    let before = tenant.end().await;
    for route in ROUTES {
        let path = fill(route.path, &things);
        let separator = if path.contains('?') { '&' } else { '?' };
        let call = caller(world, &tenant, route).call(route.method(), &format!("{path}{separator}colour=red"));
        let call = match body(route, &things) {
            Some(body) => call.json(&body),
            None => call,
        };
        let error = call.await.refused(400, "invalid_request");
        assert_eq!(error["details"]["parameter"], "colour", "{} {}: {error}", route.method, route.template);
    }
    assert_eq!(tenant.end().await, before, "a refused request changed something");
}

async fn an_unknown_body_field_is_refused_by_name(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    let before = tenant.end().await;
    for route in ROUTES {
        let api = caller(world, &tenant, route);
        let place = format!("{} {}", route.method, route.template);
        let Some(mut body) = body(route, &things) else {
            let call = api.call(route.method(), &fill(route.path, &things)).json(&Value::Null);
            call.await.refused(400, "invalid_request");
            continue;
        };
        body["colour"] = "red".into();
        let error =
            api.call(route.method(), &fill(route.path, &things)).json(&body).await.refused(400, "invalid_request");
        assert!(error["message"].as_str().unwrap().contains("colour"), "{place}: {error}");
    }
    assert_eq!(tenant.end().await, before, "a refused request changed something");
}

async fn what_is_no_json_is_refused_by_what_it_is(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    let before = tenant.end().await;
    let optional: Vec<_> = v1::endpoints()
        .iter()
        .filter(|endpoint| endpoint.is_body_optional())
        .map(|endpoint| (endpoint.method().to_string(), endpoint.path()))
        .collect();
    for route in ROUTES.iter().filter(|route| route.body.is_some()) {
        let (api, path) = (caller(world, &tenant, route), fill(route.path, &things));
        let text = fill(route.body.unwrap(), &things);
        let call = || api.call(route.method(), &path);
        if !optional.contains(&(route.method.to_owned(), route.template)) {
            call().await.refused(400, "invalid_request");
        }
        call().text("application/json", "{").await.refused(400, "invalid_request");
        call().text("application/json", text.replace('{', "{\u{0}")).await.refused(400, "invalid_request");
        call().text("application/json", b"{\"\xff\":1}".to_vec()).await.refused(400, "invalid_request");
        call().text("application/json", "[]").await.refused(400, "invalid_request");
        call().text("application/json; charset=latin1", text.clone()).await.refused(415, "unsupported_media_type");
        call().text("application/x-www-form-urlencoded", text.clone()).await.refused(415, "unsupported_media_type");
        call().bytes(text.clone()).await.refused(415, "unsupported_media_type");
    }
    assert_eq!(tenant.end().await, before, "a refused request changed something");
}

async fn a_body_over_the_limit_is_refused_whatever_it_holds(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    for route in ROUTES.iter().filter(|route| route.body.is_some()) {
        let limit = if route.template == "/api/v1/events" { 16 << 20 } else { 1 << 20 };
        let call = caller(world, &tenant, route).call(route.method(), &fill(route.path, &things));
        let error = call.text("application/json", " ".repeat(limit + 1)).await.refused(413, "payload_too_large");
        assert_eq!(error["details"]["limitBytes"], limit, "{} {}", route.method, route.template);
    }
}

async fn a_method_that_a_path_does_not_have_is_named(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    for route in ROUTES {
        let reply = tenant.call(http::Method::OPTIONS, &fill(route.path, &things)).await;
        reply.refused(405, "method_not_allowed");
        assert!(reply.header("allow").unwrap().contains(route.method), "{} {}", route.method, route.template);
    }
}

async fn what_is_no_path_is_not_found(world: &World) {
    let tenant = world.tenant().await;
    let workspace = tenant.workspace(None).await;
    let missing = tenant.get("/nothing").await;
    assert_eq!(missing.refused(404, "not_found")["message"], "path not found");
    for path in [
        format!("/workspaces/{workspace}/~archive"),
        format!("/workspaces/{workspace}/~move"),
        format!("/workspaces/{workspace}/~archive:archive"),
        format!("/workspaces/{workspace}:unknown"),
        format!("/workspaces/{workspace}/archive"),
        "/workspaces/".to_owned(),
        "/events/".to_owned(),
    ] {
        assert_eq!(tenant.act(&path).await.comparable(), missing.comparable(), "{path}");
    }
    assert_eq!(tenant.get(&format!("/workspaces/{workspace}")).await.expect(200)["archivedAt"], Value::Null);
}

async fn request_ids_are_echoed_and_made_when_they_are_missing(world: &World) {
    let tenant = world.tenant().await;
    let given = tenant.get("/events").header("x-request-id", "req-1").header("x-correlation-id", "order.7").await;
    assert_eq!((given.header("x-request-id"), given.header("x-correlation-id")), (Some("req-1"), Some("order.7")));
    let made = tenant.get("/events").header("x-request-id", "not an id").await;
    let id = made.header("x-request-id").unwrap();
    assert!(id.parse::<uuid::Uuid>().is_ok(), "{id}");
    assert_eq!(made.header("x-correlation-id"), Some(id));
    assert_eq!(made.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(made.header("cache-control"), Some("no-store"));
}

on_both_databases! {
    an_unknown_query_parameter_is_refused_by_name,
    an_unknown_body_field_is_refused_by_name,
    what_is_no_json_is_refused_by_what_it_is,
    a_body_over_the_limit_is_refused_whatever_it_holds,
    a_method_that_a_path_does_not_have_is_named,
    what_is_no_path_is_not_found,
    request_ids_are_echoed_and_made_when_they_are_missing,
}
