//! What a cursor promises, and how one that cannot be honoured is refused.

use courant_api::Cursor;
use courant_api::cursor::JournalId;

use super::{entities, items};
use crate::support::tenant::{order, order_type};
use crate::support::{Tenant, Value, World, json, no_such_id, on_both_databases};

async fn tenant_with_orders(world: &World, count: usize) -> Tenant {
    let tenant = world.tenant().await;
    tenant.register(&["order.made", "order.paid"]).await;
    let events: Vec<_> = (0..count).map(|n| order("order.made", &format!("o_{n}"))).collect();
    tenant.post("/events?until=readable", &json!({ "events": events })).await.expect(201);
    tenant
}

fn cursor(page: &Value) -> String {
    page["nextCursor"].as_str().unwrap().to_owned()
}

async fn pages_of_any_size_give_every_event_once_in_one_order(world: &World) {
    let tenant = tenant_with_orders(world, 9).await;
    let all = tenant.events("").await;
    let sequences: Vec<_> = all.iter().map(|e| e["sequence"].as_i64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
    for limit in [1, 2, 3, 1000] {
        for filter in ["", "&types=order."] {
            let expected: Vec<_> =
                all.iter().filter(|e| filter.is_empty() || e["entityType"] == "order").cloned().collect();
            let (mut read, mut position) = (Vec::new(), String::new());
            loop {
                let page = tenant.get(&format!("/events?limit={limit}{filter}{position}")).await.expect(200);
                let items = page["items"].as_array().unwrap();
                assert!(items.len() <= limit && (!items.is_empty() || page["hasMore"] == false));
                read.extend(items.iter().cloned());
                position = format!("&cursor={}", cursor(&page));
                if page["hasMore"] == false {
                    break;
                }
            }
            assert_eq!(read, expected, "limit {limit} {filter}");
        }
    }
}

async fn each_event_carries_the_cursor_behind_it(world: &World) {
    let tenant = tenant_with_orders(world, 3).await;
    let orders = tenant.events("types=order.").await;
    let rest = tenant.events(&format!("types=order.&cursor={}", orders[0]["cursor"].as_str().unwrap())).await;
    assert_eq!(rest, orders[1..]);
}

async fn an_empty_page_has_a_cursor_past_all_that_the_filter_left_out(world: &World) {
    let tenant = tenant_with_orders(world, 5).await;
    let page = tenant.get("/events?types=rare.").await.expect(200);
    assert_eq!((&page["items"], &page["hasMore"]), (&json!([]), &json!(false)));
    let unfiltered = tenant.get(&format!("/events?cursor={}", cursor(&page))).await.expect(200);
    assert_eq!(unfiltered["items"], json!([]), "the cursor lies before what was left out");
    assert_eq!(cursor(&unfiltered), cursor(&page));
}

async fn a_tail_is_the_newest_matching_events_in_journal_order(world: &World) {
    let tenant = tenant_with_orders(world, 4).await;
    tenant.append(order("order.paid", "p_1")).await;
    let page = tenant.get("/events?tail=2&types=order.made&limit=1").await.expect(200);
    assert_eq!(entities(page["items"].as_array().unwrap()), ["o_2", "o_3"]);
    let on = format!("/events?cursor={}", cursor(&page));
    assert_eq!(items(&tenant.get(&on).await), Vec::<Value>::new());
    tenant.append(order("order.paid", "p_2")).await;
    assert_eq!(entities(&items(&tenant.get(&on).await)), ["p_2"]);
    let more = tenant.get("/events?tail=1000&types=order.").await;
    assert_eq!(items(&more).len(), 6);
}

async fn any_changed_character_makes_a_cursor_invalid(world: &World) {
    let tenant = tenant_with_orders(world, 1).await;
    let good = tenant.end().await;
    for at in "ec1_".len()..good.len() {
        let mut changed = good.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        tenant.get(&format!("/events?cursor={changed}")).await.refused(422, "invalid_cursor");
    }
    let shorter = format!("ec1_{}", "A".repeat(good.len() - 5));
    for bad in
        ["0", "17", "ec1_", "ec1", "EC1_AAAA", "ec0_AAAA", good.trim_start_matches('e'), &shorter, &format!("{good}A")]
    {
        tenant.get(&format!("/events?cursor={bad}")).await.refused(422, "invalid_cursor");
    }
    tenant.get("/events?cursor=").await.refused(400, "invalid_request");
    tenant.get(&format!("/events?cursor={good}")).await.expect(200);
}

async fn a_later_format_is_told_from_a_broken_cursor(world: &World) {
    let tenant = tenant_with_orders(world, 1).await;
    let good = tenant.end().await;
    for later in [good.replacen("ec1_", "ec2_", 1), "ec2_AAAA".into(), "ec17_".into()] {
        tenant.get(&format!("/events?cursor={later}")).await.refused(422, "unsupported_cursor_version");
    }
}

async fn a_cursor_of_another_journal_or_ahead_of_this_one_is_refused(world: &World) {
    let (tenant, other) = (tenant_with_orders(world, 1).await, world.tenant().await);
    let good = Cursor::decode(&tenant.end().await).unwrap();
    let foreign = JournalId::new(no_such_id().parse().unwrap(), tenant.id.parse().unwrap());
    for wrong in [
        other.end().await,
        Cursor { journal: foreign, ..good }.encode(),
        Cursor { incarnation: good.incarnation + 1, ..good }.encode(),
        Cursor { seq: good.seq + 1_000_000, ..good }.encode(),
        Cursor { seq: i64::MAX, ..good }.encode(),
    ] {
        tenant.get(&format!("/events?cursor={wrong}")).await.refused(422, "cursor_from_other_journal");
    }
    let from_the_start = Cursor { seq: 0, ..good }.encode();
    assert_eq!(tenant.events(&format!("cursor={from_the_start}")).await, tenant.events("").await);
}

async fn two_places_to_start_from_exclude_each_other(world: &World) {
    let tenant = tenant_with_orders(world, 1).await;
    let end = tenant.end().await;
    let starts =
        [format!("cursor={end}"), format!("before={end}"), "tail=1".into(), "since=2026-01-01T00:00:00Z".into()];
    for (n, one) in starts.iter().enumerate() {
        tenant.get(&format!("/events?{one}")).await.expect(200);
        for other in &starts[n + 1..] {
            tenant.get(&format!("/events?{one}&{other}")).await.refused(422, "conflicting_cursors");
        }
    }
}

async fn pages_backward_meet_every_event_once_in_journal_order(world: &World) {
    let tenant = tenant_with_orders(world, 7).await;
    let all = tenant.events("types=order.").await;
    let mut page = tenant.get("/events?types=order.&tail=1").await.expect(200);
    let mut read = Vec::new();
    loop {
        let mut items = page["items"].as_array().unwrap().clone();
        items.append(&mut read);
        read = items;
        let Some(previous) = page["prevCursor"].as_str() else { break };
        page = tenant.get(&format!("/events?types=order.&limit=3&before={previous}")).await.expect(200);
        // From any page the way forward leads over the same events.
        let next = tenant.events(&format!("types=order.&cursor={}", cursor(&page))).await;
        assert!(read.ends_with(&next) && next.len() == read.len(), "{next:?}");
    }
    assert_eq!(read, all);
    tenant.get("/events?before=ec1_AAAA").await.refused(422, "invalid_cursor");
}

async fn a_time_starts_at_the_first_event_appended_then_or_later(world: &World) {
    let tenant = tenant_with_orders(world, 2).await;
    let all = tenant.events("").await;
    let time = |event: &Value| event["occurredAt"].as_str().unwrap().to_owned();
    for event in &all {
        let since = time(event);
        let read = tenant.events(&format!("since={since}")).await;
        let first = all.iter().position(|e| time(e) >= since).unwrap();
        assert_eq!(read, all[first..], "{since}");
    }
    // A time that has not come would be forgotten with the first page.
    for bad in ["yesterday", "2026-01-01", "17", "2126-01-01T00:00:00Z"] {
        let error = tenant.get(&format!("/events?since={bad}")).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["parameter"], "since");
    }
}

async fn a_type_that_another_server_registers_between_two_pages_is_found(world: &World) {
    let tenant = tenant_with_orders(world, 1).await;
    let first = tenant.get("/events?types=late.").await.expect(200);
    assert_eq!(first["items"], json!([]));
    // This server has looked for the type and found none.
    let early = tenant.post("/events", &json!({ "events": [order("late.arrival", "l_0")] })).await;
    early.refused(422, "unknown_event_type");

    let elsewhere = tenant.api.at(world.second_server().await);
    elsewhere.put("/event-types/late.arrival/versions/1", &order_type()).await.expect(200);
    let body = json!({ "events": [order("late.arrival", "l_1")] });
    elsewhere.post("/events?until=readable", &body).await.expect(201);
    let second = tenant.get(&format!("/events?types=late.&wait=30&cursor={}", cursor(&first))).await;
    assert_eq!(entities(&items(&second)), ["l_1"]);
    // Here too it can be appended at once.
    tenant.append(order("late.arrival", "l_2")).await;
    assert_eq!(entities(&tenant.events("types=late.").await), ["l_1", "l_2"]);
}

on_both_databases! {
    pages_of_any_size_give_every_event_once_in_one_order,
    each_event_carries_the_cursor_behind_it,
    an_empty_page_has_a_cursor_past_all_that_the_filter_left_out,
    a_tail_is_the_newest_matching_events_in_journal_order,
    any_changed_character_makes_a_cursor_invalid,
    a_later_format_is_told_from_a_broken_cursor,
    a_cursor_of_another_journal_or_ahead_of_this_one_is_refused,
    two_places_to_start_from_exclude_each_other,
    pages_backward_meet_every_event_once_in_journal_order,
    a_time_starts_at_the_first_event_appended_then_or_later,
    a_type_that_another_server_registers_between_two_pages_is_found,
}
