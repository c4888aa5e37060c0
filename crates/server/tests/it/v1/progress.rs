//! Runs and verifications: what is done on a task.

use crate::support::tenant::{Tenant, id};
use crate::support::{Value, World, json, no_such_id, on_both_databases};

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

async fn task(tenant: &Tenant) -> String {
    id(&tenant.post("/tasks", &json!({ "title": "Renew the certificate" })).await.expect(201))
}

async fn claim(tenant: &Tenant, task: &str) -> Value {
    tenant.post(&format!("/tasks/{task}:claim"), &json!({})).await.expect(200)
}

async fn run(tenant: &Tenant, claim: &Value) -> Value {
    let body = json!({ "claimId": claim["id"], "fencingToken": claim["fencingToken"], "agentRevisionId": "build-7" });
    tenant.post("/runs", &body).await.expect(201)
}

async fn a_run_is_begun_under_the_claim_that_holds_its_task(world: &World) {
    let tenant = world.tenant().await;
    let made = task(&tenant).await;
    let held = claim(&tenant, &made).await;
    let first = run(&tenant, &held).await;
    assert_eq!(
        (&first["attempt"], &first["fencingToken"], &first["status"]),
        (&json!(1), &json!(1), &json!("running"))
    );
    assert_eq!(tenant.get(&format!("/runs/{}", id(&first))).await.expect(200), first);
    let again = json!({ "claimId": held["id"], "fencingToken": 1 });
    tenant.post("/runs", &again).await.refused(409, "conflict");
    tenant
        .post("/runs", &json!({ "claimId": held["id"], "fencingToken": 2 }))
        .await
        .refused(409, "stale_fencing_token");
    let failed = tenant.post(&format!("/runs/{}:fail", id(&first)), &json!({ "reason": "no disk" })).await.expect(200);
    assert_eq!((&failed["status"], &failed["reason"]), (&json!("failed"), &json!("no disk")));
    let error = tenant.act(&format!("/runs/{}:succeed", id(&first))).await.refused(409, "illegal_transition");
    assert_eq!(error["details"], json!({ "state": "failed", "wish": "succeed" }));
    let second = run(&tenant, &held).await;
    assert_eq!(second["attempt"], 2);
    assert_eq!(tenant.get(&format!("/runs?taskId={made}")).await.expect(200)["items"], json!([second, failed]));
    // Once the claim is over, its run cannot end well any more; it can be stopped.
    tenant.post(&format!("/claims/{}:release", id(&held)), &json!({})).await.expect(200);
    tenant.post("/runs", &again).await.refused(409, "stale_fencing_token");
    for verb in ["succeed", "suspend"] {
        let reply = tenant.act(&format!("/runs/{}:{verb}", id(&second))).await;
        assert_eq!(reply.refused(409, "stale_fencing_token")["details"]["fencingToken"], 1);
    }
    assert_eq!(tenant.act(&format!("/runs/{}:cancel", id(&second))).await.expect(200)["status"], "cancelled");
    let told = tenant.events("types=run.").await;
    assert_eq!(types(&told), ["run.started", "run.failed", "run.started", "run.cancelled"]);
    assert_eq!((&told[0]["schemaVersion"], &told[0]["payload"]["agentRevisionId"]), (&json!(2), &json!("build-7")));
    assert_eq!((&told[1]["entityId"], &told[1]["payload"]["reason"]), (&first["id"], &json!("no disk")));
}

async fn a_run_may_complete_its_task_and_may_wait(world: &World) {
    let tenant = world.tenant().await;
    let made = task(&tenant).await;
    let held = claim(&tenant, &made).await;
    let waits = id(&run(&tenant, &held).await);
    let nowhere = json!({ "waitingForApprovalId": no_such_id() });
    let error = tenant.post(&format!("/runs/{waits}:suspend"), &nowhere).await.refused(404, "not_found");
    assert_eq!(error["message"], "approval not found");
    assert_eq!(tenant.act(&format!("/runs/{waits}:suspend")).await.expect(200)["status"], "suspended");
    let goes_on = id(&run(&tenant, &held).await);
    let body = json!({ "completeTask": true, "reason": "all green" });
    assert_eq!(tenant.post(&format!("/runs/{goes_on}:succeed"), &body).await.expect(200)["status"], "succeeded");
    assert_eq!(tenant.get(&format!("/tasks/{made}")).await.expect(200)["status"], "completed");
    let told = tenant.events("types=run.,task.completed").await;
    assert_eq!(types(&told), ["run.started", "run.suspended", "run.started", "run.succeeded", "task.completed"]);
    assert_eq!(told[3]["payload"]["taskCompleted"], true);
}

/// Begins a verification and has it fail.
async fn fail(tenant: &Tenant, task: &str) -> Value {
    let started = tenant.post(&format!("/tasks/{task}/verifications"), &json!({ "checks": ["tests", "lints"] })).await;
    let body = json!({ "failedCheck": "lints", "reason": "token=abcdefghijklmnop" });
    tenant.post(&format!("/verifications/{}:fail", id(&started.expect(201))), &body).await.expect(200)
}

async fn three_failures_in_a_row_block_a_task(world: &World) {
    let tenant = world.tenant().await;
    let made = task(&tenant).await;
    claim(&tenant, &made).await;
    fail(&tenant, &made).await;
    fail(&tenant, &made).await;
    let started =
        tenant.post(&format!("/tasks/{made}/verifications"), &json!({ "checks": ["tests"] })).await.expect(201);
    assert_eq!((&started["trigger"], &started["attempt"]), (&json!("manual"), &json!(3)));
    let passed = tenant.act(&format!("/verifications/{}:pass", id(&started))).await.expect(200);
    assert_eq!(passed["results"], json!([{ "check": "tests", "passed": true }]));
    assert_eq!(tenant.get(&format!("/tasks/{made}")).await.expect(200)["consecutiveFailures"], 0);
    for _ in 0..2 {
        fail(&tenant, &made).await;
        assert_eq!(tenant.get(&format!("/tasks/{made}")).await.expect(200)["status"], "in_progress");
    }
    fail(&tenant, &made).await;
    let view = tenant.get(&format!("/tasks/{made}")).await.expect(200);
    assert_eq!((&view["status"], &view["consecutiveFailures"]), (&json!("blocked"), &json!(3)));
    let told = tenant.events("types=task.verification_failed,claim.").await;
    let (last, ended) = (&told[told.len() - 2], &told[told.len() - 1]);
    assert_eq!((&ended["type"], &ended["payload"]["taskStatus"]), (&json!("claim.released"), &json!("blocked")));
    let payload = &last["payload"];
    assert_eq!((&payload["blocked"], &payload["fromStatus"]), (&json!(true), &json!("in_progress")));
    assert_eq!(payload["results"], json!([{ "check": "lints", "passed": false }]));
    assert!(!last.to_string().contains("abcdefghijklmnop"), "{last}");
    let late = tenant.post(&format!("/tasks/{made}/verifications"), &json!({ "checks": ["tests"] })).await;
    assert_eq!(late.refused(409, "illegal_transition")["details"], json!({ "state": "blocked", "wish": "verify" }));
    let listed = tenant.get(&format!("/tasks/{made}/verifications?limit=2")).await.expect(200);
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["items"][0]["attempt"]), (2, &json!(6)));
}

async fn results_are_judged_against_the_checks(world: &World) {
    let tenant = world.tenant().await;
    let made = task(&tenant).await;
    let path = format!("/tasks/{made}/verifications");
    for (body, pointer) in [
        (json!({ "checks": [] }), "/checks"),
        (json!({ "checks": vec!["x"; 51] }), "/checks"),
        (json!({ "checks": ["a", ""] }), "/checks/1"),
        (json!({ "checks": ["a", "a"] }), "/checks/1"),
        (json!({ "checks": ["a"], "trigger": "" }), "/trigger"),
    ] {
        let error = tenant.post(&path, &body).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["pointer"], pointer);
    }
    let started = id(&tenant.post(&path, &json!({ "checks": ["tests", "lints"] })).await.expect(201));
    tenant.post(&path, &json!({ "checks": ["tests"] })).await.refused(409, "conflict");
    let result = |check: &str, passed: bool| json!({ "check": check, "passed": passed });
    for (verb, body, pointer) in [
        ("pass", json!({ "results": [result("other", true)] }), "/results/0/check"),
        ("pass", json!({ "results": [result("tests", true), result("lints", false)] }), "/results/1/passed"),
        ("pass", json!({ "results": [result("tests", true), result("tests", true)] }), "/results/1/check"),
        ("fail", json!({ "failedCheck": "other" }), "/failedCheck"),
        ("fail", json!({ "failedCheck": "lints", "results": [result("lints", true)] }), "/results/0/passed"),
        ("fail", json!({ "failedCheck": "lints", "reason": "x".repeat(1_001) }), "/reason"),
    ] {
        let error = tenant.post(&format!("/verifications/{started}:{verb}"), &body).await;
        assert_eq!(error.refused(400, "invalid_request")["details"]["pointer"], pointer);
    }
    tenant.act(&format!("/verifications/{started}:pass")).await.expect(200);
    let error = tenant.act(&format!("/verifications/{started}:pass")).await.refused(409, "illegal_transition");
    assert_eq!(error["details"], json!({ "state": "passed", "wish": "pass" }));
    assert_eq!(types(&tenant.events("types=task.veri").await), ["task.verification_started", "task.verified"]);
}

on_both_databases! {
    a_run_is_begun_under_the_claim_that_holds_its_task,
    a_run_may_complete_its_task_and_may_wait,
    three_failures_in_a_row_block_a_task,
    results_are_judged_against_the_checks,
}
