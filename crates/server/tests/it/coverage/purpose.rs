//! A token for one decision on every route: refused before anything is read.

use super::routes::{ROUTES, Route, Who};
use super::{Things, fill, things};
use crate::support::{Api, Socket, Value, World, json, no_such_id, on_both_databases};

const OUTSIDE: &str = "outside_purpose";
const UNNAMED: &str = "purpose_ref_required";

fn admitting() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| !matches!(route.who, Who::Everybody | Who::Bootstrap))
}

/// Tokens of somebody who may do everything: for one decision, and for one that is not said or not said well.
fn tokens(world: &World, subject: &str) -> Vec<(Api, &'static str)> {
    let for_one =
        |scope: &str, reference: Value| world.bearer(subject, json!({ "scope": scope, "purpose_ref": reference }));
    let reference = json!(format!("approval:{}", no_such_id()));
    vec![
        (for_one("control-plane:decide", reference.clone()), OUTSIDE),
        // Other scopes beside it count for nothing.
        (for_one("control-plane:admin control-plane:decide control-plane:read", reference), OUTSIDE),
        (for_one("control-plane:decide", json!(null)), UNNAMED),
        (for_one("control-plane:decide", json!(format!("task:{}", no_such_id()))), UNNAMED),
        (for_one("control-plane:decide control-plane:admin", json!("approval:all")), UNNAMED),
    ]
}

/// The same things, but none of them exists.
fn missing(things: &Things) -> Things {
    const KEPT: [&str; 7] = ["type", "name", "consumer", "cursor", "soon", "secret", "issuer"];
    let mut missing = things.clone();
    for (_, value) in missing.iter_mut().filter(|(name, _)| !KEPT.contains(*name)) {
        *value = no_such_id();
    }
    missing
}

async fn a_token_for_one_decision_reads_nothing_and_changes_nothing(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    tenant.bind(world, &tenant.principal, &tenant.principal).await;
    let before = tenant.end().await;
    let missing = missing(&things);
    for (api, code) in tokens(world, &tenant.principal) {
        let expected = api.get("/events").await;
        expected.refused(403, code);
        for route in admitting() {
            let place = format!("{} {}", route.method, route.template);
            let path = fill(route.path, &things);
            if route.is_socket() {
                for path in [&path, &fill(route.path, &missing), &format!("{path}&colour=red")] {
                    let ended = Socket::open(&api, path).await.closed().await;
                    assert_eq!(ended, (4403, code.to_owned()), "{place}");
                }
                continue;
            }
            let garbage = api.call(route.method(), &format!("{path}{}", if path.contains('?') { "&" } else { "?" }));
            let garbage = garbage.header("if-match", "nonsense").text("image/png", "\u{0}{\"a\":");
            let keyed = route.request(&api, &things).header("idempotency-key", "once");
            let there = route.request(&api, &things).await;
            for reply in [there, route.request(&api, &missing).await, garbage.await, keyed.await] {
                assert_eq!(reply.comparable(), expected.comparable(), "{place}");
            }
        }
    }
    assert_eq!(tenant.end().await, before, "a refused request changed something");
}

on_both_databases! {
    a_token_for_one_decision_reads_nothing_and_changes_nothing,
}
