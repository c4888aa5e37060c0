//! What a WebSocket sends: the backlog, and then each event as it comes, once and in order.
//!
//! Broken on purpose: with batches that are taken although something lies before them (`fit` in `live.rs`), or without the
//! empty batch for those who joined before the first look, waiting readers miss what came meanwhile: the unit tests of
//! `live` fail.

use futures_util::future::join_all;

use crate::support::tenant::order;
use crate::support::{Socket, Tenant, Value, World, json, on_both_databases};

fn sequences(events: &[Value]) -> Vec<i64> {
    events.iter().map(|event| event["sequence"].as_i64().unwrap()).collect()
}

async fn take(socket: &mut Socket, count: usize) -> Vec<Value> {
    let mut events = Vec::new();
    while events.len() < count {
        events.push(socket.event().await);
    }
    events
}

async fn within(tenant: &Tenant, workspace: &str, name: &str) {
    let mut event = order("order.made", name);
    event["workspaceId"] = json!(workspace);
    tenant.append(event).await;
}

async fn a_frame_is_an_event_as_a_page_has_it(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let odd = json!({ "events": [{ "type": "order.made", "entityType": "order", "entityId": "o_1",
        "payload": { "amount": 7, "name": "\u{e9}\u{1f980}\"\\" } }] });
    tenant.post("/events?until=readable", &odd).await.expect(201);
    let mut socket = Socket::events(&tenant, "").await;
    let page = tenant.get("/events?limit=1000").await;
    for _ in 0..page.expect(200)["items"].as_array().unwrap().len() {
        let frame = socket.raw_text().await;
        assert!(page.text().contains(&frame), "{frame}");
    }
    // And so is one that comes from what all readers share.
    tenant.post("/events?until=readable", &odd).await.expect(201);
    let frame = socket.raw_text().await;
    assert!(tenant.get("/events?tail=1").await.text().contains(&frame), "{frame}");
}

async fn backlog_and_what_comes_meanwhile_make_one_order_without_a_gap(world: &World) {
    const WRITERS: usize = 4;
    const EVENTS: usize = 60;
    let tenant = world.tenant().await;
    tenant.register(&["order.made", "order.paid"]).await;
    let elsewhere = tenant.api.at(world.second_server().await);
    let write = async |writer: usize| {
        for n in 0..EVENTS {
            let name = if n % 3 == 0 { "order.paid" } else { "order.made" };
            let api = if writer == 0 { &elsewhere } else { &tenant.api };
            let batch: Vec<_> = (0..=n % 3).map(|m| order(name, &format!("o_{writer}_{n}_{m}"))).collect();
            api.post("/events", &json!({ "events": batch })).await.expect(201);
        }
    };
    // Each reader begins while the writers are at it.
    let read = async |reader: usize| {
        let filter = ["types=order.", "types=order.paid", "types=order.&entityType=order"][reader % 3];
        let count = WRITERS * if reader % 3 == 1 { EVENTS / 3 } else { 2 * EVENTS };
        let page = tenant.get(&format!("/events?limit={}&{filter}", reader + 1)).await.expect(200);
        let mut events = page["items"].as_array().unwrap().clone();
        let after = page["nextCursor"].as_str().unwrap();
        let mut socket = Socket::events(&tenant, &format!("{filter}&after={after}")).await;
        events.extend(take(&mut socket, count - events.len()).await);
        (filter, events)
    };
    let writers = join_all((0..WRITERS).map(write));
    let readers = join_all((0..9).map(read));
    let (_, read) = tokio::join!(writers, readers);
    for (filter, events) in read {
        assert_eq!(sequences(&events), sequences(&tenant.events(filter).await), "{filter}");
    }
}

async fn a_reader_that_falls_behind_reads_on_where_it_stood(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let mut socket = Socket::events(&tenant, "types=order.").await;
    tenant.append(order("order.made", "o_first")).await;
    assert_eq!(socket.entities(1).await, ["o_first"]);
    // More batches than are kept, and more bytes than a connection holds, while it reads nothing.
    let large = "x".repeat(20_000);
    for n in 0..300 {
        let mut event = order("order.made", &format!("o_{n}"));
        event["payload"]["name"] = json!(large);
        tenant.post("/events", &json!({ "events": [event] })).await.expect(201);
    }
    let expected: Vec<_> = (0..300).map(|n| format!("o_{n}")).collect();
    assert_eq!(socket.entities(300).await, expected);
}

async fn a_large_event_comes_whole(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let mut socket = Socket::events(&tenant, "types=order.").await;
    let large = "\u{e9}".repeat(120_000);
    let mut event = order("order.made", "o_1");
    event["payload"]["name"] = json!(large);
    tenant.append(event).await;
    assert_eq!(socket.event().await["payload"]["name"], json!(large));
}

async fn a_reader_goes_on_from_any_cursor_it_was_given(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    for n in 0..5 {
        tenant.append(order("order.made", &format!("o_{n}"))).await;
    }
    let events = take(&mut Socket::events(&tenant, "types=order.").await, 5).await;
    for (n, event) in events.iter().enumerate().take(4) {
        let mut again = Socket::events(&tenant, &format!("after={}", event["cursor"].as_str().unwrap())).await;
        assert_eq!(again.event().await, events[n + 1]);
    }
}

async fn each_tenant_is_sent_its_own_events_only(world: &World) {
    let (one, other) = (world.tenant().await, world.tenant().await);
    for tenant in [&one, &other] {
        tenant.register(&["order.made"]).await;
    }
    let mut sockets = [Socket::events(&one, "").await, Socket::events(&other, "types=order.").await];
    for n in 0..3 {
        one.append(order("order.made", &format!("one_{n}"))).await;
        other.append(order("order.made", &format!("other_{n}"))).await;
    }
    assert_eq!(sockets[1].entities(3).await, ["other_0", "other_1", "other_2"]);
    let all = one.events("").await;
    assert_eq!(take(&mut sockets[0], all.len()).await, all);
}

async fn filters_narrow_what_is_sent(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made", "order_.made"]).await;
    let mut sockets = Vec::new();
    for filter in ["types=order_", "types=order.,workspace.", "entityType=order&entityId=o_2", "entityType=workspace"] {
        sockets.push(Socket::events(&tenant, &format!("{filter}&after={}", tenant.end().await)).await);
    }
    tenant.append(order("order.made", "o_1")).await;
    tenant.append(order("order_.made", "o_2")).await;
    let workspace = tenant.workspace(None).await;
    tenant.append(order("order.made", "o_2")).await;
    tenant.append(order("order_.made", "o_3")).await;
    assert_eq!(sockets[0].entities(2).await, ["o_2", "o_3"]);
    assert_eq!(sockets[1].entities(3).await, ["o_1", &workspace, "o_2"]);
    assert_eq!(sockets[2].entities(2).await, ["o_2", "o_2"]);
    assert_eq!(sockets[3].entities(1).await, [workspace]);
}

async fn a_workspace_that_moves_is_followed_from_then_on(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let (root, beside) = (tenant.workspace(None).await, tenant.workspace(None).await);
    let middle = tenant.workspace(Some(&root)).await;
    let leaf = tenant.workspace(Some(&middle)).await;
    let follow =
        async |workspace: &str| Socket::events(&tenant, &format!("types=order.&workspaceId={workspace}")).await;
    let (mut at_root, mut at_beside) = (follow(&root).await, follow(&beside).await);
    let move_to = async |parent: &str| {
        tenant.post(&format!("/workspaces/{middle}:move"), &json!({ "parentId": parent })).await.expect(200);
    };
    within(&tenant, &leaf, "in_root").await;
    within(&tenant, &beside, "in_beside").await;
    tenant.append(order("order.made", "of_the_tenant")).await;
    assert_eq!(at_root.entities(1).await, ["in_root"]);
    assert_eq!(at_beside.entities(1).await, ["in_beside"]);
    move_to(&beside).await;
    within(&tenant, &leaf, "moved").await;
    within(&tenant, &root, "stayed").await;
    assert_eq!(at_beside.entities(1).await, ["moved"]);
    assert_eq!(at_root.entities(1).await, ["stayed"]);
    move_to(&root).await;
    within(&tenant, &leaf, "back").await;
    within(&tenant, &beside, "in_beside_again").await;
    assert_eq!(at_root.entities(1).await, ["back"]);
    assert_eq!(at_beside.entities(1).await, ["in_beside_again"]);
}

on_both_databases! {
    a_frame_is_an_event_as_a_page_has_it,
    backlog_and_what_comes_meanwhile_make_one_order_without_a_gap,
    a_reader_that_falls_behind_reads_on_where_it_stood,
    a_large_event_comes_whole,
    a_reader_goes_on_from_any_cursor_it_was_given,
    each_tenant_is_sent_its_own_events_only,
    filters_narrow_what_is_sent,
    a_workspace_that_moves_is_followed_from_then_on,
}
