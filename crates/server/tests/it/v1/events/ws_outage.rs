//! A WebSocket whose server cannot reach its database: told so, and welcome again when it can.

use std::time::Duration;

use courant_testkit::{Fault, Proxy};

use crate::support::tenant::order;
use crate::support::{Engine, Socket, Tenant, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_its_database_is_closed_with_4503_until_it_has_it_again() {
    let world = World::start(Engine::Postgres, &[]).await;
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    tenant.append(order("order.made", "o_1")).await;
    let proxy = Proxy::postgres(world.database_url()).await;
    let peer = world.peer(proxy.url(), Duration::from_millis(50)).await;
    let reader = Tenant { api: tenant.api.at(peer.address), ..tenant.clone() };

    proxy.set(Fault::Refuse);
    proxy.cut();
    let mut refused = Socket::events(&reader, "types=order.").await;
    assert_eq!(refused.closed().await, (4503, "unavailable".to_owned()));

    proxy.set(Fault::None);
    let mut socket = Socket::events(&reader, "types=order.").await;
    assert_eq!(socket.entities(1).await, ["o_1"]);
    peer.stop().await;
    world.finish().await;
}
