//! Progress marks: what a filtered reader is told when nothing matches.

use std::time::Duration;

use courant_server::http::socket::Limits;

use crate::support::tenant::order;
use crate::support::{Socket, Value, World, on_both_databases};

fn talkative() -> Limits {
    Limits { progress: Duration::from_millis(50), ..Limits::default() }
}

fn cursor(mark: &Value) -> &str {
    assert_eq!(mark.as_object().unwrap().keys().collect::<Vec<_>>(), ["type", "cursor"]);
    assert_eq!(mark["type"], "progress");
    mark["cursor"].as_str().unwrap()
}

async fn a_reader_that_nothing_matches_is_told_how_far_it_has_come(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let end = tenant.end().await;
    let mut socket = Socket::events(&tenant, "types=nothing.").await;
    assert_eq!(cursor(&socket.text().await), end);
    tenant.append(order("order.made", "o_1")).await;
    let end = tenant.end().await;
    let mark = socket.text().await;
    assert_eq!(cursor(&mark), end);
    // Nothing is behind it that was before it.
    tenant.append(order("order.made", "o_2")).await;
    let mut again = Socket::events(&tenant, &format!("after={}", cursor(&mark))).await;
    assert_eq!(again.entities(1).await, ["o_2"]);
}

async fn a_mark_is_never_told_twice_nor_before_an_event_that_lies_before_it(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made", "order.paid"]).await;
    let mut socket = Socket::events(&tenant, "types=order.paid").await;
    let mut reached = 0;
    for n in 0..10 {
        tenant.append(order("order.made", "o")).await;
        let paid = tenant.append(order("order.paid", &format!("o_{n}"))).await;
        loop {
            let text = socket.text().await;
            let at = courant_api::Cursor::decode(text["cursor"].as_str().unwrap()).unwrap().seq;
            assert!(at > reached, "{text} after {reached}");
            reached = at;
            if text["type"] != "progress" {
                assert_eq!(text["sequence"], paid["sequence"]);
                break;
            }
            assert!(at < paid["sequence"].as_i64().unwrap(), "{text} before {paid}");
        }
    }
}

async fn many_skipped_positions_bring_a_mark_before_its_time(world: &World) {
    let skipping = Limits { progress: Duration::from_hours(1), progress_positions: 3, ..Limits::default() };
    let world = World::start_with(world.engine, &[], skipping).await;
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let mut socket = Socket::events(&tenant, "types=nothing.").await;
    let first = courant_api::Cursor::decode(cursor(&socket.text().await)).unwrap().seq;
    for _ in 0..3 {
        tenant.append(order("order.made", "o")).await;
    }
    let second = courant_api::Cursor::decode(cursor(&socket.text().await)).unwrap().seq;
    assert!(second >= first + 3, "{second} is not 3 after {first}");
    world.finish().await;
}

async fn a_reader_without_a_filter_is_sent_no_marks(world: &World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let mut filtered = Socket::events(&tenant, "types=nothing.").await;
    let mut all = Socket::events(&tenant, &format!("after={}", tenant.end().await)).await;
    for _ in 0..3 {
        other.workspace(None).await;
        assert_eq!(filtered.text().await["type"], "progress");
    }
    tenant.workspace(None).await;
    assert_eq!(all.text().await["type"], "workspace.created");
}

on_both_databases! { with talkative:
    a_reader_that_nothing_matches_is_told_how_far_it_has_come,
    a_mark_is_never_told_twice_nor_before_an_event_that_lies_before_it,
    many_skipped_positions_bring_a_mark_before_its_time,
    a_reader_without_a_filter_is_sent_no_marks,
}
