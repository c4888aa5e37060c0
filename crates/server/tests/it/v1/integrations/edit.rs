//! Changing and deleting integrations.

use crate::support::tenant::{id, order};
use crate::support::{Answer, Value, World, json, no_such_id, on_both_databases};

async fn an_edit_changes_what_it_names_and_journals_their_names(world: &World) {
    let tenant = world.tenant().await;
    let workspace = tenant.workspace(None).await;
    let created = tenant.slack("chat", &["order."]).await;
    let integration = id(&created);
    let path = tenant.org(&format!("/notification-integrations/{integration}"));
    let mut expected = created;
    for (n, change) in [
        json!({ "name": "chat 2" }),
        json!({ "paused": true, "enabled": false }),
        json!({ "enabled": true }),
        json!({ "journalTypes": ["task.", "order."] }),
        json!({ "workspaceId": workspace }),
        json!({ "workspaceId": null }),
        json!({ "providerConfig": { "defaultChannel": "#dev", "channelLabelKey": "slack" } }),
    ]
    .into_iter()
    .enumerate()
    {
        let reply = tenant.patch(&path, &change).await;
        let view = reply.expect(200);
        for (field, value) in change.as_object().unwrap() {
            expected[field] = value.clone();
        }
        expected["version"] = json!(n + 2);
        expected["updatedAt"] = view["updatedAt"].clone();
        assert_eq!((view, reply.etag()), (expected.clone(), format!("\"{}\"", n + 2).as_str()));
        let journalled = tenant.events("types=notification_integration.").await.pop().unwrap();
        let mut names: Vec<_> = change.as_object().unwrap().keys().cloned().collect();
        let mut told: Vec<_> = journalled["payload"]["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c.as_str().unwrap().to_owned())
            .collect();
        names.sort();
        told.sort();
        assert_eq!(told, names);
        let disabled = change["enabled"] == false;
        assert_eq!(
            journalled["type"],
            if disabled { "notification_integration.disabled" } else { "notification_integration.updated" }
        );
    }
    let before = tenant.end().await;
    assert_eq!(tenant.patch(&path, &json!({})).await.expect(200), expected);
    assert_eq!(tenant.patch(&path, &json!({ "enabled": true })).await.expect(200), expected);
    assert_eq!(tenant.end().await, before);
}

async fn an_edit_is_checked_like_a_creation(world: &World) {
    let tenant = world.tenant().await;
    tenant.slack("taken", &[]).await;
    let chat = id(&tenant.slack("chat", &["order."]).await);
    let path = tenant.org(&format!("/notification-integrations/{chat}"));
    for (change, pointer) in [
        (json!({ "name": "a/b" }), "/name"),
        (json!({ "journalTypes": ["A"] }), "/journalTypes"),
        (json!({ "providerConfig": {} }), "/providerConfig/defaultChannel"),
        (json!({ "authConfig": { "botToken": "x" } }), "/authConfig/botToken"),
        (json!({ "paused": null, "enabled": 1 }), "/enabled"),
    ] {
        let error = tenant.patch(&path, &change).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["pointer"], pointer, "{change}");
    }
    // What an integration is cannot be changed.
    tenant.patch(&path, &json!({ "provider": "webhook" })).await.refused(400, "invalid_request");
    tenant.patch(&path, &json!({ "name": "taken" })).await.refused(409, "conflict");
    let missing = tenant.patch(&path, &json!({ "workspaceId": no_such_id() })).await;
    assert_eq!(missing.refused(404, "not_found")["message"], "workspace not found");
}

async fn an_edit_or_a_deletion_of_an_old_version_is_refused(world: &World) {
    let tenant = world.tenant().await;
    let chat = id(&tenant.slack("chat", &[]).await);
    let path = tenant.org(&format!("/notification-integrations/{chat}"));
    tenant.patch(&path, &json!({ "paused": true })).header("if-match", "\"1\"").await.expect(200);
    let edit = tenant.patch(&path, &json!({ "paused": false })).header("if-match", "\"1\"").await;
    assert_eq!(edit.refused(412, "version_conflict")["details"]["currentVersion"], 2);
    // What is wrong in itself is said first, and without looking at the row.
    for change in [json!({ "name": "" }), json!({ "journalTypes": ["A"] })] {
        tenant.patch(&path, &change).header("if-match", "\"1\"").await.refused(400, "invalid_request");
    }
    tenant.delete(&path).header("if-match", "\"1\"").await.refused(412, "version_conflict");
    assert_eq!(tenant.delete(&path).header("if-match", "\"2\"").await.status, 204);
    tenant.get(&path).await.refused(404, "not_found");
}

async fn a_deleted_integration_takes_its_deliveries_along(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let hooks = id(&tenant.webhook("hooks", &world.sink, &["order."], json!({ "paused": true })).await);
    tenant.append(order("order.made", "o_1")).await;
    let last = tenant.append(order("order.made", "o_2")).await;
    world.announced(last["sequence"].as_i64().unwrap()).await;
    assert_eq!(tenant.deliveries().await.len(), 2);
    let path = tenant.org(&format!("/notification-integrations/{hooks}"));
    assert_eq!(tenant.delete(&path).await.status, 204);
    assert_eq!(tenant.deliveries().await, Vec::<Value>::new());
    let journalled = tenant.events("types=notification_integration.deleted").await.remove(0);
    assert_eq!(journalled["payload"]["deletedDeliveries"], 2);
    tenant.delete(&path).await.refused(404, "not_found");
    // Its name is free again.
    tenant.webhook("hooks", &world.sink, &["order."], json!({})).await;
    tenant.append(order("order.made", "o_3")).await;
    let arrival = world.sink.next().await;
    assert_eq!(arrival.json()["subject"]["id"], "o_3");
    arrival.answer(Answer::status(200));
}

on_both_databases! {
    an_edit_changes_what_it_names_and_journals_their_names,
    an_edit_is_checked_like_a_creation,
    an_edit_or_a_deletion_of_an_old_version_is_refused,
    a_deleted_integration_takes_its_deliveries_along,
}
