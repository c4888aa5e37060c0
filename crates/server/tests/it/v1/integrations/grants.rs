//! Rights on integrations hang on their names: what a caller may not touch looks absent.

use crate::support::tenant::{id, order};
use crate::support::{Value, World, json, no_such_id, on_both_databases};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|i| i["name"].as_str().unwrap()).collect()
}

async fn a_list_shows_what_the_caller_may_read_and_pages_over_the_rest(world: &World) {
    let tenant = world.tenant().await;
    for name in ["a", "b", "c", "d", "e", "f"] {
        tenant.slack(name, &[]).await;
    }
    let on = |name: &str| format!("notification_integration:{name}");
    let grants = ["a", "c", "d"].map(on);
    let grants: Vec<_> = grants.iter().map(|on| ("notification_integration.read", on.as_str())).collect();
    let reader = tenant.member(&grants).await;
    let path = tenant.org("/notification-integrations");
    assert_eq!(names(&reader.get(&path).await.expect(200)), ["d", "c", "a"]);
    let first = reader.get(&format!("{path}?limit=2")).await.expect(200);
    assert_eq!((names(&first), &first["hasMore"]), (vec!["d", "c"], &json!(true)));
    let next = first["nextCursor"].as_str().unwrap();
    let second = reader.get(&format!("{path}?limit=2&cursor={next}")).await.expect(200);
    assert_eq!((names(&second), &second["hasMore"]), (vec!["a"], &json!(false)));
    assert_eq!(names(&tenant.get(&path).await.expect(200)).len(), 6);
    for bad in ["limit=0", "limit=201"] {
        reader.get(&format!("{path}?{bad}")).await.refused(400, "invalid_request");
    }
    reader.get(&format!("{path}?cursor=lc1_7")).await.refused(422, "invalid_cursor");
    tenant.member(&[("events.read", "tenant")]).await.get(&path).await.refused(403, "permission_denied");
}

async fn an_integration_of_another_name_looks_absent(world: &World) {
    let tenant = world.tenant().await;
    let (mine, other) = (id(&tenant.slack("mine", &[]).await), id(&tenant.slack("other", &[]).await));
    let all = ["read", "update", "delete"].map(|verb| format!("notification_integration.{verb}"));
    let grants: Vec<_> = all.iter().map(|p| (p.as_str(), "notification_integration:mine")).collect();
    let keeper = tenant.member(&grants).await;
    let path = |id: &str| tenant.org(&format!("/notification-integrations/{id}"));
    let absent = keeper.get(&path(&no_such_id())).await.comparable();
    for reply in [
        keeper.get(&path(&other)).await,
        keeper.patch(&path(&other), &json!({ "paused": true })).await,
        keeper.patch(&path(&other), &json!({ "name": "mine" })).await,
        keeper.delete(&path(&other)).await,
        keeper.patch(&path(&no_such_id()), &json!({ "paused": true })).await,
        keeper.delete(&path(&no_such_id())).await,
    ] {
        assert_eq!(reply.comparable(), absent);
    }
    keeper.get(&path(&mine)).await.expect(200);
    keeper.patch(&path(&mine), &json!({ "paused": true })).await.expect(200);
    // A rename must not carry the right to another name.
    keeper.patch(&path(&mine), &json!({ "name": "free" })).await.refused(403, "permission_denied");
    assert_eq!(keeper.delete(&path(&mine)).await.status, 204);
    tenant.get(&path(&other)).await.expect(200);
}

async fn deliveries_are_seen_and_retried_by_the_name_of_their_integration(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let paused = json!({ "paused": true });
    tenant.webhook("mine", &world.sink, &["order."], paused.clone()).await;
    tenant.webhook("other", &world.sink, &["order."], paused).await;
    let last = tenant.append(order("order.made", "o_1")).await;
    world.announced(last["sequence"].as_i64().unwrap()).await;
    let on = "notification_integration:mine";
    let keeper = tenant.member(&[("notification_integration.read", on), ("notification_integration.update", on)]).await;
    let path = tenant.org("/notification-deliveries");
    let seen = keeper.get(&path).await.expect(200);
    let seen = seen["items"].as_array().unwrap();
    assert_eq!(seen.iter().map(|d| &d["integrationName"]).collect::<Vec<_>>(), ["mine"]);
    let all = tenant.deliveries().await;
    let other = all.iter().find(|d| d["integrationName"] == "other").unwrap();
    let retry = async |id: &str| keeper.act(&format!("{path}/{id}/retry")).await;
    assert_eq!(retry(&id(other)).await.comparable(), retry(&no_such_id()).await.comparable());
    assert_eq!(retry(&id(&seen[0])).await.expect(200), json!({ "outcome": "already_queued" }));
    let nobody = tenant.member(&[("events.read", "tenant")]).await;
    nobody.get(&path).await.refused(403, "permission_denied");
    nobody.act(&format!("{path}/{}/retry", id(other))).await.refused(403, "permission_denied");
}

async fn a_list_of_deliveries_clamps_its_limit_and_filters_by_status(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    tenant.webhook("mine", &world.sink, &["order."], json!({ "paused": true })).await;
    for n in 0..3 {
        tenant.append(order("order.made", &format!("o_{n}"))).await;
    }
    let last = tenant.events("types=order.").await.pop().unwrap();
    world.announced(last["sequence"].as_i64().unwrap()).await;
    let path = tenant.org("/notification-deliveries");
    let subjects = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|d| d["subject"]["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = tenant.get(&format!("{path}?limit=100000")).await.expect(200);
    assert_eq!(subjects(&all), ["o_2", "o_1", "o_0"]);
    let first = tenant.get(&format!("{path}?limit=2")).await.expect(200);
    let rest =
        tenant.get(&format!("{path}?limit=2&cursor={}", first["nextCursor"].as_str().unwrap())).await.expect(200);
    assert_eq!((subjects(&first), subjects(&rest)), (vec!["o_2".into(), "o_1".into()], vec!["o_0".into()]));
    assert_eq!(subjects(&tenant.get(&format!("{path}?status=pending&status=dead")).await.expect(200)).len(), 3);
    assert_eq!(
        subjects(&tenant.get(&format!("{path}?status=dead&status=failed&status=processing")).await.expect(200)).len(),
        0
    );
    for bad in ["status=sent", "status=", "status=pending,dead", "limit=0"] {
        tenant.get(&format!("{path}?{bad}")).await.refused(400, "invalid_request");
    }
    let fields: Vec<_> = all["items"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "id",
            "integrationId",
            "integrationName",
            "eventType",
            "status",
            "attemptCount",
            "lastError",
            "runAt",
            "createdAt",
            "deploymentId",
            "stackId",
            "stackName",
            "subject"
        ]
    );
}

on_both_databases! {
    a_list_shows_what_the_caller_may_read_and_pages_over_the_rest,
    an_integration_of_another_name_looks_absent,
    deliveries_are_seen_and_retried_by_the_name_of_their_integration,
    a_list_of_deliveries_clamps_its_limit_and_filters_by_status,
}
