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
        events: Vec::new(),
        stack_labels: BTreeMap::new(),
        changes_only: false,
        journal_types: prefixes.iter().map(|&prefix| prefix.to_owned()).collect(),
        workspace: None,
        created_seq: 0,
    }
}

fn matches(route: &Route, event: &Event) -> bool {
    News::of(event).reaches(route).is_some()
}

fn notification(id: DeliveryId, event: &Event) -> Notification {
    News::of(event).notification(id, As::Journal, Some("https://courant.example.com"))
}

fn name_of(payload: &str) -> String {
    notification(DeliveryId(Uuid::nil()), &event("a.b", "a", "the-id", payload)).subject.name
}

/// An event as the catalogue's example of what is announced so, with these fields changed.
fn happened(announced: AnnouncedType, with: &serde_json::Value) -> Event {
    let kind = courant_api::events::core_type(announced.event_type()).unwrap();
    let mut payload = kind.current().example();
    for (name, value) in with.as_object().unwrap() {
        payload[name] = value.clone();
    }
    event(kind.name, kind.entity_type, "3fa85f64-5717-4562-b3fc-2c963f66afa6", &payload.to_string())
}

fn wants(events: &[AnnouncedType]) -> Route {
    Route { events: events.to_vec(), ..route(&[]) }
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
fn each_announced_type_reaches_who_wants_it_with_the_detail_of_its_family() {
    let of_events = AnnouncedType::ALL.iter().filter(|t| **t != AnnouncedType::ExploreFindingsChanged);
    for announced in of_events {
        let event = happened(*announced, &json!({}));
        let news = News::of(&event);
        assert_eq!(news.reaches(&wants(AnnouncedType::ALL)), Some(As::Announced(*announced)));
        let others: Vec<_> = AnnouncedType::ALL.iter().copied().filter(|other| other != announced).collect();
        assert_eq!(news.reaches(&wants(&others)), None, "{announced}");
        let by_prefix = route(&[event.event_type.as_str()]);
        assert_eq!(news.reaches(&by_prefix), Some(As::Journal));
        let both = Route { events: vec![*announced], ..by_prefix };
        assert_eq!(news.reaches(&both), Some(As::Announced(*announced)), "one row, of the announced type");

        let told = news.notification(DeliveryId(Uuid::nil()), As::Announced(*announced), Some("https://c.example.com"));
        assert_eq!((told.event_type.as_str(), told.event_id), (announced.as_str(), Some(event.id)));
        let details = [
            ("deployment", told.deployment.is_some()),
            ("stack", told.stack.is_some()),
            ("approval", told.approval.is_some()),
            ("task", told.task.is_some()),
            ("dependent", told.dependent.is_some()),
            ("findings", told.findings.is_some()),
        ];
        let family = announced.as_str().split('_').next().unwrap();
        let family = if ["preview", "run", "pull"].contains(&family) { "deployment" } else { family };
        let expected = details.map(|(name, _)| (name, name == family));
        assert_eq!(details, expected, "{announced}");
        assert_eq!(told.url.is_some(), family != "task", "{announced}");
        assert_ne!(told.subject.name, event.entity_id, "{announced}: people know it by a name");
        let plain = news.notification(DeliveryId(Uuid::nil()), As::Journal, None);
        assert_eq!((plain.event_type.as_str(), plain.deployment, plain.url), ("journal_event", None, None));
    }
}

#[test]
fn labels_are_matched_by_superset_and_only_stacks_have_them() {
    use AnnouncedType as T;
    let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let reaches = |announced, selector: &[(&str, &str)], with: serde_json::Value| {
        let route = Route { stack_labels: labels(selector), ..wants(AnnouncedType::ALL) };
        News::of(&happened(announced, &with)).reaches(&route).is_some()
    };
    let has = json!({ "stackLabels": { "team": "a", "env": "prod" } });
    for (selector, expected) in [
        (&[][..], true),
        (&[("team", "a")][..], true),
        (&[("team", "a"), ("env", "prod")][..], true),
        (&[("team", "b")][..], false),
        (&[("team", "a"), ("tier", "1")][..], false),
    ] {
        assert_eq!(reaches(T::DeploymentFailed, selector, has.clone()), expected, "{selector:?}");
        assert_eq!(reaches(T::DependentTriggerFailed, selector, has.clone()), expected, "{selector:?}");
    }
    assert!(reaches(T::StackUpdated, &[("team", "a")], json!({ "labels": { "team": "a" } })));
    assert!(!reaches(T::ApprovalRequested, &[("team", "a")], has.clone()));
    assert!(reaches(T::ApprovalRequested, &[], has));
    // A prefix is asked for without labels.
    let route = Route { stack_labels: labels(&[("team", "a")]), ..route(&["approval."]) };
    assert_eq!(News::of(&happened(T::ApprovalRequested, &json!({}))).reaches(&route), Some(As::Journal));
}

#[test]
fn only_proof_that_nothing_changes_keeps_an_end_from_those_who_want_changes() {
    use AnnouncedType as T;
    let reaches = |announced, plan: serde_json::Value| {
        let route = Route { changes_only: true, ..wants(AnnouncedType::ALL) };
        News::of(&happened(announced, &json!({ "planSummary": plan }))).reaches(&route).is_some()
    };
    let plan = |complete: bool, has_changes: serde_json::Value| {
        let gaps: &[&str] = if complete { &[] } else { &["a module was not read"] };
        json!({ "add": 0, "change": 0, "destroy": 0, "hasChanges": has_changes, "complete": complete, "gapReasons": gaps })
    };
    let proof = plan(true, json!(false));
    for announced in AnnouncedType::ALL.iter().take(10) {
        let is_failure = matches!(announced, T::DeploymentFailed | T::PreviewFailed);
        assert_eq!(reaches(*announced, proof.clone()), is_failure, "{announced}");
        for weak in [plan(true, json!(true)), plan(true, json!(null)), plan(false, json!(false)), json!(null)] {
            assert!(reaches(*announced, weak), "{announced}");
        }
    }
    for announced in [T::RunCommandExecuted, T::PullRequestPromoted, T::DependentTriggerFailed] {
        assert!(reaches(announced, proof.clone()), "{announced}");
    }
    assert!(
        News::of(&happened(T::StackUpdated, &json!({})))
            .reaches(&Route { changes_only: true, ..wants(AnnouncedType::ALL) })
            .is_some()
    );
}

#[test]
fn versions_from_before_are_announced_too() {
    let old = courant_api::events::core_type("approval.approved").unwrap().versions[0].example();
    let event = event("approval.approved", "approval", "a-1", &old.to_string());
    let news = News::of(&event);
    let told = news.notification(DeliveryId(Uuid::nil()), As::Announced(AnnouncedType::ApprovalApproved), None);
    assert_eq!((told.subject.name.as_str(), told.approval.is_some()), ("a-1", true));
}

#[test]
fn what_has_another_payload_than_its_type_is_told_only_by_its_prefix() {
    let odd = event("deployment.failed", "deployment", "d-1", "{}");
    assert_eq!(News::of(&odd).reaches(&wants(AnnouncedType::ALL)), None);
    assert_eq!(News::of(&odd).reaches(&route(&["deployment."])), Some(As::Journal));
}

#[test]
fn a_sample_is_what_its_type_looks_like() {
    let told = Told {
        id: DeliveryId(Uuid::from_u128(5)),
        org_id: TenantId(Uuid::from_u128(6)),
        at: Timestamp::from_micros(7),
        base_url: Some("https://courant.example.com"),
    };
    for announced in AnnouncedType::ALL {
        let sample = sample(told, *announced);
        assert_eq!((sample.event_type.as_str(), sample.event_id, sample.sequence), (announced.as_str(), None, None));
        assert_eq!(sample.event.as_ref().unwrap().event_type, announced.event_type());
        let details = usize::from(sample.deployment.is_some())
            + usize::from(sample.stack.is_some())
            + usize::from(sample.approval.is_some())
            + usize::from(sample.task.is_some())
            + usize::from(sample.dependent.is_some())
            + usize::from(sample.findings.is_some());
        assert_eq!(details, 1, "{announced}");
    }
    let of = |prefixes: &[&str]| {
        let prefixes: Vec<_> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        journal_sample(told, &prefixes).event.unwrap().event_type
    };
    assert_eq!(
        (of(&["order."]), of(&["order.made"]), of(&["approval.req"])),
        ("order.tested".into(), "order.made".into(), "approval.requested".into())
    );
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
