//! `/grants`

use crate::support::{World, eventually, json, no_such_id, on_both_databases};

async fn a_grant_counts_on_exactly_the_resource_that_it_names(world: &World) {
    let tenant = world.tenant().await;
    let (one, other) = (tenant.workspace(None).await, tenant.workspace(None).await);
    let below = tenant.workspace(Some(&one)).await;
    let member = tenant.member(&[("workspaces.read", &format!("workspace:{one}"))]).await;
    member.get(&format!("/workspaces/{one}")).await.expect(200);
    for refused in [other, below] {
        member.get(&format!("/workspaces/{refused}")).await.refused(403, "permission_denied");
    }
    let error = member.get("/workspaces").await.refused(403, "permission_denied");
    assert_eq!(error["message"], "workspaces.read is required on tenant");
}

async fn a_grant_on_the_tenant_counts_everywhere_in_it(world: &World) {
    let tenant = world.tenant().await;
    let root = tenant.workspace(None).await;
    let below = tenant.workspace(Some(&root)).await;
    let member = tenant.member(&[("workspaces.read", "tenant")]).await;
    for path in ["/workspaces".to_owned(), format!("/workspaces/{root}"), format!("/workspaces/{below}")] {
        member.get(&path).await.expect(200);
    }
    member.patch(&format!("/workspaces/{root}"), &json!({ "name": "x" })).await.refused(403, "permission_denied");
}

async fn a_grant_that_is_taken_back_stops_counting(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[]).await;
    member.get("/events").await.refused(403, "permission_denied");
    let grant = tenant.grant(&member.id, "events.read", "tenant").await;
    eventually("the grant to count", async || (member.get("/events").await.status == 200).then_some(())).await;
    let path = format!("/grants/{grant}");
    let gone = tenant.delete(&path).await;
    assert_eq!((gone.status, gone.bytes.len()), (204, 0));
    eventually("the grant to stop", async || (member.get("/events").await.status == 403).then_some(())).await;
    assert_eq!(tenant.delete(&path).await.refused(404, "not_found")["message"], "grant not found");
    let types: Vec<_> =
        tenant.events("types=grant.").await.iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(types, ["grant.created", "grant.created", "grant.revoked"]);
}

async fn a_grant_is_held_once(world: &World) {
    let tenant = world.tenant().await;
    let member = tenant.member(&[("events.read", "tenant")]).await;
    let twice = json!({ "principalId": member.id, "permission": "events.read", "resource": "tenant" });
    tenant.post("/grants", &twice).await.refused(409, "conflict");
}

async fn what_is_no_grant_is_refused_by_field(world: &World) {
    let tenant = world.tenant().await;
    let good = json!({ "principalId": tenant.principal, "permission": "events.read", "resource": "tenant" });
    for (field, bad) in [
        ("permission", "events.write"),
        ("permission", ""),
        ("resource", "everything"),
        ("resource", "workspace:7"),
        ("resource", "notification_integration:"),
        ("resource", "notification_integration:a/b"),
        ("principalId", "7"),
    ] {
        let mut body = good.clone();
        body[field] = bad.into();
        let error = tenant.post("/grants", &body).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["pointer"], format!("/{field}"), "{bad}");
    }
    for (field, missing, what) in
        [("principalId", no_such_id(), "principal"), ("resource", format!("workspace:{}", no_such_id()), "workspace")]
    {
        let mut body = good.clone();
        body[field] = missing.into();
        assert_eq!(
            tenant.post("/grants", &body).await.refused(404, "not_found")["message"],
            format!("{what} not found")
        );
    }
}

on_both_databases! {
    a_grant_counts_on_exactly_the_resource_that_it_names,
    a_grant_on_the_tenant_counts_everywhere_in_it,
    a_grant_that_is_taken_back_stops_counting,
    a_grant_is_held_once,
    what_is_no_grant_is_refused_by_field,
}
