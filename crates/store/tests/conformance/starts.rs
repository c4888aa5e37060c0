//! Reading backwards from a cursor, and from a time.

use courant_api::Timestamp;
use courant_api::event::EventPage;
use courant_store::{EventQuery, Start};

use crate::cases;
use crate::world::{Tenant, World, after, at, draft, entities, query};

cases![
    walking_backwards_in_pages_of_any_size_gives_the_journal_reversed,
    a_page_before_a_cursor_continues_forwards_where_it_began,
    a_filtered_walk_backwards_finds_what_matches,
    a_backward_walk_over_its_budget_goes_on_where_it_stopped,
    reading_since_a_time_begins_with_the_first_event_at_or_after_it,
    a_time_that_runs_behind_its_neighbours_hides_no_event,
];

fn before(cursor: &str) -> Start {
    let Start::After(cursor) = after(cursor) else { unreachable!() };
    Start::Before(cursor)
}

async fn twenty(world: &World) -> Tenant {
    let tenant = world.tenant().await;
    let other = world.tenant().await;
    for n in 0..20 {
        let kind = if n % 4 == 0 { "rare.made" } else { "task.made" };
        world.append(if n % 5 == 4 { &other } else { &tenant }, vec![draft(kind, n.to_string())]).await;
    }
    tenant
}

/// Every event before `cursor`, newest first, in pages of `limit`.
async fn backwards(
    world: &World,
    tenant: &Tenant,
    filter: &EventQuery,
    cursor: &str,
    limit: i64,
) -> Vec<courant_api::Event> {
    let (mut walked, mut cursor) = (Vec::new(), cursor.to_owned());
    loop {
        let page = world.page(tenant, EventQuery { start: before(&cursor), limit, ..filter.clone() }).await;
        assert!(page.items.len() <= usize::try_from(limit).unwrap());
        assert_eq!(page.has_more, page.prev_cursor.is_some());
        walked.extend(page.items.into_iter().rev());
        match page.prev_cursor {
            Some(previous) => cursor = previous,
            None => return walked,
        }
    }
}

async fn walking_backwards_in_pages_of_any_size_gives_the_journal_reversed(world: World) {
    let tenant = twenty(&world).await;
    let mut all = world.events(&tenant).await;
    let last = all.pop().unwrap();
    all.reverse();
    for limit in [1, 2, 7, 18, 19, 20, 1000] {
        assert_eq!(backwards(&world, &tenant, &query(0), &last.cursor, limit).await, all, "in pages of {limit}");
    }
    let first = &all.last().unwrap().cursor;
    assert_eq!(backwards(&world, &tenant, &query(0), first, 5).await, []);
}

async fn a_page_before_a_cursor_continues_forwards_where_it_began(world: World) {
    let tenant = twenty(&world).await;
    let all = world.events(&tenant).await;
    for at in [0, 1, 7, all.len() - 1] {
        let page = world.page(&tenant, EventQuery { start: before(&all[at].cursor), ..query(3) }).await;
        assert_eq!(page.items, all[at.saturating_sub(3)..at]);
        assert_eq!(world.since(&tenant, &page.next_cursor).await, all[at..]);
    }
    // What other starts answer can be walked back from, too.
    let tail = world.page(&tenant, EventQuery { start: Start::Tail, ..query(4) }).await;
    let older = backwards(&world, &tenant, &query(0), tail.prev_cursor.as_ref().unwrap(), 6).await;
    assert_eq!(older.len() + tail.items.len(), all.len());
}

async fn a_filtered_walk_backwards_finds_what_matches(world: World) {
    let tenant = twenty(&world).await;
    let end = world.end(&tenant).await;
    let rare = EventQuery { prefixes: vec!["rare.".into()], ..query(0) };
    let one = EventQuery { entity_type: Some("rare".into()), entity_id: Some("8".into()), ..query(0) };
    for limit in [1, 2, 100] {
        assert_eq!(entities(&backwards(&world, &tenant, &rare, &end, limit).await), ["16", "12", "8", "0"]);
        assert_eq!(entities(&backwards(&world, &tenant, &one, &end, limit).await), ["8"]);
    }
}

async fn a_backward_walk_over_its_budget_goes_on_where_it_stopped(world: World) {
    let tenant = world.tenant().await;
    world.append(&tenant, vec![draft("rare.made", "early")]).await;
    let bulk = vec![draft("bulk.made", "b"); 500];
    for _ in 0..81 {
        world.append(&tenant, bulk.clone()).await;
    }
    let late = world.append(&tenant, vec![draft("rare.made", "late"), draft("bulk.made", "b")]).await;
    let rare = EventQuery { entity_type: Some("rare".into()), ..query(5) };
    let from = world.store.journal_cursor(tenant.id, late[0].seq);
    let page = world.page(&tenant, EventQuery { start: before(&from), ..rare.clone() }).await;
    assert!(page.items.is_empty() && page.has_more);
    let next = world.page(&tenant, EventQuery { start: before(&page.prev_cursor.unwrap()), ..rare.clone() }).await;
    assert_eq!(entities(&next.items), ["early"]);
    assert_eq!(entities(&backwards(&world, &tenant, &rare, &world.end(&tenant).await, 1).await), ["late", "early"]);
}

async fn reading_since_a_time_begins_with_the_first_event_at_or_after_it(world: World) {
    let tenant = world.tenant().await;
    let other = world.tenant().await;
    for second in (1000..3000).step_by(100) {
        world.store.event_append(other.change_at(second), vec![draft("task.made", "theirs")]).await.unwrap();
        world.store.event_append(tenant.change_at(second), vec![draft("task.made", second.to_string())]).await.unwrap();
    }
    let since = async |time: Timestamp| -> EventPage {
        world.page(&tenant, EventQuery { start: Start::Since(time), ..query(2) }).await
    };
    assert_eq!(entities(&since(at(1000)).await.items), ["1000", "1100"]);
    assert_eq!(entities(&since(at(1001)).await.items), ["1100", "1200"]);
    assert_eq!(entities(&since(at(1500)).await.items), ["1500", "1600"]);
    assert_eq!(entities(&since(at(1500).plus_micros(1)).await.items), ["1600", "1700"]);
    assert_eq!(entities(&since(at(2900)).await.items), ["2900"]);
    assert_eq!(since(Timestamp::from_micros(0)).await.items, world.events(&tenant).await[..2]);
    let nothing = since(at(2901)).await;
    assert!(nothing.items.is_empty() && !nothing.has_more);
    assert_eq!(nothing.next_cursor, world.end(&tenant).await);
}

async fn a_time_that_runs_behind_its_neighbours_hides_no_event(world: World) {
    let tenant = world.tenant().await;
    // Two servers' clocks and slow commits: times are out of order by up to half a minute.
    let times: Vec<i64> = (0..60).map(|n| 1000 + 10 * n + [0, 25, -30, 12][usize::try_from(n % 4).unwrap()]).collect();
    for second in &times {
        world
            .store
            .event_append(tenant.change_at(*second), vec![draft("task.made", second.to_string())])
            .await
            .unwrap();
    }
    let all = world.events(&tenant).await;
    for second in 990..1600 {
        let page = world.page(&tenant, EventQuery { start: Start::Since(at(second)), ..query(1) }).await;
        let first = all.iter().find(|e| e.occurred_at >= at(second));
        assert_eq!(page.items.first(), first, "since {second}");
    }
}
