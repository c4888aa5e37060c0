//! Peers that are gone, deaf or slow.
//!
//! Broken on purpose: with a silence a thousand times as long the silent peer stays and its test fails.

use std::time::Duration;

use courant_server::http::socket::Limits;
use tokio_tungstenite::tungstenite::Message;

use crate::support::tenant::order;
use crate::support::{Socket, World, eventually, json, on_both_databases};

fn impatient() -> Limits {
    Limits { ping: Duration::from_millis(100), silence: Duration::from_secs(1), ..Limits::default() }
}

async fn open(world: &World, count: usize) {
    eventually(&format!("{count} open sockets"), async || (world.app.sockets.open() == count).then_some(())).await;
}

async fn a_silent_peer_is_dropped(world: &World) {
    let tenant = world.tenant().await;
    let mut socket = Socket::events(&tenant, "types=nothing.").await;
    open(world, 1).await;
    // It answers nothing as long as it reads nothing.
    open(world, 0).await;
    socket.dropped().await;
}

async fn an_answered_ping_keeps_a_socket(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let mut socket = Socket::events(&tenant, "types=order.").await;
    for _ in 0..30 {
        socket.pinged().await;
    }
    tenant.append(order("order.made", "o_1")).await;
    assert_eq!(socket.entities(1).await, ["o_1"]);
}

async fn whatever_a_peer_sends_is_a_sign_of_life(world: &World) {
    let tenant = world.tenant().await;
    let mut pinging = Socket::events(&tenant, "types=nothing.").await;
    let mut watch = Socket::events(&tenant, "types=nothing.").await;
    // Three times the silence that is allowed, by the pings of another socket.
    for n in 0..30 {
        watch.pinged().await;
        let frame = if n % 2 == 0 { Message::text("here") } else { Message::Ping("here".into()) };
        pinging.send(frame).await;
    }
    assert_eq!(world.app.sockets.open(), 2);
}

async fn a_reader_that_never_reads_is_dropped_and_nobody_else_waits_for_it(world: &World) {
    const EVENTS: usize = 60;
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let _deaf = Socket::events(&tenant, "types=order.").await;
    let mut good = Socket::events(&tenant, "types=order.").await;
    let large = "x".repeat(200_000);
    for n in 0..EVENTS {
        let mut event = order("order.made", &format!("o_{n}"));
        event["payload"]["name"] = json!(large);
        tenant.append(event).await;
        assert_eq!(good.entities(1).await, [format!("o_{n}")]);
    }
    while world.app.sockets.open() > 1 {
        good.pinged().await;
    }
    tenant.append(order("order.made", "o_last")).await;
    assert_eq!(good.entities(1).await, ["o_last"]);
}

on_both_databases! { with impatient:
    a_silent_peer_is_dropped,
    an_answered_ping_keeps_a_socket,
    whatever_a_peer_sends_is_a_sign_of_life,
    a_reader_that_never_reads_is_dropped_and_nobody_else_waits_for_it,
}
