//! Names of another tenant, and ids that cannot be any, are answered as what does not exist. Ids are in contract.rs.

use super::routes::{ROUTES, Who};
use super::{Things, things};
use crate::support::{Reply, World, no_such_id, on_both_databases};

/// What stands in paths.
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
];

fn with(own: &Things, thing: &'static str, value: &str) -> Things {
    let mut changed = own.clone();
    changed.insert(thing, value.to_owned());
    changed
}

/// A refusal may repeat the type that the request named.
fn without_name(reply: &Reply, name: &str) -> (u16, Vec<(String, String)>, String) {
    let (status, mut headers, _) = reply.comparable();
    headers.retain(|(name, _)| name != "content-length");
    (status, headers, reply.text().replace(name, "<the type>"))
}

async fn another_tenants_event_type_looks_like_one_that_does_not_exist(world: &World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    let own = things(world, &mine, "mine.made").await;
    things(world, &theirs, "theirs.made").await;
    let (before, theirs_before) = (mine.end().await, theirs.end().await);
    for route in ROUTES.iter().filter(|route| route.names("type")) {
        let place = format!("{} {}", route.method, route.template);
        let foreign = route.request(&mine, &with(&own, "type", "theirs.made")).await;
        let missing = route.request(&mine, &with(&own, "type", "absent.made")).await;
        assert!((400..500).contains(&foreign.status), "{place}: {}", foreign.text());
        assert_eq!(without_name(&foreign, "theirs.made"), without_name(&missing, "absent.made"), "{place}");
    }
    assert_eq!(mine.end().await, before, "a refused request changed something");
    assert_eq!(theirs.end().await, theirs_before, "the other tenant was touched");
}

async fn an_id_that_cannot_be_one_looks_missing_too(world: &World) {
    let tenant = world.tenant().await;
    let own = things(world, &tenant, "sample.made").await;
    for route in ROUTES.iter().filter(|route| matches!(route.who, Who::Holders(_) | Who::OneOf(_))) {
        for &thing in IDS.iter().filter(|thing| route.path.contains(&format!("/{{{thing}}}"))) {
            let missing = route.request(&tenant, &with(&own, thing, &no_such_id())).await.comparable();
            for strange in ["7", "not-an-id", "%00", "%E2%82%AC", "00000000-0000-0000-0000-00000000000g"] {
                let reply = route.request(&tenant, &with(&own, thing, strange)).await;
                assert_eq!(reply.comparable(), missing, "{} {} with {strange}", route.method, route.template);
            }
        }
    }
}

on_both_databases! {
    another_tenants_event_type_looks_like_one_that_does_not_exist,
    an_id_that_cannot_be_one_looks_missing_too,
}
