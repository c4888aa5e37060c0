//! What ends a WebSocket that was good when it began.
//!
//! Broken on purpose: without the look at the right every `recheck`, what is revoked or lost goes on and the first two fail.

use std::time::Duration;

use courant_api::Cursor;
use courant_server::clock;
use courant_server::http::socket::Limits;

use crate::support::tenant::order;
use crate::support::{Socket, Tenant, World, json, on_both_databases};

fn watchful() -> Limits {
    Limits { recheck: Duration::from_millis(200), ..Limits::default() }
}

fn told(code: u16, reason: &str) -> (u16, String) {
    (code, reason.to_owned())
}

/// A reader of one workspace that has had its first event, the tenant, and the reader's right.
async fn connected(world: &World) -> (Tenant, crate::support::tenant::Member, String, Socket) {
    let tenant = world.tenant().await;
    let workspace = tenant.workspace(None).await;
    let member = tenant.member(&[]).await;
    let grant = tenant.grant(&member.id, "events.read", &format!("workspace:{workspace}")).await;
    let mut socket = Socket::events(&member, &format!("workspaceId={workspace}")).await;
    assert_eq!(socket.entities(1).await, [workspace]);
    (tenant, member, grant, socket)
}

async fn a_revoked_key_is_closed_with_4401(world: &World) {
    let (tenant, member, _, mut socket) = connected(world).await;
    tenant.act(&format!("/api-keys/{}:revoke", member.key_id)).await.expect(200);
    assert_eq!(socket.closed().await, told(4401, "unauthenticated"));
}

async fn a_lost_right_is_closed_with_4403(world: &World) {
    let (tenant, member, grant, mut socket) = connected(world).await;
    tenant.grant(&member.id, "events.append", "tenant").await;
    tenant.delete(&format!("/grants/{grant}")).await.expect(204);
    assert_eq!(socket.closed().await, told(4403, "permission_denied"));
}

async fn a_key_that_expires_is_closed_with_4401_then(world: &World) {
    // Nothing but the expiry makes this server look again.
    let unhurried = Limits { recheck: Duration::from_hours(1), ..Limits::default() };
    let world = World::start_with(world.engine, &[], unhurried).await;
    let tenant = world.tenant().await;
    let expires_at = clock::now().plus_micros(2_000_000);
    let body = json!({ "principalId": tenant.principal, "expiresAt": expires_at });
    let key = tenant.post("/api-keys", &body).await.expect(201)["apiKey"].as_str().unwrap().to_owned();
    let mut socket = Socket::events(&world.api.with(&key), "").await;
    let opened = clock::now();
    socket.event().await;
    assert_eq!(socket.closed().await, told(4401, "unauthenticated"));
    // Unless making it took so long that it had ended before.
    assert!(clock::now() >= expires_at || opened >= expires_at);
    world.finish().await;
}

async fn a_floor_that_overtakes_a_reader_is_closed_with_4400(world: &World) {
    const EVENTS: usize = 60;
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    // More than a connection holds: the reader stands in the middle while it takes nothing.
    let large = "x".repeat(200_000);
    let mut last = 0;
    for n in 0..EVENTS {
        let mut event = order("order.made", &format!("o_{n}"));
        event["payload"]["name"] = json!(large);
        last = tenant.append(event).await["sequence"].as_i64().unwrap();
    }
    let mut socket = Socket::events(&tenant, "types=order.").await;
    assert_eq!(socket.entities(1).await, ["o_0"]);
    world.database.raise_floor(last).await;
    assert_eq!(socket.closed().await, told(4400, "cursor_below_journal_floor"));
}

async fn a_journal_that_becomes_another_one_is_closed_with_4400(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let mut sockets = [Socket::events(&tenant, "types=order.").await, Socket::events(&tenant, "types=nothing.").await];
    tenant.append(order("order.made", "o_1")).await;
    assert_eq!(sockets[0].entities(1).await, ["o_1"]);
    let tag = Cursor::decode(&tenant.end().await).unwrap().incarnation;
    world.database.set_incarnation((tag ^ 1).into()).await;
    for socket in &mut sockets {
        assert_eq!(socket.closed().await, told(4400, "cursor_from_other_journal"));
    }
    world.database.set_incarnation(tag.into()).await;
}

async fn a_server_that_stops_closes_with_1001_and_does_not_wait_for_the_deaf(world: &World) {
    let tenant = world.tenant().await;
    let mut sockets = [Socket::events(&tenant, "").await, Socket::events(&tenant, "types=nothing.").await];
    let _deaf = Socket::events(&tenant, "").await;
    sockets[0].event().await;
    world.stop().await;
    for socket in &mut sockets {
        assert_eq!(socket.closed().await, told(1001, "unavailable"));
    }
    assert_eq!(world.app.sockets.open(), 0);
}

on_both_databases! { with watchful:
    a_revoked_key_is_closed_with_4401,
    a_lost_right_is_closed_with_4403,
    a_key_that_expires_is_closed_with_4401_then,
    a_floor_that_overtakes_a_reader_is_closed_with_4400,
    a_journal_that_becomes_another_one_is_closed_with_4400,
    a_server_that_stops_closes_with_1001_and_does_not_wait_for_the_deaf,
}
