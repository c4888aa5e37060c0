//! Claiming deliveries and marking what became of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use courant_api::DeliveryId;
use courant_core::delivery::{Failure, FailureClass};
use courant_store::{Claimed, DeliveryQuery, Edit, Integration, Lanes, Mark, Outcome, Store};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::world::{Tenant, World, at, draft, now};
use crate::{cases, second_server};

cases![
    due_deliveries_are_claimed_oldest_first_up_to_a_limit,
    a_claimed_delivery_is_nobody_elses,
    what_was_sent_is_gone,
    a_retry_is_due_at_its_time_and_shows_its_error,
    marks_land_each_by_itself,
    a_mark_of_an_older_claim_lands_nowhere,
    a_mark_of_a_claim_before_a_requeue_lands_nowhere,
    deliveries_of_a_paused_integration_wait,
    no_integration_takes_more_of_a_claim_than_its_lane,
    servers_that_claim_at_once_share_the_work_without_overlap,
];

/// A tenant with the integration `ops` and `count` queued deliveries, and a server to work on them.
pub async fn queue(world: &World, count: usize) -> (Tenant, Uuid) {
    let tenant = world.tenant().await;
    now(world.store.integration_create(tenant.change(), tenant.integration("ops", &["task."]), None).await.unwrap());
    add(world, &tenant, count, 0).await;
    let server = world.store.server_register(at(0)).await.unwrap();
    (tenant, server)
}

/// Queues further deliveries at that second.
pub async fn add(world: &World, tenant: &Tenant, count: usize, second: i64) {
    world.append(tenant, (0..count).map(|n| draft("task.made", n.to_string())).collect()).await;
    assert_eq!(world.announce(at(second)).await, count as u64);
}

pub async fn claim(store: &Store, server: Uuid, second: i64) -> Vec<Claimed> {
    let mut claimed = store.delivery_claim(server, at(second), 100, Lanes::default()).await.unwrap().deliveries;
    claimed.sort_by_key(|d| d.attempt.id);
    claimed
}

pub fn failure(text: &str) -> Failure {
    Failure::new(FailureClass::Transient, text)
}

pub fn sent(d: &Claimed) -> Mark {
    Mark { attempt: d.attempt.clone(), outcome: Outcome::Sent }
}

pub fn retry(d: &Claimed, second: i64) -> Mark {
    let outcome = Outcome::Retry { run_at: at(second), error: failure("HTTP 503") };
    Mark { attempt: d.attempt.clone(), outcome }
}

pub fn dead(d: &Claimed, disable_integration: bool) -> Mark {
    let error = Failure::new(FailureClass::Destination, "HTTP 410");
    Mark { attempt: d.attempt.clone(), outcome: Outcome::Dead { error, disable_integration } }
}

pub async fn finish(store: &Store, marks: Vec<Mark>) -> Vec<bool> {
    store.delivery_finish(marks, at(100)).await.unwrap()
}

/// What is stored, as (status, attempts, error), oldest first.
pub async fn stored(world: &World, tenant: &Tenant) -> Vec<(&'static str, i64, Option<String>)> {
    let mut all = world.store.delivery_list(&tenant.caller, DeliveryQuery::default(), None, 1000).await.unwrap().items;
    all.reverse();
    all.into_iter().map(|d| (d.status.as_str(), d.attempt_count, d.last_error)).collect()
}

async fn due_deliveries_are_claimed_oldest_first_up_to_a_limit(world: World) {
    let (tenant, server) = queue(&world, 3).await;
    add(&world, &tenant, 2, 50).await;
    let claim =
        async |second, limit| world.store.delivery_claim(server, at(second), limit, Lanes::default()).await.unwrap();
    let early = claim(-1, 10).await;
    assert_eq!((early.deliveries.len(), early.next_due), (0, Some(at(0))));
    let first = claim(0, 2).await;
    assert_eq!((first.deliveries.len(), first.next_due), (2, Some(at(0))));
    let second = claim(49, 10).await;
    assert_eq!((second.deliveries.len(), second.next_due), (1, Some(at(50))));
    let mut early: Vec<_> = first.deliveries.iter().map(|d| d.attempt.id).collect();
    early.sort();
    assert!(early.iter().all(|id| *id < second.deliveries[0].attempt.id));
    let last = claim(50, 10).await;
    assert_eq!((last.deliveries.len(), last.next_due), (2, None));
}

async fn a_claimed_delivery_is_nobody_elses(world: World) {
    let (tenant, server) = queue(&world, 1).await;
    let claimed = claim(&world.store, server, 1).await;
    assert_eq!((claimed[0].attempt.attempt_count, claimed[0].attempt.claim_token), (1, 1));
    assert_eq!(stored(&world, &tenant).await, [("processing", 1, None)]);
    for second in [1, 1000] {
        assert_eq!(claim(&world.store, server, second).await.len(), 0);
    }
}

async fn no_integration_takes_more_of_a_claim_than_its_lane(world: World) {
    let (tenant, server) = queue(&world, 30).await;
    let late = tenant.integration("late", &["task."]);
    let late_id = late.id;
    now(world.store.integration_create(tenant.change(), late, None).await.unwrap());
    add_to_both(&world, &tenant, 3).await;
    let claim = async |lanes| {
        let claimed = world.store.delivery_claim(server, at(9), 20, lanes).await.unwrap().deliveries;
        let of_late = claimed.iter().filter(|d| d.integration.id == late_id).count();
        (claimed.len() - of_late, of_late)
    };
    let of_first = world.store.delivery_claim(server, at(9), 1, Lanes::default()).await.unwrap().deliveries;
    let first_id = of_first[0].integration.id;
    assert_eq!(claim(Lanes { most: 4, ..Lanes::default() }).await, (4, 3), "the late one is reached past the crowd");
    add_to_both(&world, &tenant, 3).await;
    assert_eq!(claim(Lanes { closed: vec![first_id], ..Lanes::default() }).await, (0, 3));
    assert_eq!(claim(Lanes { slow: vec![first_id], ..Lanes::default() }).await, (1, 0));
    assert_eq!(claim(Lanes::default()).await, (20, 0));
}

/// Queues further deliveries, one each for both integrations.
async fn add_to_both(world: &World, tenant: &Tenant, count: usize) {
    world.append(tenant, (0..count).map(|n| draft("task.made", n.to_string())).collect()).await;
    assert_eq!(world.announce(at(1)).await, 2 * count as u64);
}

async fn what_was_sent_is_gone(world: World) {
    let (tenant, server) = queue(&world, 2).await;
    let claimed = claim(&world.store, server, 1).await;
    assert_eq!(finish(&world.store, vec![sent(&claimed[0])]).await, [true]);
    assert_eq!(stored(&world, &tenant).await, [("processing", 1, None)]);
    assert_eq!(finish(&world.store, vec![sent(&claimed[0])]).await, [false], "it cannot be marked twice");
    let mut nobody = sent(&claimed[0]);
    nobody.attempt.id = DeliveryId(Uuid::from_u128(1));
    assert_eq!(finish(&world.store, vec![nobody]).await, [false]);
    assert_eq!(finish(&world.store, Vec::new()).await, [false; 0]);
}

async fn a_retry_is_due_at_its_time_and_shows_its_error(world: World) {
    let (tenant, server) = queue(&world, 1).await;
    let first = claim(&world.store, server, 1).await;
    assert_eq!(finish(&world.store, vec![retry(&first[0], 30)]).await, [true]);
    assert_eq!(stored(&world, &tenant).await, [("failed", 1, Some("HTTP 503".into()))]);
    assert_eq!(finish(&world.store, vec![sent(&first[0])]).await, [false], "its claim has ended");
    let early = world.store.delivery_claim(server, at(29), 10, Lanes::default()).await.unwrap();
    assert_eq!((early.deliveries.len(), early.next_due), (0, Some(at(30))));
    let second = claim(&world.store, server, 30).await;
    assert_eq!(
        (second[0].attempt.id, second[0].attempt.attempt_count, second[0].attempt.claim_token),
        (first[0].attempt.id, 2, 2)
    );
    assert_eq!(second[0].payload, first[0].payload);
}

async fn marks_land_each_by_itself(world: World) {
    let (tenant, server) = queue(&world, 6).await;
    let c = claim(&world.store, server, 1).await;
    let older = |d: &Claimed| {
        let mut older = d.clone();
        older.attempt.claim_token -= 1;
        older
    };
    let marks = vec![
        retry(&c[0], 10),
        sent(&older(&c[1])),
        sent(&c[2]),
        dead(&c[3], false),
        retry(&older(&c[4]), 10),
        dead(&older(&c[5]), true),
    ];
    assert_eq!(finish(&world.store, marks).await, [true, false, true, true, false, false]);
    let statuses: Vec<_> = stored(&world, &tenant).await.into_iter().map(|s| s.0).collect();
    assert_eq!(statuses, ["failed", "processing", "dead", "processing", "processing"]);
    let ops = world.store.integration_list(&tenant.caller, None, 1).await.unwrap().items.remove(0);
    assert!(ops.enabled, "a mark that lands nowhere disables nothing");
}

async fn a_mark_of_an_older_claim_lands_nowhere(world: World) {
    let (tenant, server) = queue(&world, 1).await;
    let straggler = claim(&world.store, server, 1).await.remove(0);
    assert_eq!(world.store.delivery_recover(at(400), 300_000_000, 8).await.unwrap(), 1);
    let in_between = finish(&world.store, vec![sent(&straggler), retry(&straggler, 500), dead(&straggler, true)]).await;
    assert_eq!(in_between, [false; 3], "it was taken back");
    let heir = claim(&world.store, server, 400).await.remove(0);
    assert_eq!((heir.attempt.id, heir.attempt.claim_token), (straggler.attempt.id, 2));
    let marks = vec![sent(&straggler), retry(&straggler, 500), dead(&straggler, true)];
    let begin = world.end(&tenant).await;
    assert_eq!(finish(&world.store, marks).await, [false; 3]);
    assert_eq!(world.since(&tenant, &begin).await, []);
    assert_eq!(stored(&world, &tenant).await, [("processing", 2, None)]);
    assert_eq!(finish(&world.store, vec![sent(&heir)]).await, [true]);
}

async fn a_mark_of_a_claim_before_a_requeue_lands_nowhere(world: World) {
    let (tenant, server) = queue(&world, 1).await;
    let straggler = claim(&world.store, server, 1).await.remove(0);
    assert_eq!(world.store.delivery_recover(at(400), 300_000_000, 1).await.unwrap(), 1);
    now(world.store.delivery_requeue(tenant.change_at(401), straggler.attempt.id).await.unwrap());
    let heir = claim(&world.store, server, 401).await.remove(0);
    // The attempts begin anew, the token never does.
    assert_eq!((heir.attempt.attempt_count, straggler.attempt.attempt_count), (1, 1));
    assert_eq!((heir.attempt.claim_token, straggler.attempt.claim_token), (2, 1));
    assert_eq!(finish(&world.store, vec![sent(&straggler)]).await, [false]);
    assert_eq!(finish(&world.store, vec![sent(&heir)]).await, [true]);
}

async fn deliveries_of_a_paused_integration_wait(world: World) {
    let (tenant, server) = queue(&world, 2).await;
    let ops = world.store.integration_list(&tenant.caller, None, 1).await.unwrap().items.remove(0);
    let pause = async |paused| {
        let edit: Edit = Arc::new(move |i| Ok(Integration { paused, ..i.clone() }.into()));
        now(world.store.integration_update(tenant.change(), ops.id, edit).await.unwrap());
    };
    pause(true).await;
    add(&world, &tenant, 1, 5).await;
    let nothing = world.store.delivery_claim(server, at(10), 10, Lanes::default()).await.unwrap();
    assert_eq!((nothing.deliveries.len(), nothing.next_due), (0, None));
    pause(false).await;
    assert_eq!(claim(&world.store, server, 10).await.len(), 3);
}

async fn servers_that_claim_at_once_share_the_work_without_overlap(world: World) {
    const ROWS: usize = 200;
    let (tenant, server) = queue(&world, ROWS).await;
    let other = second_server(&world).await;
    let start = Arc::new(Barrier::new(8));
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let store = if n % 2 == 0 { world.store.clone() } else { other.clone() };
        let start = Arc::clone(&start);
        tasks.spawn(async move {
            start.wait().await;
            let mut mine = Vec::new();
            loop {
                let claimed = store.delivery_claim(server, at(1), 7, Lanes::default()).await.unwrap().deliveries;
                assert!(claimed.len() <= 7);
                if claimed.is_empty() {
                    return mine;
                }
                let marks = claimed.iter().map(sent).collect();
                assert!(store.delivery_finish(marks, at(2)).await.unwrap().into_iter().all(|landed| landed));
                mine.extend(claimed.into_iter().map(|d| d.attempt.id));
            }
        });
    }
    let claimed: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(claimed.len(), ROWS);
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), ROWS);
    assert_eq!(stored(&world, &tenant).await, []);
}
