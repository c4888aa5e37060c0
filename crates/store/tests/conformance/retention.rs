//! Retention: what a prune deletes, what it must not, and that whoever comes next ends it.
//!
//! Broken on purpose: without the check of the floor in `journal/page.rs` the reads beside a prune and below the floor fail.

use std::sync::Arc;

use courant_api::operations::{ConsumerKind, JournalPruned};
use courant_api::{Cursor, Event};
use courant_store::{
    Change, Changed, Error, EventQuery, Idempotency, PRUNE_BATCH, PruneRequest, PruneStep, Start, Store, WhenBlocked,
};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::world::{Tenant, World, after, at, draft, entities, now, payload, query, types};
use crate::{cases, second_server};

cases![
    a_prune_deletes_what_is_old_raises_the_floor_and_tells_it,
    a_prune_stops_at_the_first_event_that_is_young,
    a_prune_deletes_no_more_than_it_may,
    a_dry_run_counts_and_deletes_nothing,
    a_prune_that_would_pass_the_announcer_deletes_nothing_and_names_it,
    a_prune_that_would_pass_a_lease_deletes_nothing_and_names_it,
    a_prune_on_schedule_goes_as_far_as_consumers_allow,
    a_prune_on_schedule_leaves_what_only_tells_of_prunes,
    an_expired_lease_does_not_block,
    a_prune_cut_off_between_batches_is_ended_by_another_and_told_once,
    a_prune_waits_for_the_one_under_way,
    prunes_at_once_delete_once,
    a_lease_that_appears_in_the_middle_stops_the_prune,
    a_lapsed_lease_that_is_renewed_in_the_middle_is_not_passed,
    a_batch_deletes_nothing_beyond_what_was_exported,
    other_tenants_are_untouched,
    cursors_below_the_floor_are_refused_on_every_read,
    a_page_read_during_a_prune_is_right_or_refused,
    a_keyed_prune_is_made_once,
    a_keyed_prune_that_was_stopped_keeps_what_it_did,
    tenants_are_listed_in_order,
];

fn all_before(second: i64) -> PruneRequest {
    PruneRequest { before: at(second), max_events: 100_000, dry_run: false, blocked: WhenBlocked::Refuse }
}

/// Lets the announcer have read everything.
pub async fn announced(world: &World) {
    let horizon = world.store.journal_horizon().await.unwrap();
    let sql = format!("UPDATE consumer_position SET seq = {horizon} WHERE name = 'announcer'");
    world.raw().await.run(&sql).await.unwrap();
}

/// Appends so many events at a second.
async fn append(world: &World, tenant: &Tenant, second: i64, ids: std::ops::Range<usize>) {
    let drafts = ids.map(|n| draft("task.made", n.to_string())).collect();
    world.store.event_append(tenant.change_at(second), drafts).await.unwrap();
}

async fn begin(store: &Store, tenant: &Tenant, second: i64, request: PruneRequest) -> Result<JournalPruned, Error> {
    store.prune_begin(tenant.change_at(second), request).await.map(now)
}

async fn step(store: &Store, tenant: &Tenant, second: i64) -> PruneStep {
    store.prune_step(tenant.change_at(second), i64::MAX).await.unwrap()
}

/// Ends the prune that is under way: what it came to, if anything.
async fn finish(store: &Store, tenant: &Tenant, second: i64) -> Option<(JournalPruned, bool)> {
    loop {
        match step(store, tenant, second).await {
            PruneStep::Idle => return None,
            PruneStep::More => {}
            PruneStep::Ended { pruned, stopped } => return Some((pruned, stopped)),
        }
    }
}

async fn told(world: &World, tenant: &Tenant) -> Vec<Event> {
    let query = EventQuery { prefixes: vec!["event_journal.".into()], ..query(1000) };
    world.page(tenant, query).await.items
}

/// Has retention wait at this event.
/// A lease, told of at a time that no prune here reaches.
async fn lease(world: &World, tenant: &Tenant, name: &str, event: &Event, until: i64) {
    let cursor = Cursor::decode(&event.cursor).unwrap();
    world.store.lease_put(tenant.change_at(60), name.into(), cursor, at(until)).await.unwrap();
}

async fn a_prune_deletes_what_is_old_raises_the_floor_and_tells_it(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..3).await;
    append(&world, &tenant, 60, 3..5).await;
    announced(&world).await;
    let before = world.events(&tenant).await;
    let planned = begin(&world.store, &tenant, 100, all_before(50)).await.unwrap();
    assert_eq!((planned.deleted, planned.has_more), (7, false));
    assert_eq!(planned.floor_cursor, before[6].cursor);
    assert_eq!(world.events(&tenant).await, before, "nothing is deleted by the beginning");
    let (pruned, stopped) = finish(&world.store, &tenant, 100).await.unwrap();
    assert_eq!((pruned, stopped), (planned, false));

    let left = world.events(&tenant).await;
    assert_eq!(left[..2], before[7..]);
    assert_eq!(types(&left[2..]), ["event_journal.pruned"]);
    assert_eq!((left[2].entity_type.as_str(), left[2].entity_id.clone()), ("tenant", tenant.id.to_string()));
    assert_eq!((left[2].actor_id, left[2].occurred_at), (Some(tenant.admin), at(100)));
    assert_eq!(payload(&left[2]), serde_json::json!({ "count": 7, "throughCursor": before[6].cursor }));
    assert_eq!(world.since(&tenant, &before[6].cursor).await, left);
    let state = world.store.retention_state(tenant.id).await.unwrap();
    assert_eq!((state.floor, state.through), (before[6].sequence, None));
    let raw = world.raw().await;
    assert_eq!(raw.number("SELECT deleted_seq FROM journal").await, before[6].sequence);
    assert_eq!(raw.number("SELECT pruned_count FROM tenant_journal").await, 0);

    announced(&world).await;
    let again = begin(&world.store, &tenant, 100, all_before(50)).await.unwrap();
    assert_eq!((again.deleted, again.floor_cursor), (0, before[6].cursor.clone()));
    assert_eq!(step(&world.store, &tenant, 100).await, PruneStep::Idle);
    assert_eq!(world.events(&tenant).await, left, "a prune of nothing tells nothing");
}

async fn a_prune_stops_at_the_first_event_that_is_young(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..1).await;
    append(&world, &tenant, 50, 1..2).await;
    // A clock that was set back: old by its time, but not by its place.
    append(&world, &tenant, 20, 2..3).await;
    announced(&world).await;
    let planned = begin(&world.store, &tenant, 100, all_before(50)).await.unwrap();
    assert_eq!((planned.deleted, planned.has_more), (5, false));
    finish(&world.store, &tenant, 100).await.unwrap();
    assert_eq!(entities(&world.events(&tenant).await)[..2], ["1", "2"]);
}

async fn a_prune_deletes_no_more_than_it_may(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..6).await;
    announced(&world).await;
    for (most, deleted, has_more) in [(4, 4, true), (5, 5, true), (1, 1, false)] {
        let request = PruneRequest { max_events: most, ..all_before(50) };
        let planned = begin(&world.store, &tenant, 60, request).await.unwrap();
        assert_eq!((planned.deleted, planned.has_more), (deleted, has_more));
        assert_eq!(finish(&world.store, &tenant, 60).await.unwrap().0.deleted, deleted);
        announced(&world).await;
    }
    let counts: Vec<_> = told(&world, &tenant).await.iter().map(|e| payload(e)["count"].as_i64().unwrap()).collect();
    assert_eq!(counts, [4, 5, 1]);
}

async fn a_dry_run_counts_and_deletes_nothing(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..3).await;
    announced(&world).await;
    let before = world.events(&tenant).await;
    let request = PruneRequest { dry_run: true, max_events: 5, ..all_before(50) };
    let planned = begin(&world.store, &tenant, 100, request).await.unwrap();
    assert_eq!((planned.deleted, planned.has_more, &planned.floor_cursor), (5, true, &before[4].cursor));
    assert_eq!(step(&world.store, &tenant, 100).await, PruneStep::Idle);
    assert_eq!(world.events(&tenant).await, before);
    lease(&world, &tenant, "slow", &before[1], 500).await;
    let refused = begin(&world.store, &tenant, 100, request).await;
    assert!(matches!(refused, Err(Error::RetentionBlocked(_))), "{refused:?}");
}

async fn a_prune_that_would_pass_the_announcer_deletes_nothing_and_names_it(world: World) {
    let tenant = world.tenant().await;
    announced(&world).await;
    append(&world, &tenant, 10, 0..1).await;
    let before = world.events(&tenant).await;
    match begin(&world.store, &tenant, 100, all_before(50)).await {
        Err(Error::RetentionBlocked(by)) => {
            assert_eq!(by.len(), 1);
            assert_eq!((by[0].kind, by[0].name.as_str()), (ConsumerKind::Announcer, "announcer"));
            assert_eq!((by[0].cursor.as_str(), by[0].expires_at), (before[3].cursor.as_str(), None));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(step(&world.store, &tenant, 100).await, PruneStep::Idle);
    assert_eq!(world.events(&tenant).await, before);
    // What the announcer has read may go.
    let request = PruneRequest { max_events: 4, ..all_before(50) };
    assert_eq!(begin(&world.store, &tenant, 100, request).await.unwrap().deleted, 4);
}

async fn a_prune_that_would_pass_a_lease_deletes_nothing_and_names_it(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..6).await;
    announced(&world).await;
    let before = world.events(&tenant).await;
    lease(&world, &tenant, "slow", &before[5], 500).await;
    lease(&world, &tenant, "slower", &before[4], 600).await;
    lease(&world, &tenant, "quick", &before[9], 500).await;
    let before = world.events(&tenant).await;
    match begin(&world.store, &tenant, 100, all_before(50)).await {
        Err(Error::RetentionBlocked(by)) => {
            let told: Vec<_> = by.iter().map(|b| (b.kind, b.name.as_str(), b.cursor.as_str(), b.expires_at)).collect();
            let expected = [("slower", &before[4], 600), ("slow", &before[5], 500)]
                .map(|(name, event, until)| (ConsumerKind::Lease, name, event.cursor.as_str(), Some(at(until))));
            assert_eq!(told, expected, "the furthest behind first");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(world.events(&tenant).await, before);
    // Up to where the last one stands, nobody is passed.
    let request = PruneRequest { max_events: 5, ..all_before(50) };
    assert_eq!(begin(&world.store, &tenant, 100, request).await.unwrap().deleted, 5);
}

async fn a_prune_on_schedule_goes_as_far_as_consumers_allow(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..6).await;
    announced(&world).await;
    let before = world.events(&tenant).await;
    lease(&world, &tenant, "slow", &before[5], 500).await;
    let held = world.store.retention_held(tenant.id, at(100), at(50)).await.unwrap();
    assert_eq!((held.by_announcer, held.by_lease), (false, true));
    let request = PruneRequest { blocked: WhenBlocked::StopThere, ..all_before(50) };
    let planned = begin(&world.store, &tenant, 100, request).await.unwrap();
    assert_eq!((planned.deleted, planned.has_more, &planned.floor_cursor), (6, true, &before[5].cursor));
    finish(&world.store, &tenant, 100).await.unwrap();
    assert_eq!(world.since(&tenant, &before[5].cursor).await[..4], before[6..], "the consumer reads on");
    let blocked = begin(&world.store, &tenant, 100, request).await.unwrap();
    assert_eq!((blocked.deleted, &blocked.floor_cursor), (0, &before[5].cursor));
    let held = world.store.retention_held(tenant.id, at(100), at(5)).await.unwrap();
    assert_eq!((held.by_announcer, held.by_lease), (false, false), "nothing is that old");
}

async fn a_prune_on_schedule_leaves_what_only_tells_of_prunes(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 1, 0..3).await;
    let on_schedule = PruneRequest { blocked: WhenBlocked::StopThere, ..all_before(100) };
    for (second, deleted) in [(10, 7), (20, 0), (30, 0)] {
        announced(&world).await;
        let begun = begin(&world.store, &tenant, second, on_schedule).await.unwrap();
        assert_eq!(begun.deleted, deleted, "at {second}");
        finish(&world.store, &tenant, second).await;
    }
    assert_eq!(told(&world, &tenant).await.len(), 1);
    // By hand it goes, and so it does with others.
    assert_eq!(
        begin(&world.store, &tenant, 40, PruneRequest { dry_run: true, ..all_before(100) }).await.unwrap().deleted,
        1
    );
    append(&world, &tenant, 50, 0..1).await;
    announced(&world).await;
    assert_eq!(begin(&world.store, &tenant, 60, on_schedule).await.unwrap().deleted, 2);
}

async fn an_expired_lease_does_not_block(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..3).await;
    announced(&world).await;
    let before = world.events(&tenant).await;
    lease(&world, &tenant, "slow", &before[0], 100).await;
    assert!(begin(&world.store, &tenant, 99, all_before(50)).await.is_err());
    assert!(!world.store.retention_held(tenant.id, at(100), at(50)).await.unwrap().by_lease);
    assert_eq!(begin(&world.store, &tenant, 100, all_before(50)).await.unwrap().deleted, 7);
    assert!(finish(&world.store, &tenant, 100).await.is_some_and(|(pruned, _)| pruned.deleted == 7));
}

async fn a_prune_cut_off_between_batches_is_ended_by_another_and_told_once(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..2496).await;
    announced(&world).await;
    let planned = begin(&world.store, &tenant, 100, all_before(50)).await.unwrap();
    assert_eq!(planned.deleted, 2500);
    assert_eq!(step(&world.store, &tenant, 100).await, PruneStep::More);
    let left = world.raw().await.number("SELECT count(*) FROM event").await;
    assert_eq!(left, 2500 - PRUNE_BATCH);
    assert_eq!(told(&world, &tenant).await, []);

    // The one that began it is gone; another finds it by the table alone.
    let other = second_server(&world).await;
    assert_eq!(other.prunes_pending().await.unwrap(), [tenant.id]);
    assert_eq!(finish(&other, &tenant, 101).await.unwrap(), (planned.clone(), false));
    assert_eq!(other.prunes_pending().await.unwrap(), []);
    let events = told(&world, &tenant).await;
    assert_eq!(events.len(), 1);
    assert_eq!(payload(&events[0]), serde_json::json!({ "count": 2500, "throughCursor": planned.floor_cursor }));
    assert_eq!(world.events(&tenant).await, events);
}

async fn a_prune_waits_for_the_one_under_way(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..3).await;
    announced(&world).await;
    let first = begin(&world.store, &tenant, 100, PruneRequest { max_events: 2, ..all_before(50) }).await.unwrap();
    assert_eq!(first.deleted, 2);
    let second = world.store.prune_begin(tenant.change_at(100), all_before(50)).await;
    assert!(matches!(second, Err(Error::Repeat(_))), "{second:?}");
    finish(&world.store, &tenant, 100).await.unwrap();
    announced(&world).await;
    assert_eq!(begin(&world.store, &tenant, 100, all_before(50)).await.unwrap().deleted, 5);
}

async fn prunes_at_once_delete_once(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..2996).await;
    announced(&world).await;
    let other = second_server(&world).await;
    let start = Arc::new(Barrier::new(2));
    let mut tasks = JoinSet::new();
    for store in [world.store.clone(), other] {
        let (start, tenant) = (Arc::clone(&start), tenant.clone());
        tasks.spawn(async move {
            start.wait().await;
            let deleted = loop {
                match store.prune_begin(tenant.change_at(100), all_before(50)).await {
                    Err(Error::Repeat(_)) => drop(finish(&store, &tenant, 100).await),
                    done => break now(done.unwrap()).deleted,
                }
            };
            finish(&store, &tenant, 100).await;
            deleted
        });
    }
    let mut deleted = tasks.join_all().await;
    deleted.sort_unstable();
    assert_eq!(deleted, [0, 3000]);
    let events = told(&world, &tenant).await;
    assert_eq!(events.iter().map(|e| payload(e)["count"].as_i64()).collect::<Vec<_>>(), [Some(3000)]);
    assert_eq!(world.events(&tenant).await, events);
}

async fn a_lease_that_appears_in_the_middle_stops_the_prune(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..2996).await;
    announced(&world).await;
    let scan = world.store.journal_scan(0, 3000).await.unwrap().events;
    begin(&world.store, &tenant, 100, all_before(50)).await.unwrap();
    assert_eq!(step(&world.store, &tenant, 100).await, PruneStep::More);
    lease(&world, &tenant, "late", &scan[2249], 500).await;
    let (pruned, stopped) = finish(&world.store, &tenant, 100).await.unwrap();
    assert!(stopped && pruned.has_more);
    assert_eq!((pruned.deleted, &pruned.floor_cursor), (2250, &scan[2249].cursor));
    assert_eq!(world.since(&tenant, &scan[2249].cursor).await[..750], scan[2250..], "the late one has lost nothing");
    assert_eq!(payload(&told(&world, &tenant).await[0])["count"], 2250);
    assert_eq!(world.store.prunes_pending().await.unwrap(), []);
}

async fn a_lapsed_lease_that_is_renewed_in_the_middle_is_not_passed(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..1996).await;
    announced(&world).await;
    let scan = world.store.journal_scan(0, 3000).await.unwrap().events;
    lease(&world, &tenant, "lapsed", &scan[1499], 90).await;
    lease(&world, &tenant, "lost", &scan[9], 90).await;
    begin(&world.store, &tenant, 100, all_before(50)).await.unwrap();
    assert_eq!(step(&world.store, &tenant, 100).await, PruneStep::More);
    lease(&world, &tenant, "lapsed", &scan[1499], 500).await;
    let lost = Cursor::decode(&scan[9].cursor).unwrap();
    let refused = world.store.lease_put(tenant.change(), "lost".into(), lost, at(500)).await;
    assert!(matches!(refused, Err(Error::CursorBelowFloor { .. })), "{refused:?}");
    let (pruned, stopped) = finish(&world.store, &tenant, 100).await.unwrap();
    assert_eq!((pruned.deleted, stopped), (1500, true));
}

async fn a_batch_deletes_nothing_beyond_what_was_exported(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..6).await;
    announced(&world).await;
    let before = world.events(&tenant).await;
    begin(&world.store, &tenant, 100, all_before(50)).await.unwrap();
    for (upto, left) in [(0, 10), (before[2].sequence, 7), (before[1].sequence, 7), (before[8].sequence, 1)] {
        assert_eq!(world.store.prune_step(tenant.change_at(100), upto).await.unwrap(), PruneStep::More);
        assert_eq!(world.events(&tenant).await, before[10 - left..]);
    }
    let end = world.store.prune_step(tenant.change_at(100), before[9].sequence).await.unwrap();
    assert!(matches!(end, PruneStep::Ended { pruned, stopped: false } if pruned.deleted == 10));
}

async fn other_tenants_are_untouched(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    for n in 0..6 {
        append(&world, if n % 2 == 0 { &tenant } else { &other }, 10, n..n + 1).await;
    }
    announced(&world).await;
    let theirs = world.events(&other).await;
    lease(&world, &other, "slow", &theirs[0], 500).await;
    let theirs = world.events(&other).await;
    assert_eq!(begin(&world.store, &tenant, 100, all_before(50)).await.unwrap().deleted, 7);
    finish(&world.store, &tenant, 100).await.unwrap();
    assert_eq!(world.events(&other).await, theirs);
    let origin = world.store.journal_cursor(other.id, 0);
    assert_eq!(world.since(&other, &origin).await, theirs, "their floor has not moved");
    assert_eq!(told(&world, &other).await, []);
    assert_eq!(world.store.retention_state(other.id).await.unwrap().floor, 0);
}

async fn cursors_below_the_floor_are_refused_on_every_read(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..3).await;
    append(&world, &tenant, 60, 3..5).await;
    announced(&world).await;
    let before = world.events(&tenant).await;
    begin(&world.store, &tenant, 100, all_before(50)).await.unwrap();
    finish(&world.store, &tenant, 100).await.unwrap();
    let old = Cursor::decode(&before[2].cursor).unwrap();
    let filters = [
        query(10),
        EventQuery { prefixes: vec!["task.".into()], ..query(10) },
        EventQuery { entity_type: Some("task".into()), entity_id: Some("4".into()), ..query(10) },
    ];
    for filter in filters {
        for start in [Start::After(old), Start::Before(old)] {
            let read = world.store.event_page(tenant.id, EventQuery { start, ..filter.clone() }).await;
            let floor = &before[6].cursor;
            assert!(matches!(&read, Err(Error::CursorBelowFloor { floor: f }) if f == floor), "{start:?}: {read:?}");
        }
        // Without a position of its own a reader begins at what is retained.
        for start in [Start::First, Start::Since(at(0)), Start::Tail] {
            let read = world.page(&tenant, EventQuery { start, ..filter.clone() }).await;
            assert!(read.items.iter().any(|e| e.entity_id == "4"), "{start:?}: {:?}", read.items);
        }
    }
}

/// A reader that asks again and again while events go from under it.
async fn a_page_read_during_a_prune_is_right_or_refused(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..4996).await;
    announced(&world).await;
    let all: Arc<[Event]> = world.store.journal_scan(0, 5000).await.unwrap().events.into();
    let mut readers = JoinSet::new();
    let (ended, end) = tokio::sync::watch::channel(false);
    for n in 0..3 {
        let (store, tenant, all, end) = (world.store.clone(), tenant.clone(), Arc::clone(&all), end.clone());
        readers.spawn(async move {
            let (mut right, mut refused) = (0, 0);
            for from in (n..4900).step_by(37).cycle() {
                if *end.borrow() {
                    break;
                }
                match store.event_page(tenant.id, EventQuery { start: after(&all[from].cursor), ..query(20) }).await {
                    Ok(page) => {
                        let seqs = |events: &[Event]| events.iter().map(|e| e.sequence).collect::<Vec<_>>();
                        assert_eq!(seqs(&page.items), seqs(&all[from + 1..from + 21]), "a page with a hole");
                        right += 1;
                    }
                    Err(Error::CursorBelowFloor { .. }) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            (right, refused)
        });
    }
    for most in 1..=4 {
        let request = PruneRequest { max_events: 1000, ..all_before(50) };
        assert_eq!(begin(&world.store, &tenant, 100, request).await.unwrap().deleted, 1000, "prune {most}");
        finish(&world.store, &tenant, 100).await.unwrap();
        announced(&world).await;
    }
    ended.send(true).unwrap();
    readers.join_all().await;
    assert_eq!(told(&world, &tenant).await.len(), 4);
}

fn keyed(change: Change) -> Change {
    Change { idempotency: Some(Idempotency { key: "k-1".into(), fingerprint: [7; 32] }), ..change }
}

async fn a_keyed_prune_is_made_once(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..6).await;
    announced(&world).await;
    let request = PruneRequest { max_events: 3, ..all_before(50) };
    let first = now(world.store.prune_begin(keyed(tenant.change_at(100)), request).await.unwrap());
    finish(&world.store, &tenant, 100).await.unwrap();
    let left = world.events(&tenant).await;
    match world.store.prune_begin(keyed(tenant.change_at(101)), request).await.unwrap() {
        Changed::Before(body) => assert_eq!(serde_json::from_str::<JournalPruned>(&body).unwrap(), first),
        other @ Changed::Now(_) => panic!("{other:?}"),
    }
    assert_eq!(step(&world.store, &tenant, 101).await, PruneStep::Idle);
    assert_eq!(world.events(&tenant).await, left);
}

async fn a_keyed_prune_that_was_stopped_keeps_what_it_did(world: World) {
    let tenant = world.tenant().await;
    append(&world, &tenant, 10, 0..6).await;
    announced(&world).await;
    let events = world.events(&tenant).await;
    let planned = now(world.store.prune_begin(keyed(tenant.change_at(100)), all_before(50)).await.unwrap());
    assert_eq!(planned.deleted, 10);
    lease(&world, &tenant, "late", &events[3], 500).await;
    let step = world.store.prune_step(keyed(tenant.change_at(100)), i64::MAX).await.unwrap();
    let PruneStep::Ended { pruned, stopped: true } = step else { panic!("{step:?}") };
    assert_eq!((pruned.deleted, &pruned.floor_cursor), (4, &events[3].cursor));
    match world.store.prune_begin(keyed(tenant.change_at(101)), all_before(50)).await.unwrap() {
        Changed::Before(body) => assert_eq!(serde_json::from_str::<JournalPruned>(&body).unwrap(), pruned),
        other @ Changed::Now(_) => panic!("{other:?}"),
    }
}

async fn tenants_are_listed_in_order(world: World) {
    assert_eq!(world.store.tenant_ids(None, 10).await.unwrap(), []);
    let mut made = vec![world.tenant().await.id, world.tenant().await.id, world.tenant().await.id];
    made.sort_by_key(|id| id.uuid());
    assert_eq!(world.store.tenant_ids(None, 10).await.unwrap(), made);
    assert_eq!(world.store.tenant_ids(None, 2).await.unwrap(), made[..2]);
    assert_eq!(world.store.tenant_ids(Some(made[1]), 2).await.unwrap(), made[2..]);
    world.store.tenant_exists(made[0]).await.unwrap();
    crate::world::not_found(world.store.tenant_exists(courant_api::TenantId(uuid::Uuid::from_u128(7))).await);
}
