//! Which events a reader gets: by type, workspace and entity.

use super::{entities, items};
use crate::support::tenant::order;
use crate::support::{Tenant, Value, World, json, no_such_id, on_both_databases};

async fn tenant_with(world: &World, types: &[&str]) -> Tenant {
    let tenant = world.tenant().await;
    tenant.register(types).await;
    for name in types {
        tenant.append(order(name, name)).await;
    }
    tenant
}

async fn an_underscore_in_a_prefix_is_a_letter(world: &World) {
    let tenant = tenant_with(world, &["tskx.done", "tsk_a.done", "tsk.done", "tsk_.x.done"]).await;
    let of = async |types: &str| tenant.events(&format!("types={types}")).await;
    assert_eq!(entities(&of("tsk_").await), ["tsk_a.done", "tsk_.x.done"]);
    assert_eq!(entities(&of("tsk.").await), ["tsk.done"]);
    assert_eq!(entities(&of("tsk").await), ["tskx.done", "tsk_a.done", "tsk.done", "tsk_.x.done"]);
}

async fn prefixes_add_up_whether_repeated_or_listed(world: &World) {
    let tenant = tenant_with(world, &["a1.made", "b1.made", "c1.made", "c1.lost"]).await;
    let expected = ["b1.made", "c1.lost"];
    for filter in
        ["types=b1.,c1.lost", "types=b1.&types=c1.lost", "types=c1.lost&types=b1.made,b1.", "types=b1%2E%2Cc1.lost"]
    {
        assert_eq!(entities(&tenant.events(filter).await), expected, "{filter}");
    }
    assert_eq!(tenant.events("types=nothing_yet.").await, Vec::<Value>::new());
}

async fn a_prefix_that_is_none_is_refused(world: &World) {
    let tenant = world.tenant().await;
    for bad in ["", "a,,b", ",a", "a,", "A", "1a", "_a", ".a", "a-b", "a.*", "a%25", "a b", "é", "a.B", "a,B"] {
        let reply = tenant.get(&format!("/events?types={bad}")).await;
        reply.refused(422, "invalid_event_type_filter");
    }
    for good in ["a", "a_", "a.", "a..b", "a.1", "a9_.x_", "a.b.c."] {
        tenant.get(&format!("/events?types={good}")).await.expect(200);
    }
}

async fn twenty_prefixes_are_the_most(world: &World) {
    let tenant = world.tenant().await;
    let prefixes: Vec<_> = (0..21).map(|n| format!("t{n}.")).collect();
    tenant.get(&format!("/events?types={}", prefixes[..20].join(","))).await.expect(200);
    for list in [prefixes.join(","), prefixes.join("&types="), format!("{}&types=z.", prefixes[..20].join(","))] {
        tenant.get(&format!("/events?types={list}")).await.refused(422, "invalid_event_type_filter");
    }
}

async fn a_workspace_shows_what_lies_below_it_and_nothing_of_the_tenant(world: &World) {
    let tenant = tenant_with(world, &["order.made"]).await;
    let root = tenant.workspace(None).await;
    let middle = tenant.workspace(Some(&root)).await;
    let leaf = tenant.workspace(Some(&middle)).await;
    let beside = tenant.workspace(None).await;
    for (name, workspace) in [("at_root", &root), ("at_leaf", &leaf), ("beside", &beside), ("at_middle", &middle)] {
        let mut event = order("order.made", name);
        event["workspaceId"] = json!(workspace);
        tenant.append(event).await;
    }
    let of = async |workspace: &str| tenant.events(&format!("types=order.&workspaceId={workspace}")).await;
    assert_eq!(entities(&of(&root).await), ["at_root", "at_leaf", "at_middle"]);
    assert_eq!(entities(&of(&middle).await), ["at_leaf", "at_middle"]);
    assert_eq!(entities(&of(&leaf).await), ["at_leaf"]);
    assert_eq!(entities(&tenant.events("types=order.").await).len(), 5);

    // The subtree is taken when the page is read.
    tenant.post(&format!("/workspaces/{middle}:move"), &json!({ "parentId": beside })).await.expect(200);
    assert_eq!(entities(&of(&root).await), ["at_root"]);
    assert_eq!(entities(&of(&beside).await), ["at_leaf", "beside", "at_middle"]);
    let missing = tenant.get(&format!("/events?workspaceId={}", no_such_id())).await;
    assert_eq!(missing.refused(404, "not_found")["message"], "workspace not found");
    tenant.get("/events?workspaceId=7").await.refused(400, "invalid_request");
}

async fn reading_a_workspace_needs_the_right_on_it_or_on_the_tenant(world: &World) {
    let tenant = world.tenant().await;
    let (one, other) = (tenant.workspace(None).await, tenant.workspace(None).await);
    let below = tenant.workspace(Some(&one)).await;
    let reader = tenant.member(&[("events.read", &format!("workspace:{one}"))]).await;
    reader.get(&format!("/events?workspaceId={one}")).await.expect(200);
    for path in ["/events".to_owned(), format!("/events?workspaceId={other}"), format!("/events?workspaceId={below}")] {
        reader.get(&path).await.refused(403, "permission_denied");
    }
    let created = tenant.events(&format!("workspaceId={one}")).await[0].clone();
    let id = |event: &Value| event["id"].as_str().unwrap().to_owned();
    assert_eq!(reader.get(&format!("/events/{}", id(&created))).await.expect(200), created);
    let tenant_level = tenant.events("types=tenant.").await[0].clone();
    reader.get(&format!("/events/{}", id(&tenant_level))).await.refused(403, "permission_denied");
}

async fn an_entity_has_a_stream_of_its_own(world: &World) {
    let tenant = tenant_with(world, &["order.made", "order.paid"]).await;
    for (name, entity) in [("order.made", "o_1"), ("order.made", "o_2"), ("order.paid", "o_1")] {
        tenant.append(order(name, entity)).await;
    }
    let stream = tenant.events("entityType=order&entityId=o_1").await;
    assert_eq!(stream.iter().map(|e| &e["type"]).collect::<Vec<_>>(), ["order.made", "order.paid"]);
    assert_eq!(tenant.events("entityType=order&entityId=o_1&types=order.paid").await.len(), 1);
    assert_eq!(tenant.events("entityType=order").await.len(), 5);
    assert_eq!(tenant.events("entityType=invoice&entityId=o_1").await.len(), 0);
    let error = tenant.get("/events?entityId=o_1").await.refused(400, "invalid_request");
    assert_eq!(error["details"]["parameter"], "entityId");
}

async fn numbers_out_of_range_are_refused_by_name(world: &World) {
    let tenant = world.tenant().await;
    for (parameter, good, bad) in [
        ("limit", ["1", "1000"], ["0", "1001", "-1", "x", "1.5", "", "99999999999999999999"]),
        ("tail", ["1", "1000"], ["0", "1001", "-1", "x", "1.5", "", "99999999999999999999"]),
        ("wait", ["0", "00"], ["31", "-1", "x", "1.5", "", "30s", "99999999999999999999"]),
    ] {
        for value in good {
            tenant.get(&format!("/events?{parameter}={value}")).await.expect(200);
        }
        for value in bad {
            let error = tenant.get(&format!("/events?{parameter}={value}")).await.refused(400, "invalid_request");
            assert_eq!(error["details"]["parameter"], parameter, "{value}");
        }
        let twice = tenant.get(&format!("/events?{parameter}=1&{parameter}=1")).await.refused(400, "invalid_request");
        assert_eq!(twice["details"]["parameter"], parameter);
    }
    assert_eq!(items(&tenant.get("/events?limit=1").await).len(), 1);
}

async fn one_event_is_the_same_alone_and_in_a_page(world: &World) {
    let tenant = tenant_with(world, &["order.made"]).await;
    let listed = tenant.events("types=order.").await.remove(0);
    let id = listed["id"].as_str().unwrap();
    assert_eq!(tenant.get(&format!("/events/{id}")).await.expect(200), listed);
    let fields: Vec<_> = listed.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "sequence",
            "id",
            "tenantId",
            "type",
            "schemaVersion",
            "entityType",
            "entityId",
            "workspaceId",
            "actorId",
            "sessionId",
            "correlationId",
            "causationId",
            "requestId",
            "payload",
            "occurredAt",
            "cursor"
        ]
    );
    assert_eq!((&listed["tenantId"], &listed["actorId"]), (&json!(tenant.id), &json!(tenant.principal)));
    assert_eq!(
        tenant.get(&format!("/events/{}", no_such_id())).await.refused(404, "not_found")["message"],
        "event not found"
    );
}

on_both_databases! {
    an_underscore_in_a_prefix_is_a_letter,
    prefixes_add_up_whether_repeated_or_listed,
    a_prefix_that_is_none_is_refused,
    twenty_prefixes_are_the_most,
    a_workspace_shows_what_lies_below_it_and_nothing_of_the_tenant,
    reading_a_workspace_needs_the_right_on_it_or_on_the_tenant,
    an_entity_has_a_stream_of_its_own,
    numbers_out_of_range_are_refused_by_name,
    one_event_is_the_same_alone_and_in_a_page,
}
