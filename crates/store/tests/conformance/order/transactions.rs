//! Transactions of every make beside and around appends: temporary tables, savepoints, and savepoints taken back.
//!
//! Broken on purpose: with a horizon that does not look at the locks each hands out too early; with one that waits for
//! gaps to be filled, those that take a savepoint back wait in vain.

use super::stuck::{append_raw, readable};
use crate::world::{Engine, Ground, Tenant, World, draft, entities};

async fn world() -> (World, Tenant, String) {
    let world = Ground::new(Engine::Postgres).world().await;
    let tenant = world.tenant().await;
    let from = world.end(&tenant).await;
    (world, tenant, from)
}

async fn append(world: &World, tenant: &Tenant, what: &str) {
    world.append(tenant, vec![draft("task.made", what)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_writes_a_temporary_table_holds_nobody_back() {
    let (world, tenant, from) = world().await;
    let (raw, other) = (world.raw().await, world.raw().await);
    raw.run("BEGIN; CREATE TEMPORARY TABLE t (n int); INSERT INTO t VALUES (1)").await.unwrap();
    append(&world, &tenant, "beside").await;
    assert_eq!(entities(&world.since(&tenant, &from).await), ["beside"]);
    let open = raw.number("SELECT pg_current_xact_id_if_assigned()::text::bigint").await;
    // A reader who orders by transaction ids is held back by it.
    assert!(open >= other.number("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").await);

    // It appends in the end, after what has been read.
    append_raw(&raw, &tenant, "temporary").await;
    append(&world, &tenant, "after").await;
    assert_eq!(entities(&world.since(&tenant, &from).await), ["beside"]);
    raw.run("COMMIT").await.unwrap();
    assert_eq!(entities(&world.since(&tenant, &from).await), ["beside", "temporary", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_savepoint_come_with_its_transaction_and_hold_readers_until_then() {
    let (world, tenant, from) = world().await;
    let raw = world.raw().await;
    raw.run("BEGIN; SAVEPOINT a").await.unwrap();
    append_raw(&raw, &tenant, "inside").await;
    append(&world, &tenant, "beside").await;
    assert_eq!(world.since(&tenant, &from).await, []);
    // The lock of the savepoint becomes the transaction's.
    raw.run("RELEASE a").await.unwrap();
    assert_eq!(world.since(&tenant, &from).await, []);
    raw.run("COMMIT").await.unwrap();
    assert_eq!(entities(&world.since(&tenant, &from).await), ["inside", "beside"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_taken_back_between_two_events_leaves_a_gap_that_stops_nobody() {
    let (world, tenant, from) = world().await;
    let raw = world.raw().await;
    raw.run("BEGIN").await.unwrap();
    append_raw(&raw, &tenant, "first").await;
    append(&world, &tenant, "beside 1").await;
    raw.run("SAVEPOINT a").await.unwrap();
    append_raw(&raw, &tenant, "taken back").await;
    append(&world, &tenant, "beside 2").await;
    raw.run("ROLLBACK TO a").await.unwrap();
    append_raw(&raw, &tenant, "last").await;
    append(&world, &tenant, "beside 3").await;
    assert_eq!(world.since(&tenant, &from).await, [], "its first event holds everything back");
    raw.run("COMMIT").await.unwrap();
    let expected = ["first", "beside 1", "beside 2", "last", "beside 3"];
    assert_eq!(entities(&world.since(&tenant, &from).await), expected);
}

/// The lock that goes with a savepoint is gone with it, and so is the position: what follows takes its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_taken_back_frees_readers_before_its_transaction_ends() {
    let (world, tenant, from) = world().await;
    let raw = world.raw().await;
    raw.run("BEGIN; SAVEPOINT a").await.unwrap();
    append_raw(&raw, &tenant, "taken back").await;
    append(&world, &tenant, "beside").await;
    assert_eq!(world.since(&tenant, &from).await, []);
    raw.run("ROLLBACK TO a").await.unwrap();
    readable(&world, &tenant, &from, &["beside"]).await;
    let passed = world.end(&tenant).await;
    append_raw(&raw, &tenant, "last").await;
    append(&world, &tenant, "after").await;
    assert_eq!(world.since(&tenant, &passed).await, []);
    raw.run("COMMIT").await.unwrap();
    assert_eq!(entities(&world.since(&tenant, &passed).await), ["last", "after"]);
}
