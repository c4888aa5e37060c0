//! `/event-types`: the catalogue.

use std::collections::BTreeSet;

use courant_api::events;
use courant_store::{Change, EventDraft};

use crate::support::tenant::{order, order_type};
use crate::support::{Value, World, json, on_both_databases};

const PATH: &str = "/event-types/order.made/versions";

fn with_schema(schema: &Value) -> Value {
    json!({ "entityType": "order", "schema": schema })
}

async fn the_list_has_core_and_custom_types_by_name(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["zebra.seen", "alpha.made"]).await;
    let mut expected: Vec<_> = events::core_types().map(|t| t.name).chain(["zebra.seen", "alpha.made"]).collect();
    expected.sort_unstable();
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = tenant.get(&format!("/event-types?limit=5{cursor}")).await.expect(200);
        for item in page["items"].as_array().unwrap() {
            names.push(item["type"].as_str().unwrap().to_owned());
            assert_eq!(item["core"], events::core_type(item["type"].as_str().unwrap()).is_some());
        }
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(names, expected);
    tenant.get("/event-types?cursor=lc1_AAAA").await.refused(422, "invalid_cursor");
}

async fn a_core_type_has_its_schemas_and_is_not_registered(world: &World) {
    let tenant = world.tenant().await;
    let core = tenant.get("/event-types/workspace.created").await.expect(200);
    assert_eq!((&core["core"], &core["entityType"]), (&json!(true), &json!("workspace")));
    assert_eq!(core["versions"][0]["schema"], events::core_type("workspace.created").unwrap().versions[0].schema());
    for reserved in ["workspace.created", "task.invented", "approval.x.y"] {
        let reply = tenant.put(&format!("/event-types/{reserved}/versions/1"), &order_type()).await;
        reply.refused(403, "reserved_event_type");
    }
    assert_eq!(
        tenant.get("/event-types/never.made").await.refused(404, "not_found")["message"],
        "event type not found"
    );
}

/// What an older release has appended is read as it was written, beside what is appended today.
async fn events_of_older_versions_are_read_as_they_were_written(world: &World) {
    let tenant = world.tenant().await;
    let older = events::core_types()
        .flat_map(|kind| kind.versions.iter().take(kind.versions.len() - 1).map(move |version| (kind, version)));
    let drafts: Vec<_> = older
        .map(|(kind, version)| EventDraft {
            id: None,
            event_type: kind.name.into(),
            schema_version: version.version,
            entity_type: kind.entity_type.into(),
            entity_id: "1".into(),
            workspace_id: None,
            payload: version.example().to_string(),
            correlation_id: None,
            causation_id: None,
        })
        .collect();
    let types: BTreeSet<_> = drafts.iter().map(|draft| draft.event_type.as_str()).collect();
    for versioned in
        ["approval.approved", "approval.cancelled", "approval.rejected", "approval.requested", "run.started"]
    {
        assert!(types.contains(versioned), "{versioned}");
    }
    let change = Change::by_server(tenant.id.parse().unwrap(), courant_server::clock::now());
    world.store().await.event_append(change, drafts.clone()).await.unwrap();
    let read: Vec<_> = tenant.events("types=approval.,run.").await;
    assert_eq!(read.len(), drafts.len());
    for (event, draft) in read.iter().zip(&drafts) {
        assert_eq!((&event["type"], &event["schemaVersion"]), (&json!(draft.event_type), &json!(draft.schema_version)));
        assert_eq!(event["payload"], draft.payload.parse::<Value>().unwrap());
        let kind = tenant.get(&format!("/event-types/{}", draft.event_type)).await.expect(200);
        let versions: Vec<_> = kind["versions"].as_array().unwrap().iter().map(|v| v["version"].clone()).collect();
        assert!(versions.contains(&event["schemaVersion"]) && kind["currentVersion"] == *versions.last().unwrap());
        assert!(kind["currentVersion"].as_u64() > event["schemaVersion"].as_u64());
    }
}

async fn a_version_may_only_add_optional_fields(world: &World) {
    let tenant = world.tenant().await;
    let first = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
    let one = tenant.put(&format!("{PATH}/1"), &with_schema(&first)).await.expect(200);
    assert_eq!((&one["currentVersion"], &one["core"]), (&json!(1), &json!(false)));
    for bad in [
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] }),
        json!({ "type": "object", "properties": {}, "required": [] }),
        json!({ "type": "object", "properties": { "a": { "type": "integer" }, "b": {} }, "required": ["a", "b"] }),
    ] {
        let error =
            tenant.put(&format!("{PATH}/2"), &with_schema(&bad)).await.refused(409, "incompatible_schema_version");
        assert!(!error["details"]["errors"].as_array().unwrap().is_empty(), "{error}");
    }
    let second = json!({
        "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "string" } }, "required": ["a"],
    });
    tenant.put(&format!("{PATH}/3"), &with_schema(&second)).await.refused(409, "conflict");
    let two = tenant.put(&format!("{PATH}/2"), &with_schema(&second)).await.expect(200);
    assert_eq!((&two["currentVersion"], two["versions"].as_array().unwrap().len()), (&json!(2), 2));
    assert_eq!(tenant.get("/event-types/order.made").await.expect(200), two);
}

async fn the_newest_version_is_the_one_that_is_appended(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    tenant.append(order("order.made", "o_1")).await;
    let mut next = order_type();
    next["schema"]["properties"]["note"] = json!({ "type": "string" });
    tenant.put(&format!("{PATH}/2"), &next).await.expect(200);
    let mut event = order("order.made", "o_2");
    event["payload"]["note"] = json!(7);
    crate::support::eventually("the new version", async || {
        let reply = tenant.post("/events", &json!({ "events": [event] })).await;
        (reply.status == 422).then_some(())
    })
    .await;
    event["payload"]["note"] = json!("seven");
    event["entityId"] = json!("o_3");
    tenant.append(event).await;
    let stored = tenant.events("types=order.").await;
    let version = |entity: &str| stored.iter().find(|e| e["entityId"] == entity).unwrap()["schemaVersion"].clone();
    assert_eq!((version("o_1"), version("o_3")), (json!(1), json!(2)));
}

async fn the_same_version_again_changes_nothing(world: &World) {
    let tenant = world.tenant().await;
    let first = tenant.put(&format!("{PATH}/1"), &order_type()).await.expect(200);
    let before = tenant.end().await;
    assert_eq!(tenant.put(&format!("{PATH}/1"), &order_type()).await.expect(200), first);
    assert_eq!(tenant.end().await, before);
    let other = with_schema(&json!({ "type": "object", "properties": { "b": {} } }));
    tenant.put(&format!("{PATH}/1"), &other).await.refused(409, "conflict");
    let mut moved = order_type();
    moved["entityType"] = json!("invoice");
    tenant.put(&format!("{PATH}/2"), &moved).await.refused(409, "conflict");
}

async fn what_is_no_type_or_schema_is_refused(world: &World) {
    let tenant = world.tenant().await;
    for name in [
        "Order.made",
        "order",
        "order.",
        ".made",
        "order..made",
        "1order.made",
        "order.made%20",
        &format!("o.{}", "x".repeat(100)),
    ] {
        tenant.put(&format!("/event-types/{name}/versions/1"), &order_type()).await.refused(400, "invalid_request");
    }
    for version in ["0", "-1", "x", "1.0", "4294967296"] {
        let reply = tenant.put(&format!("{PATH}/{version}"), &order_type()).await;
        assert!([404, 409].contains(&reply.status), "{version}: {}", reply.text());
    }
    for schema in [
        json!({ "type": "nonsense" }),
        json!({ "type": "object", "properties": [] }),
        json!({ "$ref": "https://example.com/schema.json" }),
        json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
        json!([]),
        json!("object"),
    ] {
        let error = tenant.put(&format!("{PATH}/1"), &with_schema(&schema)).await.refused(422, "invalid_schema");
        assert!(error["message"].as_str().unwrap().starts_with("/schema"), "{schema}: {error}");
    }
    let mut nameless = order_type();
    nameless["entityType"] = json!("");
    let error = tenant.put(&format!("{PATH}/1"), &nameless).await.refused(400, "invalid_request");
    assert_eq!(error["details"]["pointer"], "/entityType");
    assert_eq!(tenant.events("types=event_type.").await, Vec::<Value>::new());
}

on_both_databases! {
    the_list_has_core_and_custom_types_by_name,
    a_core_type_has_its_schemas_and_is_not_registered,
    events_of_older_versions_are_read_as_they_were_written,
    a_version_may_only_add_optional_fields,
    the_newest_version_is_the_one_that_is_appended,
    the_same_version_again_changes_nothing,
    what_is_no_type_or_schema_is_refused,
}
