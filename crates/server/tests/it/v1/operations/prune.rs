//! `POST /operations/journal:prune`

use super::{announced, in_seconds};
use crate::support::tenant::order;
use crate::support::{Tenant, Value, World, json, on_both_databases};

const PATH: &str = "/operations/journal:prune";

fn all() -> Value {
    json!({ "beforeSeconds": 0, "maxEvents": 100_000 })
}

async fn tenant(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    for n in 0..3 {
        tenant.append(order("order.made", &format!("o_{n}"))).await;
    }
    announced(world).await;
    tenant
}

async fn a_prune_deletes_tells_itself_and_moves_the_floor(world: &World) {
    let (tenant, other) = (tenant(world).await, world.tenant().await);
    announced(world).await;
    let (before, theirs) = (tenant.events("").await, other.events("").await);
    let done = tenant.post(PATH, &all()).await.expect(200);
    let last = &before[before.len() - 1]["cursor"];
    assert_eq!(done, json!({ "deleted": before.len(), "floorCursor": last, "hasMore": false }));
    let left = tenant.events("").await;
    assert_eq!(left.len(), 1);
    assert_eq!((&left[0]["type"], &left[0]["entityId"]), (&json!("event_journal.pruned"), &json!(tenant.id)));
    assert_eq!(left[0]["payload"], json!({ "count": before.len(), "throughCursor": last }));
    assert_eq!(left[0]["actorId"], json!(tenant.principal));

    let old = before[0]["cursor"].as_str().unwrap();
    for read in ["cursor", "before"] {
        let error = tenant.get(&format!("/events?{read}={old}")).await.refused(422, "cursor_below_journal_floor");
        assert_eq!(&error["details"]["floorCursor"], last);
    }
    tenant.get(&format!("/events/{}", before[0]["id"].as_str().unwrap())).await.refused(404, "not_found");
    let floor = last.as_str().unwrap();
    assert_eq!(tenant.get(&format!("/events?cursor={floor}")).await.expect(200)["items"], json!(left));
    assert_eq!(other.events("").await, theirs, "another tenant's journal was touched");
    let theirs = theirs[0]["cursor"].as_str().unwrap();
    other.get(&format!("/events?cursor={theirs}")).await.expect(200);
}

async fn a_dry_run_only_counts(world: &World) {
    let tenant = tenant(world).await;
    let before = tenant.events("").await;
    let body = json!({ "beforeSeconds": 0, "maxEvents": 2, "dryRun": true });
    let told = tenant.post(PATH, &body).await.expect(200);
    assert_eq!(told, json!({ "deleted": 2, "floorCursor": before[1]["cursor"], "hasMore": true }));
    assert_eq!(tenant.events("").await, before);
    let young = json!({ "beforeSeconds": 3600, "maxEvents": 2 });
    assert_eq!(tenant.post(PATH, &young).await.expect(200)["deleted"], 0);
    assert_eq!(tenant.events("").await, before);
}

async fn a_prune_that_would_pass_a_consumer_is_refused_and_names_it(world: &World) {
    let tenant = tenant(world).await;
    let before = tenant.events("").await;
    let lease = json!({ "cursor": before[3]["cursor"], "expiresAt": in_seconds(3600) });
    let put = tenant.put("/consumers/billing", &lease).await.expect(200);
    // That it came is an event, too, which the announcer has yet to pass.
    announced(world).await;
    let error = tenant.post(PATH, &all()).await.refused(409, "retention_blocked_by_consumer");
    let expected = json!([{
        "kind": "lease", "name": "billing", "cursor": before[3]["cursor"], "expiresAt": put["expiresAt"],
    }]);
    assert_eq!(error["details"]["consumers"], expected);
    assert!(error["message"].as_str().unwrap().contains("billing"), "{error}");
    let told = tenant.events("").await;
    assert_eq!(told[..before.len()], before, "a refused prune deleted something");
    tenant.delete("/consumers/billing").await.expect(204);
    announced(world).await;
    // Those of before, and that the consumer came and went.
    assert_eq!(tenant.post(PATH, &all()).await.expect(200)["deleted"], before.len() + 2);
}

async fn a_repeated_prune_gets_the_first_answer(world: &World) {
    let tenant = tenant(world).await;
    let prune = || {
        let body = json!({ "beforeSeconds": 0, "maxEvents": 2 });
        tenant.post(PATH, &body).header("idempotency-key", "k-1")
    };
    let first = prune().await;
    assert_eq!(first.expect(200)["deleted"], 2);
    let left = tenant.events("").await;
    announced(world).await;
    let again = prune().await;
    assert_eq!((again.expect(200), again.header("idempotency-replayed")), (first.expect(200), Some("true")));
    assert_eq!(tenant.events("").await, left);
}

async fn what_is_out_of_bounds_is_refused_by_name(world: &World) {
    let tenant = world.tenant().await;
    for (field, value) in [
        ("beforeSeconds", json!(-1)),
        ("beforeSeconds", json!(3_153_600_001_i64)),
        ("maxEvents", json!(0)),
        ("maxEvents", json!(100_001)),
        ("maxEvents", json!(null)),
        ("beforeSeconds", json!("1d")),
        ("dryRun", json!("yes")),
    ] {
        let mut body = all();
        body[field] = value;
        let error = tenant.post(PATH, &body).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["pointer"], format!("/{field}"), "{body}");
    }
    for missing in ["beforeSeconds", "maxEvents"] {
        let mut body = all();
        body.as_object_mut().unwrap().remove(missing);
        let error = tenant.post(PATH, &body).await.refused(400, "invalid_request");
        assert!(error["message"].as_str().unwrap().contains(missing), "{error}");
    }
}

on_both_databases! {
    a_prune_deletes_tells_itself_and_moves_the_floor,
    a_dry_run_only_counts,
    a_prune_that_would_pass_a_consumer_is_refused_and_names_it,
    a_repeated_prune_gets_the_first_answer,
    what_is_out_of_bounds_is_refused_by_name,
}
