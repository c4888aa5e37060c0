//! The long poll: an empty page is held open until something can be in it.

use super::{entities, items};
use crate::support::tenant::order;
use crate::support::{Tenant, Value, World, eventually, json, on_both_databases};

/// How often this process has read a page of the journal.
fn reads(world: &World) -> u64 {
    // At the journal's end a page looks at the floor alone.
    let read = |name: &str| matches!(name, "journal.PLAIN" | "journal.WALK" | "journal.BY_TYPE" | "journal.FLOOR");
    world.app.store.statements().into_iter().filter(|(name, _)| read(name)).map(|(_, runs)| runs).sum()
}

/// Polls from the end of the journal while `meanwhile` runs, which begins when the poll has found nothing.
pub(super) async fn poll(
    world: &World,
    tenant: &Tenant,
    filter: &str,
    meanwhile: impl AsyncFnOnce(),
) -> crate::support::Reply {
    let end = tenant.end().await;
    let before = reads(world);
    let poll = tenant.get(&format!("/events?wait=30&{filter}&cursor={end}"));
    let (reply, ()) = tokio::join!(poll, async {
        eventually("the poll to have read", async || (reads(world) > before).then_some(())).await;
        meanwhile().await;
    });
    reply
}

async fn a_poll_returns_with_the_event_that_is_appended_meanwhile(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let reply = poll(world, &tenant, "", async || {
        tenant.append(order("order.made", "o_1")).await;
    });
    assert_eq!(entities(&items(&reply.await)), ["o_1"]);
}

async fn a_poll_waits_on_when_what_is_appended_does_not_match(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made", "order.paid"]).await;
    let reply = poll(world, &tenant, "types=order.paid", async || {
        tenant.append(order("order.made", "o_1")).await;
        tenant.append(order("order.paid", "o_2")).await;
    });
    assert_eq!(entities(&items(&reply.await)), ["o_2"]);
}

async fn a_poll_hears_of_what_another_server_appends(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let elsewhere = tenant.api.at(world.second_server().await);
    let reply = poll(world, &tenant, "types=order.", async || {
        elsewhere.post("/events", &json!({ "events": [order("order.made", "o_1")] })).await.expect(201);
    });
    assert_eq!(entities(&items(&reply.await)), ["o_1"]);
}

async fn a_poll_hears_of_the_core_types_too(world: &World) {
    let tenant = world.tenant().await;
    let reply = poll(world, &tenant, "types=workspace.", async || {
        tenant.workspace(None).await;
    });
    assert_eq!(items(&reply.await)[0]["type"], "workspace.created");
}

async fn a_poll_with_something_to_give_does_not_wait(world: &World) {
    let tenant = world.tenant().await;
    assert!(!items(&tenant.get("/events?wait=30").await).is_empty());
    // A tail is the newest there is; it is not waited for.
    let tail = tenant.get("/events?wait=30&tail=5&types=nothing.").await.expect(200);
    assert_eq!(tail["items"], json!([]));
}

async fn a_poll_ends_with_its_server(world: &World) {
    let tenant = world.tenant().await;
    let end = tenant.end().await;
    let reply = poll(world, &tenant, "", async || world.stop().await).await.expect(200);
    assert_eq!(reply["items"], Value::Array(Vec::new()));
    assert_eq!(reply["nextCursor"], json!(end));
}

on_both_databases! {
    a_poll_returns_with_the_event_that_is_appended_meanwhile,
    a_poll_waits_on_when_what_is_appended_does_not_match,
    a_poll_hears_of_what_another_server_appends,
    a_poll_hears_of_the_core_types_too,
    a_poll_with_something_to_give_does_not_wait,
    a_poll_ends_with_its_server,
}
