//! `/workspaces`: a tree.

use crate::support::{Value, World, json, no_such_id, on_both_databases};

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

async fn a_workspace_moves_with_all_that_lies_below_it(world: &World) {
    let tenant = world.tenant().await;
    let (left, right) = (tenant.workspace(None).await, tenant.workspace(None).await);
    let child = tenant.workspace(Some(&left)).await;
    let moved = tenant.post(&format!("/workspaces/{child}:move"), &json!({ "parentId": right })).await;
    assert_eq!((moved.expect(200)["parentId"].as_str(), moved.etag()), (Some(right.as_str()), "\"2\""));
    let to_top = tenant.post(&format!("/workspaces/{child}:move"), &json!({ "parentId": null })).await.expect(200);
    assert_eq!((&to_top["parentId"], &to_top["version"]), (&Value::Null, &json!(3)));
    // Readers of the place that it left are told.
    assert_eq!(
        types(&tenant.events(&format!("workspaceId={left}")).await),
        ["workspace.created", "workspace.entity_left"]
    );
    let story = tenant.events(&format!("entityType=workspace&entityId={child}")).await;
    assert_eq!(types(&story), ["workspace.created", "workspace.moved", "workspace.moved"]);
    tenant.post(&format!("/workspaces/{child}:move"), &json!({})).await.refused(400, "invalid_request");
}

async fn a_workspace_cannot_move_below_itself(world: &World) {
    let tenant = world.tenant().await;
    let root = tenant.workspace(None).await;
    let middle = tenant.workspace(Some(&root)).await;
    let leaf = tenant.workspace(Some(&middle)).await;
    for target in [&root, &middle, &leaf] {
        let reply = tenant.post(&format!("/workspaces/{root}:move"), &json!({ "parentId": target })).await;
        reply.refused(409, "conflict");
    }
    let missing = tenant.post(&format!("/workspaces/{root}:move"), &json!({ "parentId": no_such_id() })).await;
    missing.refused(404, "not_found");
}

async fn a_workspace_with_active_ones_below_it_is_not_archived(world: &World) {
    let tenant = world.tenant().await;
    let root = tenant.workspace(None).await;
    let leaf = tenant.workspace(Some(&root)).await;
    tenant.act(&format!("/workspaces/{root}:archive")).await.refused(409, "conflict");
    tenant.act(&format!("/workspaces/{leaf}:archive")).await.expect(200);
    let archived = tenant.act(&format!("/workspaces/{root}:archive")).await.expect(200);
    assert!(archived["archivedAt"].is_string());
    assert_eq!(tenant.act(&format!("/workspaces/{root}:archive")).await.expect(200), archived);
    // Nothing new is put under it.
    tenant.post("/workspaces", &json!({ "name": "late", "parentId": root })).await.refused(409, "conflict");
    let other = tenant.workspace(None).await;
    let moved = tenant.post(&format!("/workspaces/{other}:move"), &json!({ "parentId": root })).await;
    moved.refused(409, "conflict");
}

async fn every_change_honours_if_match(world: &World) {
    let tenant = world.tenant().await;
    let id = tenant.workspace(None).await;
    let path = format!("/workspaces/{id}");
    let read = tenant.get(&path).await;
    assert_eq!(read.etag(), "\"1\"");
    let renamed = tenant.patch(&path, &json!({ "name": "a" })).header("if-match", read.etag()).await;
    assert_eq!((renamed.status, renamed.etag()), (200, "\"2\""));
    let stale = [
        tenant.patch(&path, &json!({ "name": "b" })).header("if-match", "\"1\""),
        tenant.post(&format!("{path}:move"), &json!({ "parentId": null })).header("if-match", "\"1\""),
        tenant.act(&format!("{path}:archive")).header("if-match", "\"1\""),
    ];
    for call in stale {
        let error = call.await.refused(412, "version_conflict");
        assert_eq!(error["details"]["currentVersion"], 2);
    }
    let archived = tenant.act(&format!("{path}:archive")).header("if-match", renamed.etag()).await;
    assert_eq!((archived.status, archived.etag()), (200, "\"3\""));
    let view = tenant.get(&path).await.expect(200);
    assert_eq!((&view["name"], &view["version"]), (&json!("a"), &json!(3)));
}

async fn making_and_moving_need_the_right_at_both_ends(world: &World) {
    let tenant = world.tenant().await;
    let (mine, other) = (tenant.workspace(None).await, tenant.workspace(None).await);
    let child = tenant.workspace(Some(&mine)).await;
    let keeper = tenant.member(&[("workspaces.manage", &format!("workspace:{mine}"))]).await;
    keeper.post("/workspaces", &json!({ "name": "x", "parentId": mine })).await.expect(201);
    keeper.post("/workspaces", &json!({ "name": "x", "parentId": other })).await.refused(403, "permission_denied");
    keeper.post("/workspaces", &json!({ "name": "x" })).await.refused(403, "permission_denied");
    for (workspace, parent) in [(&child, json!(mine)), (&mine, json!(other)), (&mine, Value::Null)] {
        let reply = keeper.post(&format!("/workspaces/{workspace}:move"), &json!({ "parentId": parent })).await;
        reply.refused(403, "permission_denied");
    }
}

async fn a_name_has_bounds_and_a_parent_must_be_there(world: &World) {
    let tenant = world.tenant().await;
    let id = tenant.workspace(None).await;
    for bad in [json!(""), json!("x".repeat(201)), json!("a\u{7}"), json!(7)] {
        for call in [
            tenant.post("/workspaces", &json!({ "name": bad })),
            tenant.patch(&format!("/workspaces/{id}"), &json!({ "name": bad })),
        ] {
            assert_eq!(call.await.refused(400, "invalid_request")["details"]["pointer"], "/name");
        }
    }
    let orphan = tenant.post("/workspaces", &json!({ "name": "x", "parentId": no_such_id() })).await;
    assert_eq!(orphan.refused(404, "not_found")["message"], "workspace not found");
    let listed = tenant.get("/workspaces").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

on_both_databases! {
    a_workspace_moves_with_all_that_lies_below_it,
    a_workspace_cannot_move_below_itself,
    a_workspace_with_active_ones_below_it_is_not_archived,
    every_change_honours_if_match,
    making_and_moving_need_the_right_at_both_ends,
    a_name_has_bounds_and_a_parent_must_be_there,
}
