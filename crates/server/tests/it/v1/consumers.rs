//! `/consumers`: leases that retention waits for.

use super::operations::{announced, in_seconds};
use crate::support::{World, json, on_both_databases};

async fn a_lease_is_put_moved_and_given_up(world: &World) {
    let tenant = world.tenant().await;
    let events = tenant.events("").await;
    for (n, seconds) in [(1, 60), (3, 3600), (0, 600)] {
        let body = json!({ "cursor": events[n]["cursor"], "expiresAt": in_seconds(seconds) });
        let put = tenant.put("/consumers/Team:billing-1.x_y", &body).await.expect(200);
        assert_eq!(
            put,
            json!({ "name": "Team:billing-1.x_y", "cursor": body["cursor"], "expiresAt": body["expiresAt"] })
        );
    }
    tenant.delete("/consumers/Team:billing-1.x_y").await.expect(204);
    let error = tenant.delete("/consumers/Team:billing-1.x_y").await.refused(404, "not_found");
    assert_eq!(error["message"], "consumer not found");
    tenant.delete("/consumers/no%20such%20name").await.refused(404, "not_found");
}

async fn a_cursor_is_refused_as_reading_would_refuse_it(world: &World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let events = tenant.events("").await;
    announced(world).await;
    let body = json!({ "beforeSeconds": 0, "maxEvents": 2 });
    tenant.post("/operations/journal:prune", &body).await.expect(200);
    for (cursor, code) in [
        (json!("ec1_nonsense"), "invalid_cursor"),
        (json!("ec9_nonsense"), "unsupported_cursor_version"),
        (json!(other.end().await), "cursor_from_other_journal"),
        (events[0]["cursor"].clone(), "cursor_below_journal_floor"),
    ] {
        let body = json!({ "cursor": cursor, "expiresAt": in_seconds(60) });
        let refused = tenant.put("/consumers/c", &body).await.refused(422, code);
        let read = tenant.get(&format!("/events?cursor={}", cursor.as_str().unwrap())).await.refused(422, code);
        assert_eq!(refused, read);
    }
    let floor = json!({ "cursor": events[1]["cursor"], "expiresAt": in_seconds(60) });
    tenant.put("/consumers/c", &floor).await.expect(200);
}

async fn names_and_times_are_bounded(world: &World) {
    let tenant = world.tenant().await;
    let cursor = tenant.end().await;
    let body = |expires: String| json!({ "cursor": cursor, "expiresAt": expires });
    for name in ["a%20b", "%C3%A9", "a%2Fb", &"n".repeat(101), "announcer", ".hidden", "-a"] {
        tenant.put(&format!("/consumers/{name}"), &body(in_seconds(60))).await.refused(400, "invalid_request");
    }
    tenant.put(&format!("/consumers/{}", "n".repeat(100)), &body(in_seconds(60))).await.expect(200);
    let days = |n: i64| in_seconds(n * 24 * 3600);
    for time in [in_seconds(-1), days(31), "2020-01-01T00:00:00Z".to_owned()] {
        let error = tenant.put("/consumers/c", &body(time)).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["pointer"], "/expiresAt");
    }
    tenant.put("/consumers/c", &body(in_seconds(30 * 24 * 3600 - 60))).await.expect(200);
}

async fn another_tenants_consumer_looks_missing(world: &World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let body = json!({ "cursor": other.end().await, "expiresAt": in_seconds(60) });
    other.put("/consumers/shared", &body).await.expect(200);
    let foreign = tenant.delete("/consumers/shared").await;
    assert_eq!(foreign.comparable(), tenant.delete("/consumers/absent").await.comparable());
    other.delete("/consumers/shared").await.expect(204);
}

on_both_databases! {
    a_lease_is_put_moved_and_given_up,
    a_cursor_is_refused_as_reading_would_refuse_it,
    names_and_times_are_bounded,
    another_tenants_consumer_looks_missing,
}
