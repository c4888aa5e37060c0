//! Leases: which cursors they take, how many there may be, and how a journal's state shows them.

use courant_api::operations::{ConsumerKind, MAX_LEASES};
use courant_api::{Cursor, Event};
use courant_store::{Error, PruneRequest, WhenBlocked};
use serde_json::json;

use crate::cases;
use crate::retention::announced;
use crate::world::{Tenant, World, at, draft, not_found, payload, types};

cases![
    a_lease_moves_in_both_directions_and_is_given_up,
    a_lease_takes_the_cursors_that_reading_takes,
    a_lease_below_the_floor_is_refused_with_it,
    leases_are_bounded_and_expired_ones_make_room,
    a_journals_state_shows_its_consumers_and_their_lag,
    a_journals_state_shows_nothing_of_other_tenants,
    the_database_says_what_it_is,
];

fn cursor(event: &Event) -> Cursor {
    Cursor::decode(&event.cursor).unwrap()
}

async fn append(world: &World, tenant: &Tenant, second: i64, what: &str) {
    world.store.event_append(tenant.change_at(second), vec![draft("task.made", what)]).await.unwrap();
}

async fn a_lease_moves_in_both_directions_and_is_given_up(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let events = world.events(&tenant).await;
    for (n, until) in [(1, 100), (3, 200), (0, 150)] {
        let put =
            world.store.lease_put(tenant.change(), "billing".into(), cursor(&events[n]), at(until)).await.unwrap();
        assert_eq!((put.name.as_str(), &put.cursor, put.expires_at), ("billing", &events[n].cursor, at(until)));
        let status = world.store.journal_status(tenant.id, at(0), None).await.unwrap();
        assert_eq!((&status.consumers[1].cursor, status.consumers[1].expires_at), (&events[n].cursor, Some(at(until))));
    }
    not_found(world.store.lease_delete(other.change(), "billing".into()).await);
    // A lease that has ended was not waited for: the next one is told again.
    world.store.lease_put(tenant.change_at(160), "billing".into(), cursor(&events[3]), at(300)).await.unwrap();
    world.store.lease_delete(tenant.change(), "billing".into()).await.unwrap();
    not_found(world.store.lease_delete(tenant.change(), "billing".into()).await);
    let told = world.since(&tenant, &events[3].cursor).await;
    assert_eq!(types(&told), ["consumer.registered", "consumer.registered", "consumer.released"]);
    let released = json!({ "name": "billing", "expiresAt": at(300) });
    assert_eq!((payload(&told[2]), told[2].workspace_id, told[2].entity_id.as_str()), (released, None, "billing"));
}

async fn a_lease_takes_the_cursors_that_reading_takes(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let (own, theirs) = (world.events(&tenant).await, world.events(&other).await);
    let ahead = Cursor { seq: cursor(&theirs[3]).seq + 1000, ..cursor(&own[0]) };
    for foreign in [cursor(&theirs[0]), ahead] {
        let refused = world.store.lease_put(tenant.change(), "c".into(), foreign, at(100)).await;
        assert!(matches!(refused, Err(Error::CursorFromOtherJournal)), "{refused:?}");
    }
    let origin = Cursor::decode(&world.store.journal_cursor(tenant.id, 0)).unwrap();
    world.store.lease_put(tenant.change(), "c".into(), origin, at(100)).await.unwrap();
}

async fn a_lease_below_the_floor_is_refused_with_it(world: World) {
    let tenant = world.tenant().await;
    announced(&world).await;
    let events = world.events(&tenant).await;
    let request = PruneRequest { before: at(50), max_events: 2, dry_run: false, blocked: WhenBlocked::Refuse };
    world.store.prune_begin(tenant.change_at(100), request).await.unwrap();
    world.store.prune_step(tenant.change_at(100), i64::MAX).await.unwrap();
    let refused = world.store.lease_put(tenant.change(), "c".into(), cursor(&events[0]), at(500)).await;
    assert!(matches!(&refused, Err(Error::CursorBelowFloor { floor }) if *floor == events[1].cursor), "{refused:?}");
    world.store.lease_put(tenant.change(), "c".into(), cursor(&events[1]), at(500)).await.unwrap();
}

async fn leases_are_bounded_and_expired_ones_make_room(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let at_floor = cursor(&world.events(&tenant).await[3]);
    let values: Vec<_> = (0..MAX_LEASES).map(|n| format!("('n{n}')")).collect();
    let until = at(100).micros();
    let fill = format!(
        "INSERT INTO consumer_lease SELECT t.id, n.name, {seq}, {until}, 0
        FROM tenant t, (SELECT column1 AS name FROM (VALUES {names}) v) n WHERE t.id = (
            SELECT e.tenant_id FROM event e WHERE e.seq = {seq})",
        seq = at_floor.seq,
        names = values.join(", ")
    );
    world.raw().await.run(&fill).await.unwrap();
    let put = async |second, name: &str| {
        world.store.lease_put(tenant.change_at(second), name.into(), at_floor, at(1000)).await.map(|_| ())
    };
    crate::world::conflict(put(99, "one-more").await);
    put(99, "n7").await.expect("one that is there may move");
    let theirs = cursor(&world.events(&other).await[0]);
    world.store.lease_put(other.change(), "one-more".into(), theirs, at(1000)).await.unwrap();
    put(100, "one-more").await.expect("the others have expired");
    let left = world.store.journal_status(tenant.id, at(100), None).await.unwrap().consumers;
    assert_eq!(left.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["announcer", "n7", "one-more"]);
}

async fn a_journals_state_shows_its_consumers_and_their_lag(world: World) {
    let tenant = world.tenant().await;
    announced(&world).await;
    append(&world, &tenant, 10, "a").await;
    append(&world, &tenant, 40, "b").await;
    let events = world.events(&tenant).await;
    for (name, event, until) in [("behind", 4, 500), ("caught-up", 5, 500), ("lapsed", 3, 60)] {
        world.store.lease_put(tenant.change_at(50), name.into(), cursor(&events[event]), at(until)).await.unwrap();
    }
    let head = world.events(&tenant).await.pop().unwrap();
    let status = world.store.journal_status(tenant.id, at(100), Some(70_000_000)).await.unwrap();
    let shown: Vec<_> = status
        .consumers
        .iter()
        .map(|c| (c.kind, c.name.as_str(), c.cursor.as_str(), c.lag_seconds, c.blocks_retention))
        .collect();
    let (announcer, lease) = (ConsumerKind::Announcer, ConsumerKind::Lease);
    let cursors: Vec<_> = events.iter().map(|e| e.cursor.as_str()).collect();
    let expected = [
        (announcer, "announcer", cursors[3], 90, true),
        (lease, "behind", cursors[4], 60, false),
        (lease, "caught-up", cursors[5], 50, false),
        (lease, "lapsed", cursors[3], 90, false),
    ];
    assert_eq!(shown, expected);
    assert_eq!((status.head.sequence, &status.head.cursor), (head.sequence, &head.cursor));
    assert_eq!((&status.horizon, status.distance), (&status.head, 0));
    assert_eq!(status.floor_cursor, world.store.journal_cursor(tenant.id, 0));
    assert_eq!((status.oldest_event_at, status.retention_seconds), (Some(at(0)), Some(70)));
    assert_eq!((status.pruning, status.holders.len(), status.appends_waiting), (false, 0, 0));

    announced(&world).await;
    let status = world.store.journal_status(tenant.id, at(100), None).await.unwrap();
    assert_eq!((status.consumers[0].lag_seconds, status.consumers[0].blocks_retention), (0, false));
    let request = PruneRequest { before: at(5), max_events: 2, dry_run: false, blocked: WhenBlocked::Refuse };
    world.store.prune_begin(tenant.change_at(100), request).await.unwrap();
    assert!(world.store.journal_status(tenant.id, at(100), None).await.unwrap().pruning);
    world.store.prune_step(tenant.change_at(100), i64::MAX).await.unwrap();
    let status = world.store.journal_status(tenant.id, at(100), None).await.unwrap();
    assert_eq!((status.floor_cursor.as_str(), status.pruning), (cursors[1], false));
}

async fn a_journals_state_shows_nothing_of_other_tenants(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    announced(&world).await;
    append(&world, &other, 10, "theirs").await;
    let theirs = world.events(&other).await;
    world.store.lease_put(other.change(), "theirs".into(), cursor(&theirs[0]), at(500)).await.unwrap();
    let status = world.store.journal_status(tenant.id, at(100), Some(1_000_000)).await.unwrap();
    assert_eq!(status.consumers.len(), 1);
    assert_eq!((status.consumers[0].lag_seconds, status.consumers[0].blocks_retention), (0, false));
    let text = serde_json::to_string(&status).unwrap();
    assert!(!text.contains("theirs"), "{text}");
    for event in theirs {
        assert!(!text.contains(&event.cursor), "{text}");
    }
    assert!(!world.store.retention_held(tenant.id, at(100), at(50)).await.unwrap().by_announcer);
    assert!(world.store.retention_held(other.id, at(100), at(50)).await.unwrap().by_announcer);
}

async fn the_database_says_what_it_is(world: World) {
    let facts = world.store.database_facts().await.unwrap();
    assert_eq!((facts.schema, facts.unwritable), (11, None));
    if world.is_postgres() {
        assert!(facts.version.starts_with("PostgreSQL 1"), "{}", facts.version);
        assert_eq!(facts.session_timeouts.unwrap(), ["30s", "10s", "30s"]);
        assert!(facts.clock.is_some());
    } else {
        assert!(facts.version.starts_with("SQLite 3."), "{}", facts.version);
        assert_eq!((facts.session_timeouts, facts.clock), (None, None));
    }
}
