use courant_api::event::Json;
use courant_api::{EventId, Timestamp};
use courant_store::Start;
use uuid::Uuid;

use super::*;

const TENANT: TenantId = TenantId(Uuid::from_u128(1));

fn cursor(incarnation: u32, seq: i64) -> Cursor {
    let journal = courant_api::cursor::JournalId::new(Uuid::from_u128(7), TENANT.0);
    Cursor { journal, incarnation, seq }
}

fn event(sequence: i64, payload_bytes: usize) -> TailEvent {
    let event = Event {
        sequence,
        id: EventId(Uuid::from_u128(2)),
        tenant_id: TENANT,
        event_type: "invoice.paid".into(),
        schema_version: 1,
        entity_type: "invoice".into(),
        entity_id: "7".into(),
        workspace_id: None,
        actor_id: None,
        session_id: None,
        correlation_id: None,
        causation_id: None,
        request_id: None,
        payload: Json::of(&"x".repeat(payload_bytes)).unwrap(),
        occurred_at: Timestamp::from_micros(0),
        cursor: cursor(1, sequence).encode(),
    };
    TailEvent { event, within: Arc::default() }
}

fn query() -> EventQuery {
    EventQuery {
        prefixes: Vec::new(),
        workspace_id: None,
        entity_type: None,
        entity_id: None,
        start: Start::First,
        limit: 1,
    }
}

fn batch(from: i64, to: i64, sequences: &[i64]) -> Batch {
    let items = sequences.iter().map(|&seq| Item::new(event(seq, 0))).collect();
    Batch { incarnation: 1, from, to, more: false, items }
}

#[test]
fn an_event_is_wanted_by_those_whose_filter_lets_it_pass() {
    let item = Item::new(event(1, 0));
    assert!(item.is_wanted(TENANT, &query()));
    assert!(!item.is_wanted(TenantId(Uuid::from_u128(2)), &query()));
    assert!(item.is_wanted(TENANT, &EventQuery { prefixes: vec!["x.".into(), "invoice.".into()], ..query() }));
    assert!(!item.is_wanted(TENANT, &EventQuery { prefixes: vec!["invoice_".into()], ..query() }));
    assert!(!item.is_wanted(TENANT, &EventQuery { entity_type: Some("order".into()), ..query() }));
    let other = EventQuery { entity_type: Some("invoice".into()), entity_id: Some("8".into()), ..query() };
    assert!(!item.is_wanted(TENANT, &other));
}

#[test]
fn a_workspace_wants_what_lies_in_it_and_below() {
    let id = |n| WorkspaceId(Uuid::from_u128(n));
    let within = |n| EventQuery { workspace_id: Some(id(n)), ..query() };
    let item = Item::new(TailEvent { within: [id(3), id(2)].into(), ..event(1, 0) });
    assert!(item.is_wanted(TENANT, &within(3)) && item.is_wanted(TENANT, &within(2)));
    assert!(!item.is_wanted(TENANT, &within(4)));
    assert!(!Item::new(event(1, 0)).is_wanted(TENANT, &within(3)));
}

#[test]
fn a_batch_fits_only_where_nothing_lies_between() {
    let batch = batch(10, 20, &[12, 20]);
    assert_eq!(batch.fit(&cursor(1, 9)), Fit::Gap);
    assert_eq!(batch.fit(&cursor(1, 10)), Fit::Next);
    assert_eq!(batch.fit(&cursor(1, 15)), Fit::Next);
    assert_eq!(batch.fit(&cursor(1, 20)), Fit::Old);
    assert_eq!(batch.fit(&cursor(1, 30)), Fit::Old);
    // Positions of another incarnation say nothing.
    assert_eq!(batch.fit(&cursor(2, 15)), Fit::Gap);
}

#[test]
fn an_empty_batch_calls_back_those_who_read_less() {
    let begun = batch(10, 10, &[]);
    assert_eq!(begun.fit(&cursor(1, 9)), Fit::Gap);
    assert_eq!(begun.fit(&cursor(1, 10)), Fit::Old);
}

#[test]
fn what_is_read_already_is_dropped() {
    let batch = batch(10, 20, &[12, 15, 20]);
    assert_eq!(*batch.wanted(TENANT, &query(), 10), [0, 1, 2]);
    assert_eq!(*batch.wanted(TENANT, &query(), 15), [2]);
}

#[test]
fn a_large_page_becomes_batches_that_follow_one_another() {
    let journal = cursor(1, 0);
    let events = (1..=5).map(|n| event(10 * n, 100_000)).collect();
    let made = batches(3, TailBatch { journal, events, next: 60, has_more: false });
    let ends: Vec<_> = made.iter().map(|b| (b.from, b.to, b.items.len(), b.more)).collect();
    assert_eq!(ends, [(3, 20, 2, true), (20, 40, 2, true), (40, 60, 1, false)]);
    assert!(batches(3, TailBatch { journal, events: Vec::new(), next: 3, has_more: false }).is_empty());
    let moved = batches(3, TailBatch { journal, events: Vec::new(), next: 9, has_more: false });
    assert_eq!((moved.len(), moved[0].from, moved[0].to), (1, 3, 9));
}

#[test]
fn an_events_json_is_made_once() {
    let item = Item::new(event(1, 10));
    let (one, other) = (item.json().unwrap(), item.json().unwrap());
    assert_eq!(one.as_ptr(), other.as_ptr());
    assert_eq!(one, serde_json::to_vec(&item.event).unwrap());
}
