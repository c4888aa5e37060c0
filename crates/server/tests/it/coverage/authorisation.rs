//! Who gets in: every route refuses the unknown before it reads anything, and all but the right holders after.

use std::collections::BTreeMap;

use courant_api::Permission;

use super::routes::{Need, ROUTES, Route, Who};
use super::{fill, things};
use crate::support::{Api, Tenant, World, on_both_databases};

fn protected() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| !matches!(route.who, Who::Everybody))
}

fn held() -> impl Iterator<Item = (&'static Route, &'static [Need])> {
    // What sockets refuse is in sockets.rs.
    ROUTES.iter().filter(|route| !route.is_socket()).filter_map(|route| match route.who {
        Who::Holders(needs) => Some((route, needs)),
        Who::OneOf(_) | Who::Caller | Who::Everybody | Who::Bootstrap => None,
    })
}

async fn a_request_without_a_good_credential_is_refused_before_it_is_read(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    let before = tenant.end().await;
    let expected = world.api.get("/events").await.comparable();
    for route in protected() {
        let place = format!("{} {}", route.method, route.template);
        let path = fill(route.path, &things);
        let separator = if path.contains('?') { '&' } else { '?' };
        for api in [
            world.api.anonymous(),
            world.api.with("cak_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
            world.api.with("not a key"),
            world.api.with("eyJhbGciOiJub25lIn0.e30."),
        ] {
            let garbage = api
                .call(route.method(), &format!("{path}{separator}no%zz&limit=x"))
                .header("idempotency-key", "two words")
                .header("if-match", "nonsense")
                .text("image/png", "\u{0}{\"a\":");
            for reply in [route.request(&api, &things).await, garbage.await] {
                reply.refused(401, "unauthenticated");
                assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{place}");
                assert_eq!(reply.comparable(), expected, "{place}");
            }
        }
    }
    assert_eq!(tenant.end().await, before, "a refused request changed something");
}

async fn a_principal_without_grants_may_do_nothing(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    let nobody = tenant.member(&[]).await;
    let before = tenant.end().await;
    for route in protected().filter(|route| !route.is_socket()) {
        let reply = route.request(&nobody, &things).await;
        let expected = match route.who {
            Who::Holders(needs) | Who::OneOf(needs) => needs[0].refused,
            Who::Caller => 200,
            Who::Everybody | Who::Bootstrap => 401,
        };
        assert_eq!(reply.status, expected, "{} {}: {}", route.method, route.template, reply.text());
    }
    assert_eq!(tenant.end().await, before, "a refused request changed something");
}

/// Whoever holds everything but `missing`, on the tenant and so on everything in it.
async fn all_but(tenant: &Tenant, missing: &[&str]) -> Api {
    let names = Permission::LIST.iter().map(|p| p.as_str());
    let grants: Vec<_> =
        names.filter(|name| *name != "*" && !missing.contains(name)).map(|name| (name, "tenant")).collect();
    tenant.member(&grants).await.api
}

async fn no_other_permission_stands_in_for_the_one_that_is_needed(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    let mut without: BTreeMap<&str, Api> = BTreeMap::new();
    for permission in held().flat_map(|(_, needs)| needs).map(|need| need.permission) {
        if !without.contains_key(permission) {
            without.insert(permission, all_but(&tenant, &[permission]).await);
        }
    }
    let before = tenant.end().await;
    for (route, needs) in held() {
        for need in needs {
            let reply = route.request(&without[need.permission], &things).await;
            let place = format!("{} {} without {}", route.method, route.template, need.permission);
            assert_eq!(reply.status, need.refused, "{place}: {}", reply.text());
            if need.refused == 404 {
                let mut absent = things.clone();
                for thing in ["integration", "delivery"] {
                    absent.insert(thing, crate::support::no_such_id());
                }
                let missing = route.request(&without[need.permission], &absent).await;
                assert_eq!(reply.comparable(), missing.comparable(), "{place} is told from a missing one");
            }
        }
    }
    assert_eq!(tenant.end().await, before, "a refused request changed something");
}

async fn the_permissions_that_a_route_names_are_enough(world: &World) {
    let tenant = world.tenant().await;
    let to_read = things(world, &tenant, "sample.made").await;
    for (n, (route, needs)) in held().enumerate() {
        // What changes something gets things of its own.
        let things = match route.method {
            "GET" => to_read.clone(),
            _ => things(world, &tenant, &format!("sample{n}.made")).await,
        };
        let places: Vec<_> = needs.iter().map(|need| fill(need.on, &things)).collect();
        let grants: Vec<_> = needs.iter().zip(&places).map(|(need, on)| (need.permission, on.as_str())).collect();
        let member = tenant.member(&grants).await;
        if route.decides() {
            tenant.assign(&things["decider"], &member.id, &things["workspace"]).await;
        }
        let reply = route.request(&member, &things).await;
        assert_eq!(reply.status, route.status, "{} {}: {}", route.method, route.template, reply.text());
    }
}

fn one_of() -> impl Iterator<Item = (&'static Route, &'static [Need])> {
    ROUTES.iter().filter_map(|route| if let Who::OneOf(needs) = route.who { Some((route, needs)) } else { None })
}

async fn where_one_of_several_permissions_is_enough_each_of_them_is_and_no_other(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    for (route, needs) in one_of() {
        for need in needs {
            let member = tenant.member(&[(need.permission, &fill(need.on, &things))]).await;
            assert_eq!(route.request(&member, &things).await.status, route.status, "{}", route.template);
        }
        let missing: Vec<_> = needs.iter().map(|need| need.permission).collect();
        let reply = route.request(&all_but(&tenant, &missing).await, &things).await;
        assert_eq!(reply.status, needs[0].refused, "{}: {}", route.template, reply.text());
    }
}

async fn public_routes_ask_nobody_who_they_are(world: &World) {
    for route in ROUTES.iter().filter(|route| matches!(route.who, Who::Everybody)) {
        for api in [world.api.anonymous(), world.api.with("not a key")] {
            assert_eq!(api.get(route.path).await.status, 200, "{}", route.path);
        }
    }
}

async fn a_second_credential_header_is_no_credential(world: &World) {
    let tenant = world.tenant().await;
    let twice = tenant.get("/events").header("authorization", &format!("Bearer {}", tenant.key));
    twice.await.refused(401, "unauthenticated");
    let other_scheme = world.api.get("/events").header("authorization", &format!("Basic {}", tenant.key));
    other_scheme.await.refused(401, "unauthenticated");
}

on_both_databases! {
    a_request_without_a_good_credential_is_refused_before_it_is_read,
    a_principal_without_grants_may_do_nothing,
    no_other_permission_stands_in_for_the_one_that_is_needed,
    the_permissions_that_a_route_names_are_enough,
    where_one_of_several_permissions_is_enough_each_of_them_is_and_no_other,
    public_routes_ask_nobody_who_they_are,
    a_second_credential_header_is_no_credential,
}
