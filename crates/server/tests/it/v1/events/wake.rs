//! Waiting readers of two servers on one PostgreSQL: woken by notification, and where none comes through by looking.

use std::time::Duration;

use courant_store::Wakeups;
use courant_testkit::{Fault, PATIENCE, Proxy};

use super::wait::poll;
use super::{entities, items};
use crate::support::tenant::order;
use crate::support::world::Peer;
use crate::support::{Engine, Tenant, World, eventually};

const NEVER: Duration = Duration::from_hours(1);
const OFTEN: Duration = Duration::from_millis(50);

async fn stands(peer: &Peer, how: impl Fn(&Wakeups) -> bool) {
    let mut wakeups = peer.app.store.wakeups();
    let stands = tokio::time::timeout(PATIENCE, wakeups.wait_for(|wakeups| how(wakeups))).await;
    assert!(stands.is_ok(), "it stands at {:?}", peer.app.store.wakeups().borrow());
}

/// Polls at the peer while the first server appends; the ids of what the poll gave.
async fn hear(world: &World, tenant: &Tenant, peer: &Peer) -> Vec<String> {
    let reader = Tenant { api: tenant.api.at(peer.address), ..tenant.clone() };
    let reply = poll(world, &reader, "types=order.", async || {
        tenant.append(order("order.made", "o_1")).await;
    });
    entities(&items(&reply.await)).into_iter().map(Into::into).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_at_another_server_is_woken_by_a_notification() {
    let world = World::start(Engine::Postgres, &[]).await;
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    // It would not look again while the poll lasts.
    let peer = world.peer(world.database_url(), NEVER).await;
    stands(&peer, |wakeups| *wakeups == Wakeups::Listening).await;
    assert_eq!(hear(&world, &tenant, &peer).await, ["o_1"]);
    eventually("the gauge", async || {
        world.api.get("/metrics").await.text().contains("\ncourant_journal_listening 1\n").then_some(())
    })
    .await;
    peer.stop().await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_that_swallows_notifications_a_poll_still_gets_its_event() {
    let world = World::start(Engine::Postgres, &[]).await;
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let proxy = Proxy::postgres(world.database_url()).await;
    proxy.set(Fault::DropNotifications);
    let peer = world.peer(proxy.url(), OFTEN).await;
    stands(&peer, |wakeups| matches!(wakeups, Wakeups::Polling { why } if why.contains("LISTEN does not work"))).await;
    assert_eq!(hear(&world, &tenant, &peer).await, ["o_1"]);
    peer.stop().await;
    world.finish().await;
}
