//! Reading by cursor: order, pages without gaps, the tail, and cursors that do not belong here.

use courant_api::Cursor;
use courant_store::{Error, EventDraft, EventQuery, Start};

use crate::cases;
use crate::world::{World, after, at, draft, entities, id, query};

cases![
    events_come_in_the_order_of_their_appends,
    pages_of_any_size_walk_the_journal_without_a_gap,
    the_cursor_of_every_event_continues_right_after_it,
    a_page_without_a_match_moves_its_cursor_past_what_it_left_out,
    the_tail_is_the_newest_matching_events,
    a_tail_longer_than_the_journal_is_the_whole_journal,
    cursors_of_another_journal_or_tenant_or_of_the_future_are_refused,
    cursors_below_the_floor_are_refused_with_it,
    a_walk_over_its_budget_goes_on_where_it_stopped,
    one_event_is_found_by_its_id,
    the_scan_sees_every_tenant_in_pages,
    a_commit_with_events_wakes_and_one_without_does_not,
];

async fn events_come_in_the_order_of_their_appends(world: World) {
    let tenant = world.tenant().await;
    let before = world.end(&tenant).await;
    let first =
        world.append(&tenant, vec![draft("task.made", "a"), draft("note.made", "b"), draft("task.made", "c")]).await;
    let second = world.append(&tenant, vec![draft("task.made", "d")]).await;
    let places: Vec<_> = first.iter().chain(&second).map(|o| o.seq).collect();
    assert!(places.is_sorted() && places.windows(2).all(|w| w[0] != w[1]), "{places:?}");

    let events = world.since(&tenant, &before).await;
    assert_eq!(entities(&events), ["a", "b", "c", "d"]);
    assert_eq!(events.iter().map(|e| e.sequence).collect::<Vec<_>>(), places);
    assert_eq!(
        events.iter().map(|e| e.id).collect::<Vec<_>>(),
        first.iter().chain(&second).map(|o| o.id).collect::<Vec<_>>()
    );
}

async fn pages_of_any_size_walk_the_journal_without_a_gap(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    for n in 0..20 {
        world.append(if n % 3 == 0 { &other } else { &tenant }, vec![draft("task.made", n.to_string())]).await;
    }
    let all = world.events(&tenant).await;
    assert_eq!(all.len(), 4 + 13);
    for limit in [1, 2, 5, 16, 17, 18, 1000] {
        let (mut walked, mut start) = (Vec::new(), Start::First);
        loop {
            let page = world.page(&tenant, EventQuery { start, ..query(limit) }).await;
            assert!(page.items.len() <= usize::try_from(limit).unwrap());
            walked.extend(page.items);
            assert_eq!(
                page.has_more,
                walked.len() < all.len(),
                "after {} of {}, in pages of {limit}",
                walked.len(),
                all.len()
            );
            start = after(&page.next_cursor);
            if !page.has_more {
                assert_eq!(world.since(&tenant, &page.next_cursor).await, []);
                break;
            }
        }
        assert_eq!(walked, all, "in pages of {limit}");
    }
}

async fn the_cursor_of_every_event_continues_right_after_it(world: World) {
    let tenant = world.tenant().await;
    world.append(&tenant, (0..10).map(|n| draft("task.made", n.to_string())).collect()).await;
    let all = world.events(&tenant).await;
    for (n, event) in all.iter().enumerate() {
        assert_eq!(world.since(&tenant, &event.cursor).await, all[n + 1..]);
        assert_eq!(world.store.journal_cursor(tenant.id, event.sequence), event.cursor);
    }
}

async fn a_page_without_a_match_moves_its_cursor_past_what_it_left_out(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    world.append(&tenant, (0..10).map(|n| draft("task.made", n.to_string())).collect()).await;
    world.append(&other, vec![draft("task.made", "theirs")]).await;
    let rare = EventQuery { prefixes: vec!["rare.".into()], ..query(5) };
    let page = world.page(&tenant, rare.clone()).await;
    assert!(page.items.is_empty() && !page.has_more);
    assert_eq!(page.next_cursor, world.store.journal_cursor(tenant.id, world.store.journal_horizon().await.unwrap()));

    // The reader then sees what comes, and nothing of what it passed.
    world.append(&tenant, vec![draft("task.made", "x"), draft("rare.made", "y"), draft("task.made", "z")]).await;
    let next = world.page(&tenant, EventQuery { start: after(&page.next_cursor), ..rare }).await;
    assert_eq!(entities(&next.items), ["y"]);
    assert_eq!(entities(&world.since(&tenant, &page.next_cursor).await), ["x", "y", "z"]);
    assert_eq!(world.since(&tenant, &next.next_cursor).await, []);
}

async fn the_tail_is_the_newest_matching_events(world: World) {
    let tenant = world.tenant().await;
    for n in 0..12 {
        world.append(&tenant, vec![draft(if n % 3 == 0 { "rare.made" } else { "task.made" }, n.to_string())]).await;
    }
    let tail = |limit, q: EventQuery| world.page(&tenant, EventQuery { start: Start::Tail, limit, ..q });
    let page = tail(3, query(0)).await;
    assert_eq!(entities(&page.items), ["9", "10", "11"]);
    assert!(!page.has_more);
    assert_eq!(world.since(&tenant, &page.next_cursor).await, []);

    let rare = EventQuery { prefixes: vec!["rare.".into()], ..query(0) };
    assert_eq!(entities(&tail(2, rare.clone()).await.items), ["6", "9"]);
    assert_eq!(entities(&tail(9, rare).await.items), ["0", "3", "6", "9"]);
    let one = EventQuery { entity_type: Some("task".into()), entity_id: Some("7".into()), ..query(0) };
    assert_eq!(entities(&tail(2, one).await.items), ["7"]);
}

async fn a_tail_longer_than_the_journal_is_the_whole_journal(world: World) {
    let (tenant, empty) = (world.tenant().await, courant_api::TenantId(id(1).uuid()));
    world.append(&tenant, vec![draft("task.made", "a")]).await;
    let tail = EventQuery { start: Start::Tail, ..query(1000) };
    assert_eq!(world.page(&tenant, tail.clone()).await.items, world.events(&tenant).await);

    let page = world.store.event_page(empty, tail).await.unwrap();
    assert!(page.items.is_empty() && !page.has_more);
    let page =
        world.store.event_page(empty, EventQuery { start: after(&page.next_cursor), ..query(10) }).await.unwrap();
    assert!(page.items.is_empty() && !page.has_more);
}

async fn cursors_of_another_journal_or_tenant_or_of_the_future_are_refused(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let elsewhere = world.ground.world().await;
    let own = Cursor::decode(&world.end(&tenant).await).unwrap();
    let foreign = [
        ("another tenant's", Cursor::decode(&world.end(&other).await).unwrap()),
        ("another database's", Cursor::decode(&elsewhere.store.journal_cursor(tenant.id, own.seq)).unwrap()),
        ("another incarnation's", Cursor { incarnation: own.incarnation + 1, ..own }),
        ("the next position's", Cursor { seq: own.seq + 1, ..own }),
        ("a far position's", Cursor { seq: i64::MAX, ..own }),
    ];
    for (whose, cursor) in foreign {
        let page = world.store.event_page(tenant.id, EventQuery { start: Start::After(cursor), ..query(10) }).await;
        assert!(matches!(page, Err(Error::CursorFromOtherJournal)), "{whose}: {page:?}");
    }
    // The journal's end is every tenant's: an event of somebody else makes the next position a good one.
    world.append(&other, vec![draft("task.made", "theirs")]).await;
    let next = world.store.journal_cursor(tenant.id, world.store.journal_horizon().await.unwrap());
    assert_eq!(world.since(&tenant, &next).await, []);
}

async fn cursors_below_the_floor_are_refused_with_it(world: World) {
    let tenant = world.tenant().await;
    let all = world.events(&tenant).await;
    world.append(&tenant, vec![draft("task.made", "a")]).await;
    let floor = all[2].sequence;
    let raw = world.raw().await;
    raw.raise_floor(floor).await;
    raw.run(&format!("DELETE FROM event WHERE seq <= {floor}")).await.unwrap();

    let below = EventQuery { start: after(&all[1].cursor), ..query(10) };
    let page = world.store.event_page(tenant.id, below).await;
    assert!(matches!(&page, Err(Error::CursorBelowFloor { floor }) if *floor == all[2].cursor), "{page:?}");
    let rest = world.since(&tenant, &all[2].cursor).await;
    assert_eq!(rest.first(), all.get(3));
    assert_eq!(world.events(&tenant).await, rest, "without a cursor reading begins at the first retained event");

    // With every event gone the floor is where the journal ends, and no cursor at it lies ahead.
    let end = world.end(&tenant).await;
    let last = rest.last().unwrap().sequence;
    raw.raise_floor(last).await;
    raw.run(&format!("DELETE FROM event WHERE seq <= {last}")).await.unwrap();
    assert_eq!(world.since(&tenant, &end).await, []);
    assert_eq!(world.store.journal_horizon().await.unwrap(), last);
    world.append(&tenant, vec![draft("task.made", "b")]).await;
    assert_eq!(entities(&world.since(&tenant, &end).await), ["b"]);
}

async fn a_walk_over_its_budget_goes_on_where_it_stopped(world: World) {
    const BATCHES: usize = 82;
    const BATCH: usize = 500;
    const BUDGET: i64 = 40_000;
    let tenant = world.tenant().await;
    let begin = world.end(&tenant).await;
    world.append(&tenant, vec![draft("rare.made", "early")]).await;
    let bulk = vec![draft("bulk.made", "b"); BATCH];
    for _ in 0..BATCHES {
        world.append(&tenant, bulk.clone()).await;
    }
    world.append(&tenant, vec![draft("rare.made", "late")]).await;
    // Kinds of entities have no index: the whole journal is walked.
    let rare = EventQuery { entity_type: Some("rare".into()), ..query(10) };

    let first = world.page(&tenant, EventQuery { start: after(&begin), ..rare.clone() }).await;
    assert_eq!(entities(&first.items), ["early"]);
    assert!(first.has_more, "a statement that looked at all it may proves nothing about the rest");

    let early = first.items[0].clone();
    let empty = world.page(&tenant, EventQuery { start: after(&early.cursor), ..rare.clone() }).await;
    assert!(empty.items.is_empty() && empty.has_more);
    let reached = Cursor::decode(&empty.next_cursor).unwrap().seq;
    assert_eq!(reached, early.sequence + BUDGET);
    let last = world.page(&tenant, EventQuery { start: after(&empty.next_cursor), ..rare.clone() }).await;
    assert_eq!(entities(&last.items), ["late"]);
    assert!(!last.has_more);

    let newest = world.page(&tenant, EventQuery { start: Start::Tail, limit: 2, ..rare }).await;
    assert_eq!(entities(&newest.items), ["early", "late"]);
    let by_kind = EventQuery { entity_type: Some("rare".into()), start: Start::Tail, ..query(2) };
    assert_eq!(world.page(&tenant, by_kind).await.items, newest.items);
}

async fn one_event_is_found_by_its_id(world: World) {
    let tenant = world.tenant().await;
    let appended = world.append(&tenant, vec![draft("task.made", "a"), draft("task.made", "b")]).await;
    let event = world.store.event_get(tenant.id, appended[1].id).await.unwrap();
    assert_eq!((event.entity_id.as_str(), event.sequence), ("b", appended[1].seq));
    assert_eq!(Some(&event), world.events(&tenant).await.last());
    assert!(matches!(world.store.event_get(tenant.id, id(9)).await, Err(Error::NotFound("event"))));
}

async fn the_scan_sees_every_tenant_in_pages(world: World) {
    let (one, two) = (world.tenant().await, world.tenant().await);
    let from = world.store.journal_horizon().await.unwrap();
    for n in 0..5 {
        world.append(if n % 2 == 0 { &one } else { &two }, vec![draft("task.made", n.to_string())]).await;
    }
    let first = world.store.journal_scan(from, 3).await.unwrap();
    assert_eq!((entities(&first.events), first.has_more), (vec!["0", "1", "2"], true));
    assert_eq!(first.next, first.events[2].sequence);
    assert_eq!(first.events[1].cursor, world.store.journal_cursor(two.id, first.events[1].sequence));
    let second = world.store.journal_scan(first.next, 2).await.unwrap();
    assert_eq!((entities(&second.events), second.has_more), (vec!["3", "4"], false));
    let end = world.store.journal_scan(second.next, 3).await.unwrap();
    assert_eq!((end.events.len(), end.next, end.has_more), (0, second.next, false));
}

async fn a_commit_with_events_wakes_and_one_without_does_not(world: World) {
    let tenant = world.tenant().await;
    let mut appended = world.store.appended();
    appended.mark_unchanged();
    world.store.server_register(at(0)).await.unwrap();
    let nowhere = EventDraft { workspace_id: Some(id(5).uuid().into()), ..draft("task.made", "x") };
    world.store.event_append(tenant.change(), vec![nowhere]).await.unwrap_err();
    assert!(!appended.has_changed().unwrap());
    world.append(&tenant, vec![draft("task.made", "a")]).await;
    assert!(appended.has_changed().unwrap());
}
