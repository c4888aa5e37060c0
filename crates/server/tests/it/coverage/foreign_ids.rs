//! Another tenant's ids are answered exactly as ids that do not exist, wherever in a request they stand.

use super::routes::{ROUTES, Who};
use super::{Things, things};
use crate::support::{Reply, World, no_such_id, on_both_databases};

/// What a caller could know of another tenant.
const IDS: &[&str] = &[
    "org",
    "principal",
    "key",
    "grant",
    "role",
    "assignment",
    "workspace",
    "parent",
    "integration",
    "delivery",
    "event",
    "type",
];

fn with(own: &Things, thing: &'static str, value: &str) -> Things {
    let mut changed = own.clone();
    changed.insert(thing, value.to_owned());
    changed
}

/// A refusal may repeat the type that the request named.
fn without_name(reply: &Reply, thing: &str, name: &str) -> (u16, Vec<(String, String)>, String) {
    let (status, mut headers, _) = reply.comparable();
    if thing != "type" {
        return (status, headers, reply.text().to_owned());
    }
    headers.retain(|(name, _)| name != "content-length");
    (status, headers, reply.text().replace(name, "<the type>"))
}

async fn another_tenants_id_looks_like_one_that_does_not_exist(world: &World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    let own = things(world, &mine, "mine.made").await;
    let foreign = things(world, &theirs, "theirs.made").await;
    let (before, theirs_before) = (mine.end().await, theirs.end().await);
    let mut asked = 0;
    for route in
        ROUTES.iter().filter(|route| matches!(route.who, Who::Holders(_) | Who::OneOf(_)) && !route.is_socket())
    {
        for &thing in IDS.iter().filter(|thing| route.names(thing)) {
            let missing = if thing == "type" { "absent.made".to_owned() } else { no_such_id() };
            let place = format!("{} {} with a foreign {thing}", route.method, route.template);
            let at_foreign = route.request(&mine, &with(&own, thing, &foreign[thing])).await;
            let at_missing = route.request(&mine, &with(&own, thing, &missing)).await;
            assert!((400..500).contains(&at_foreign.status), "{place}: {}", at_foreign.text());
            if thing != "type" {
                assert_eq!(at_foreign.status, 404, "{place}: {}", at_foreign.text());
            }
            let (foreign, missing) =
                (without_name(&at_foreign, thing, &foreign[thing]), without_name(&at_missing, thing, &missing));
            assert_eq!(foreign, missing, "{place}");
            asked += 1;
        }
    }
    assert!(asked > 25, "only {asked} ids were asked for");
    assert_eq!(mine.end().await, before, "a refused request changed something");
    assert_eq!(theirs.end().await, theirs_before, "the other tenant was touched");
}

async fn an_id_that_cannot_be_one_looks_missing_too(world: &World) {
    let tenant = world.tenant().await;
    let own = things(world, &tenant, "sample.made").await;
    for route in ROUTES.iter().filter(|route| matches!(route.who, Who::Holders(_) | Who::OneOf(_))) {
        for &thing in IDS.iter().filter(|&&thing| thing != "type" && route.path.contains(&format!("/{{{thing}}}"))) {
            let missing = route.request(&tenant, &with(&own, thing, &no_such_id())).await.comparable();
            for strange in ["7", "not-an-id", "%00", "%E2%82%AC", "00000000-0000-0000-0000-00000000000g"] {
                let reply = route.request(&tenant, &with(&own, thing, strange)).await;
                assert_eq!(reply.comparable(), missing, "{} {} with {strange}", route.method, route.template);
            }
        }
    }
}

on_both_databases! {
    another_tenants_id_looks_like_one_that_does_not_exist,
    an_id_that_cannot_be_one_looks_missing_too,
}
