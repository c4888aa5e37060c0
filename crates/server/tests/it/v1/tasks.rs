//! `/tasks`, `/claims`

use std::time::Duration;

use courant_testkit::DrivenClock;

use crate::support::{Engine, Tenant, Value, World, eventually, json, no_such_id, on_both_databases, tenant};

async fn task(tenant: &Tenant, with: Value) -> Value {
    let mut body = json!({ "title": "Renew the certificate" });
    for (name, value) in with.as_object().unwrap() {
        body[name] = value.clone();
    }
    tenant.post("/tasks", &body).await.expect(201)
}

fn path(task: &Value) -> String {
    format!("/tasks/{}", tenant::id(task))
}

async fn told(tenant: &Tenant, types: &str) -> Vec<String> {
    let events = tenant.events(&format!("types={types}")).await;
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

async fn a_task_is_worked_on_from_its_creation_to_its_end(world: &World) {
    let tenant = world.tenant().await;
    let workspace = tenant.workspace(None).await;
    let made =
        task(&tenant, json!({ "workspaceId": workspace, "priority": "high", "customFields": { "cost": 7 } })).await;
    assert_eq!((&made["publicId"], &made["status"]), (&json!("TASK-000001"), &json!("open")));
    let path = path(&made);
    let read = tenant.get(&path).await;
    assert_eq!((read.etag(), read.expect(200)), ("\"1\"", made.clone()));
    let worker = tenant.member(&[("tasks.work", &format!("workspace:{workspace}"))]).await;
    let claim = worker.post(&format!("{path}:claim"), &json!({ "leaseSeconds": 60 })).await.expect(200);
    assert_eq!((&claim["holderId"], &claim["fencingToken"]), (&json!(worker.id), &json!(1)));
    let error = tenant.post(&format!("{path}:claim"), &json!({})).await.refused(409, "illegal_transition");
    assert_eq!(error["details"], json!({ "state": "in_progress", "wish": "claim" }));
    let stale = worker.post(&format!("{path}:complete"), &json!({ "fencingToken": 2 })).await;
    assert_eq!(stale.refused(409, "stale_fencing_token")["details"]["fencingToken"], 1);
    let done = worker.post(&format!("{path}:complete"), &json!({ "fencingToken": 1 })).await.expect(200);
    assert_eq!((&done["status"], &done["systemStatusCategory"]), (&json!("completed"), &json!("done")));
    assert_eq!(told(&tenant, "task.,claim.").await, ["task.created", "task.claimed", "task.completed"]);
    let events = tenant.events(&format!("workspaceId={workspace}&types=task.")).await;
    assert_eq!(events.len(), 3);
    assert!(!events[0].to_string().contains("cost"), "custom fields are in no event");
    assert_eq!(events[1]["actorId"], worker.id.as_str());
}

async fn a_claim_is_extended_by_its_holder_and_given_back(world: &World) {
    let tenant = world.tenant().await;
    let path = path(&task(&tenant, json!({})).await);
    let worker = tenant.member(&[("tasks.work", "tenant")]).await;
    let first = worker.post(&format!("{path}:claim"), &json!({ "leaseSeconds": 60 })).await.expect(200);
    let longer = worker.post(&format!("{path}:claim"), &json!({ "leaseSeconds": 600 })).await.expect(200);
    assert_eq!(longer["id"], first["id"]);
    assert!(longer["expiresAt"].as_str() > first["expiresAt"].as_str());
    let other = tenant.member(&[("tasks.work", "tenant")]).await;
    let release = format!("/claims/{}:release", tenant::id(&first));
    other.post(&release, &json!({})).await.refused(403, "permission_denied");
    let released = worker.post(&release, &json!({ "reason": "no access; token=abcdefghijkl" })).await.expect(200);
    assert_eq!(released["status"], "released");
    let told = tenant.events("types=claim.").await;
    assert_eq!(told[0]["payload"]["reason"], "no access; token=[redacted]");
    let second = other.post(&format!("{path}:claim"), &json!({})).await.expect(200);
    assert_eq!(second["fencingToken"], 2);
    // Whoever may update the task takes it away from its holder.
    tenant.post(&format!("/claims/{}:release", tenant::id(&second)), &json!({})).await.expect(200);
}

async fn of_two_who_claim_at_once_one_does(world: &World) {
    let tenant = world.tenant().await;
    let path = path(&task(&tenant, json!({})).await);
    let workers = [tenant.member(&[("tasks.work", "tenant")]).await, tenant.member(&[("tasks.work", "tenant")]).await];
    let claim = async |n: usize| workers[n].post(&format!("{path}:claim"), &json!({})).await.status;
    let (one, other) = tokio::join!(claim(0), claim(1));
    assert_eq!([one.min(other), one.max(other)], [200, 409]);
    assert_eq!(told(&tenant, "task.claimed").await.len(), 1);
}

async fn tasks_are_listed_by_place_state_and_assignee(world: &World) {
    let tenant = world.tenant().await;
    let above = tenant.workspace(None).await;
    let below = tenant.workspace(Some(&above)).await;
    let here = task(&tenant, json!({ "workspaceId": above })).await;
    let there = task(&tenant, json!({ "workspaceId": below, "assigneeId": tenant.principal })).await;
    task(&tenant, json!({})).await;
    tenant.patch(&path(&there), &json!({ "status": "blocked" })).await.expect(200);
    for (query, expected) in [
        (format!("workspaceId={above}"), vec!["TASK-000002", "TASK-000001"]),
        (format!("workspaceId={below}"), vec!["TASK-000002"]),
        ("status=blocked&status=cancelled".into(), vec!["TASK-000002"]),
        ("status=open&status=blocked&limit=2".into(), vec!["TASK-000003", "TASK-000002"]),
        (format!("assigneeId={}", tenant.principal), vec!["TASK-000002"]),
    ] {
        let page = tenant.get(&format!("/tasks?{query}")).await.expect(200);
        let found: Vec<_> = page["items"].as_array().unwrap().iter().map(|t| t["publicId"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{query}");
    }
    let page = tenant.get("/tasks?limit=2").await.expect(200);
    let rest = tenant.get(&format!("/tasks?cursor={}", page["nextCursor"].as_str().unwrap())).await.expect(200);
    assert_eq!(rest["items"], json!([tenant.get(&path(&here)).await.expect(200)]));
    tenant.get("/tasks?status=done").await.refused(400, "invalid_request");
    tenant.get(&format!("/tasks?workspaceId={}", no_such_id())).await.refused(404, "not_found");
}

async fn a_change_names_the_version_that_it_knows(world: &World) {
    let tenant = world.tenant().await;
    let made = task(&tenant, json!({ "description": "long", "dueDate": "2027-01-01T00:00:00Z" })).await;
    let path = path(&made);
    let stale = tenant.patch(&path, &json!({ "title": "Other" })).header("if-match", "\"7\"").await;
    assert_eq!(stale.refused(412, "version_conflict")["details"]["currentVersion"], 1);
    let body = json!({ "title": "Other", "description": null, "dueDate": null });
    let changed = tenant.patch(&path, &body).header("if-match", "\"1\"").await;
    assert_eq!(changed.etag(), "\"2\"");
    let changed = changed.expect(200);
    assert_eq!((&changed["description"], &changed["dueDate"]), (&Value::Null, &Value::Null));
    let event = tenant.events("types=task.updated").await.remove(0);
    assert_eq!(event["payload"]["changes"], json!(["title", "description", "dueDate"]));
}

async fn what_is_no_task_is_refused_by_field(world: &World) {
    let tenant = world.tenant().await;
    let good = json!({ "title": "Renew" });
    for (field, bad) in [
        ("title", json!("")),
        ("title", json!(" x")),
        ("title", json!("x".repeat(301))),
        ("title", json!("a\nb")),
        ("description", json!("x".repeat(20_001))),
        ("description", json!("a\u{1}b")),
        ("priority", json!("soon")),
        ("dueDate", json!("tomorrow")),
        ("customFields", json!([])),
        ("customFields", json!({ "x": "y".repeat(17_000) })),
        ("workspaceId", json!(7)),
        ("status", json!("open")),
    ] {
        let mut body = good.clone();
        body[field] = bad;
        let error = tenant.post("/tasks", &body).await.refused(400, "invalid_request");
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
    for field in ["workspaceId", "assigneeId"] {
        let mut body = good.clone();
        body[field] = no_such_id().into();
        tenant.post("/tasks", &body).await.refused(404, "not_found");
    }
    let path = path(&task(&tenant, json!({})).await);
    for (action, body, field) in [
        (":claim", json!({ "leaseSeconds": 9 }), "leaseSeconds"),
        (":claim", json!({ "leaseSeconds": 86_401 }), "leaseSeconds"),
        (":complete", json!({ "fencingToken": "1" }), "fencingToken"),
        ("/comments", json!({ "body": " \n" }), "body"),
        ("/comments", json!({ "body": "x".repeat(20_001) }), "body"),
    ] {
        let error = tenant.post(&format!("{path}{action}"), &body).await.refused(400, "invalid_request");
        assert!(error.to_string().contains(field), "{action}: {error}");
    }
    let error = tenant.patch(&path, &json!({ "status": "completed" })).await.refused(400, "invalid_request");
    assert!(error.to_string().contains("/status"), "{error}");
}

async fn a_request_that_is_repeated_with_its_key_happens_once(world: &World) {
    let tenant = world.tenant().await;
    let send = async |path: &str, body: &Value| {
        tenant.post(path, body).header("idempotency-key", &path.replace(['/', ':'], "-")).await
    };
    let body = json!({ "title": "Once" });
    let (first, second) = (send("/tasks", &body).await.expect(201), send("/tasks", &body).await.expect(201));
    assert_eq!(first, second);
    let claim = format!("{}:claim", path(&first));
    assert_eq!(send(&claim, &json!({})).await.expect(200), send(&claim, &json!({})).await.expect(200));
    assert_eq!(told(&tenant, "task.").await, ["task.created", "task.claimed"]);
}

on_both_databases! {
    a_task_is_worked_on_from_its_creation_to_its_end,
    a_claim_is_extended_by_its_holder_and_given_back,
    of_two_who_claim_at_once_one_does,
    tasks_are_listed_by_place_state_and_assignee,
    a_change_names_the_version_that_it_knows,
    what_is_no_task_is_refused_by_field,
    a_request_that_is_repeated_with_its_key_happens_once,
}

async fn a_lease_ends_by_the_clock(engine: Engine) {
    let clock = DrivenClock::take();
    let world = World::start(engine, &[]).await;
    let tenant = world.tenant().await;
    let path = path(&task(&tenant, json!({})).await);
    tenant.post(&format!("{path}:claim"), &json!({ "leaseSeconds": 10 })).await.expect(200);
    clock.pass(Duration::from_secs(11)).await;
    clock.release();
    eventually("the end of the lease", async || {
        (tenant.get(&path).await.expect(200)["status"] == "open").then_some(())
    })
    .await;
    let events = tenant.events("types=claim.expired").await;
    assert_eq!((events.len(), &events[0]["actorId"]), (1, &Value::Null));
    world.finish().await;
}

#[tokio::test]
async fn a_lease_ends_by_the_clock_on_postgres() {
    a_lease_ends_by_the_clock(Engine::Postgres).await;
}

#[tokio::test]
async fn a_lease_ends_by_the_clock_on_sqlite() {
    a_lease_ends_by_the_clock(Engine::Sqlite).await;
}
