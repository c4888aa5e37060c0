//! `/principals`

use crate::support::tenant::id;
use crate::support::{World, eventually, json, no_such_id, on_both_databases};

async fn a_principal_is_created_read_and_renamed(world: &World) {
    let tenant = world.tenant().await;
    let created = tenant.post("/principals", &json!({ "kind": "human", "displayName": "Ada" })).await;
    let view = created.expect(201);
    assert_eq!((view["kind"].as_str(), view["status"].as_str()), (Some("human"), Some("active")));
    assert_eq!(created.etag(), "\"1\"");
    let path = format!("/principals/{}", id(&view));
    let read = tenant.get(&path).await;
    assert_eq!((read.expect(200), read.etag()), (view, "\"1\""));
    let renamed = tenant.patch(&path, &json!({ "displayName": "Ada L." })).await;
    assert_eq!((renamed.expect(200)["displayName"].as_str(), renamed.etag()), (Some("Ada L."), "\"2\""));
    // Without a difference nothing happens.
    let before = tenant.end().await;
    assert_eq!(tenant.patch(&path, &json!({ "displayName": "Ada L." })).await.etag(), "\"2\"");
    assert_eq!(tenant.patch(&path, &json!({})).await.etag(), "\"2\"");
    assert_eq!(tenant.end().await, before);
    assert_eq!(
        tenant.get(&format!("/principals/{}", no_such_id())).await.refused(404, "not_found")["message"],
        "principal not found"
    );
}

async fn a_list_is_newest_first_and_pages_meet_each_row_once(world: &World) {
    let tenant = world.tenant().await;
    for n in 0..5 {
        tenant.post("/principals", &json!({ "kind": "service", "displayName": format!("p{n}") })).await.expect(201);
    }
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = tenant.get(&format!("/principals?limit=2{cursor}")).await.expect(200);
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|p| p["displayName"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break assert_eq!(page["hasMore"], false),
        }
        assert_eq!(page["hasMore"], true);
    }
    assert_eq!(names, ["p4", "p3", "p2", "p1", "p0", "administrator"]);
    for bad in ["0", "201", "x"] {
        tenant.get(&format!("/principals?limit={bad}")).await.refused(400, "invalid_request");
    }
    for bad in ["lc1_", "lc1_AAAA", "ec1_AAAA", "7"] {
        tenant.get(&format!("/principals?cursor={bad}")).await.refused(422, "invalid_cursor");
    }
}

async fn an_edit_of_an_old_version_is_refused(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[]).await;
    let path = format!("/principals/{}", member.id);
    let edit = |name: &str, tag: &str| tenant.patch(&path, &json!({ "displayName": name })).header("if-match", tag);
    edit("one", "\"1\"").await.expect(200);
    let error = edit("two", "\"1\"").await.refused(412, "version_conflict");
    assert_eq!(error["details"]["currentVersion"], 2);
    edit("two", "*").await.expect(200);
    edit("three", "3").await.refused(400, "invalid_request");
    assert_eq!(tenant.get(&path).await.expect(200)["displayName"], "two");
}

async fn the_keys_of_a_disabled_principal_stop_until_it_is_enabled(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[("events.read", "tenant")]).await;
    member.get("/events").await.expect(200);
    let path = format!("/principals/{}", member.id);
    assert_eq!(tenant.patch(&path, &json!({ "status": "disabled" })).await.expect(200)["status"], "disabled");
    eventually("the key to stop", async || (member.get("/events").await.status == 401).then_some(())).await;
    tenant.patch(&path, &json!({ "status": "active" })).await.expect(200);
    member.get("/events").await.expect(200);
    let types: Vec<_> =
        tenant.events("types=principal.").await.iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(types[types.len() - 2..], ["principal.disabled", "principal.updated"]);
}

async fn what_is_no_principal_is_refused_by_field(world: &World) {
    let tenant = world.tenant().await;
    for (body, pointer) in [
        (json!({ "kind": "robot", "displayName": "x" }), "/kind"),
        (json!({ "kind": "human", "displayName": "" }), "/displayName"),
        (json!({ "kind": "human", "displayName": 7 }), "/displayName"),
    ] {
        let error = tenant.post("/principals", &body).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["pointer"], pointer);
    }
    let path = format!("/principals/{}", tenant.principal);
    let error = tenant.patch(&path, &json!({ "status": "asleep" })).await.refused(400, "invalid_request");
    assert_eq!(error["details"]["pointer"], "/status");
}

on_both_databases! {
    a_principal_is_created_read_and_renamed,
    a_list_is_newest_first_and_pages_meet_each_row_once,
    an_edit_of_an_old_version_is_refused,
    the_keys_of_a_disabled_principal_stop_until_it_is_enabled,
    what_is_no_principal_is_refused_by_field,
}
