use courant_api::event::Json;
use courant_api::{EventId, PrincipalId, TenantId, Timestamp};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;

const fn integration(n: u128) -> IntegrationId {
    IntegrationId(Uuid::from_u128(n))
}

const fn workspace(n: u128) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(n))
}

fn event(event_type: &str, entity_type: &str, entity_id: &str, payload: &str) -> Event {
    Event {
        sequence: 10,
        id: EventId(Uuid::from_u128(1)),
        tenant_id: TenantId(Uuid::from_u128(2)),
        event_type: event_type.into(),
        schema_version: 3,
        entity_type: entity_type.into(),
        entity_id: entity_id.into(),
        workspace_id: Some(workspace(7)),
        actor_id: Some(PrincipalId(Uuid::from_u128(4))),
        session_id: Some("session".into()),
        correlation_id: Some("correlation".into()),
        causation_id: Some("causation".into()),
        request_id: Some("request".into()),
        payload: Json::parse(payload).unwrap(),
        occurred_at: Timestamp::from_micros(1_000_000),
        cursor: "ec1_x".into(),
    }
}

fn shipped() -> Event {
    event("parcel.shipped", "parcel", "p-1", "{}")
}

fn route(prefixes: &[&str]) -> Route {
    Route {
        integration_id: integration(1),
        journal_types: prefixes.iter().map(|&prefix| prefix.to_owned()).collect(),
        workspace: None,
        created_seq: 0,
    }
}

fn name_of(payload: &str) -> String {
    notification(DeliveryId(Uuid::nil()), &event("a.b", "a", "the-id", payload)).subject.name
}

#[test]
fn one_prefix_of_several_is_enough() {
    assert!(matches(&route(&["stack.", "parcel."]), &shipped()));
    assert!(!matches(&route(&["stack.", "parcel.lost"]), &shipped()));
}

#[test]
fn an_integration_without_prefixes_hears_nothing() {
    assert!(!matches(&route(&[]), &shipped()));
}

#[test]
fn nothing_before_the_integration_was_created_is_announced() {
    for (created_seq, expected) in [(9, true), (10, false), (11, false)] {
        assert_eq!(matches(&Route { created_seq, ..route(&["parcel."]) }, &shipped()), expected, "{created_seq}");
    }
}

#[test]
fn a_scope_lets_only_its_workspaces_through() {
    let scoped =
        |ids: &[u128]| Route { workspace: Some(ids.iter().map(|&id| workspace(id)).collect()), ..route(&["parcel."]) };
    assert!(matches(&scoped(&[6, 7]), &shipped()));
    assert!(!matches(&scoped(&[6]), &shipped()));
    assert!(!matches(&scoped(&[]), &shipped()));
    let at_tenant_level = Event { workspace_id: None, ..shipped() };
    assert!(!matches(&scoped(&[6, 7]), &at_tenant_level));
    assert!(matches(&route(&["parcel."]), &at_tenant_level));
}

#[test]
fn an_integration_does_not_hear_of_its_own_changes() {
    let route = route(&["notification_"]);
    let change = |id: IntegrationId| {
        event("notification_integration.updated", "notification_integration", &id.to_string(), r#"{"name":"ops"}"#)
    };
    assert!(!matches(&route, &change(integration(1))));
    assert!(matches(&route, &change(integration(2))));
}

#[test]
fn an_integration_does_not_hear_of_its_own_dead_deliveries() {
    let route = route(&["notification_"]);
    let death = |id: IntegrationId| {
        let payload = json!({ "integrationId": id, "integrationName": "ops" }).to_string();
        event("notification_delivery.dead", "notification_delivery", "some-delivery", &payload)
    };
    assert!(!matches(&route, &death(integration(1))));
    assert!(matches(&route, &death(integration(2))));
}

#[test]
fn another_kind_of_event_that_names_the_integration_is_heard() {
    let payload = json!({ "integrationId": integration(1) }).to_string();
    let about = event("parcel.shipped", "parcel", &integration(1).to_string(), &payload);
    assert!(matches(&route(&["parcel."]), &about));
}

#[test]
fn a_notification_carries_the_event_unchanged() {
    let payload = r#"{ "weight": 1.50, "name":"Vase" }"#;
    let event = event("parcel.shipped", "parcel", "p-1", payload);
    let id = DeliveryId(Uuid::from_u128(99));
    let made = notification(id, &event);
    assert_eq!(made.id, id);
    assert_eq!(made.event_type, "journal_event");
    assert_eq!(made.event_id, Some(event.id));
    assert_eq!(made.sequence, Some(10));
    assert_eq!(made.org_id, event.tenant_id);
    assert_eq!(made.occurred_at, event.occurred_at);
    assert_eq!(made.subject, Subject { kind: "parcel".into(), id: "p-1".into(), name: "Vase".into() });
    assert!(made.labels.is_empty());
    assert_eq!(made.url, None);
    let detail = made.event.unwrap();
    assert_eq!(detail.event_type, "parcel.shipped");
    assert_eq!(detail.schema_version, 3);
    assert_eq!((detail.entity_type.as_str(), detail.entity_id.as_str()), ("parcel", "p-1"));
    assert_eq!((detail.workspace_id, detail.actor_id), (event.workspace_id, event.actor_id));
    assert_eq!(detail.correlation_id.as_deref(), Some("correlation"));
    assert_eq!(detail.causation_id.as_deref(), Some("causation"));
    assert_eq!(detail.payload.text(), payload);
}

#[test]
fn the_first_field_with_a_text_names_the_subject() {
    assert_eq!(name_of(r#"{"publicId":"T-1","displayName":"D","title":"T","name":"N"}"#), "N");
    assert_eq!(name_of(r#"{"publicId":"T-1","displayName":"D","title":"T","name":""}"#), "T");
    assert_eq!(name_of(r#"{"publicId":"T-1","displayName":"D","title":null,"name":5}"#), "D");
    assert_eq!(name_of(r#"{"publicId":"T-1","name":{"first":"A"}}"#), "T-1");
    assert_eq!(name_of(r#"{"name":"caf\u00e9"}"#), "café");
}

#[test]
fn a_subject_without_a_name_is_called_by_its_id() {
    for payload in ["{}", r#"{"name":" "}"#, r#"{"name":null}"#, "[]", "5"] {
        assert_eq!(name_of(payload), "the-id", "{payload}");
    }
}

#[test]
fn a_long_name_is_cut_between_characters() {
    assert_eq!(name_of(&json!({ "name": "é".repeat(201) }).to_string()), "é".repeat(200));
}

#[test]
fn deaths_of_notifications_about_notifications_stay_out_of_the_journal() {
    assert!(!may_journal_death("notification_delivery.dead"));
    assert!(!may_journal_death("notification_integration.updated"));
    assert!(may_journal_death("parcel.shipped"));
    assert!(may_journal_death("notification.sent"));
}

proptest! {
    #[test]
    fn more_prefixes_never_silence_an_integration(
        event_type in "[a-c]{1,2}\\.[a-c]{1,2}",
        fewer in prop::collection::vec("[a-c]{1,2}\\.?", 0..3),
        more in prop::collection::vec("[a-c]{1,2}\\.?", 0..3),
    ) {
        let happened = event(&event_type, "a", "id", "{}");
        let before = Route { journal_types: fewer.clone(), ..route(&[]) };
        let after = Route { journal_types: [fewer, more].concat(), ..route(&[]) };
        prop_assert!(!matches(&before, &happened) || matches(&after, &happened));
    }

    #[test]
    fn any_text_gives_a_name_of_at_most_two_hundred_characters(name in "\\PC{0,300}") {
        let subject = name_of(&json!({ "name": name }).to_string());
        prop_assert!(!subject.is_empty() && subject.chars().count() <= 200);
    }
}
