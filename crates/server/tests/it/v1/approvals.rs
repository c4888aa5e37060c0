//! `/approvals`, `/me/approvals`, and tokens for one decision.

use std::time::Duration;

use courant_testkit::DrivenClock;

use crate::support::tenant::Member;
use crate::support::{Engine, Tenant, Value, World, eventually, json, no_such_id, on_both_databases, tenant};

/// Somebody who decides, a task, and an approval that asks them.
struct Scene {
    tenant: Tenant,
    decider: Member,
    task: String,
    approval: String,
}

impl Scene {
    async fn new(world: &World, with: Value) -> Self {
        let tenant = world.tenant().await;
        let decider = tenant.member(&[("approvals.decide", "tenant")]).await;
        let task = tenant::id(&tenant.post("/tasks", &json!({ "title": "Renew" })).await.expect(201));
        let mut body = json!({ "taskId": task, "assignedPrincipalId": decider.id });
        for (name, value) in with.as_object().unwrap() {
            body[name] = value.clone();
        }
        let approval = tenant::id(&tenant.post("/approvals", &body).await.expect(201));
        Self { tenant, decider, task, approval }
    }

    fn path(&self, action: &str) -> String {
        format!("/approvals/{}{action}", self.approval)
    }

    async fn told(&self) -> Vec<Value> {
        self.tenant.events("types=approval.").await
    }
}

async fn a_gate_holds_the_task_until_somebody_decides(world: &World) {
    let scene = Scene::new(world, json!({ "gate": true, "comment": "May it be renewed?" })).await;
    for action in [":claim", ":complete"] {
        let held = scene.tenant.post(&format!("/tasks/{}{action}", scene.task), &json!({})).await;
        let error = held.refused(409, "gated_by_approval");
        assert_eq!(error["details"]["pendingApprovals"], json!([scene.approval]));
    }
    let mine = scene.decider.get("/me/approvals").await.expect(200);
    assert_eq!(mine["items"][0]["id"], scene.approval.as_str());
    assert_eq!(scene.tenant.get("/me/approvals").await.expect(200)["items"], json!([]));
    let said = json!({ "comment": "Yes; password=hunter2hunter2" });
    let decided = scene.decider.post(&scene.path(":approve"), &said).await;
    assert_eq!(decided.etag(), "\"2\"");
    let decided = decided.expect(200);
    assert_eq!((&decided["status"], &decided["decisionBy"]), (&json!("approved"), &json!(scene.decider.id)));
    assert_eq!(decided["decisionComment"], said["comment"], "the approval keeps the whole text");
    assert_eq!(scene.decider.get("/me/approvals").await.expect(200)["items"], json!([]));
    let error = scene.decider.post(&scene.path(":reject"), &json!({})).await.refused(409, "approval_already_decided");
    assert_eq!(error["details"]["status"], "approved");
    scene.tenant.post(&format!("/tasks/{}:claim", scene.task), &json!({})).await.expect(200);
    let told = scene.told().await;
    assert_eq!(told.len(), 2);
    assert_eq!(told[1]["payload"]["comment"], "Yes; password=[redacted]");
    assert_eq!(told[1]["payload"]["channel"], Value::Null);
}

async fn only_whom_it_asks_decides(world: &World) {
    let scene = Scene::new(world, json!({})).await;
    scene.tenant.post(&scene.path(":approve"), &json!({})).await.refused(403, "not_eligible");
    let nobody = scene.tenant.member(&[]).await;
    nobody.post(&scene.path(":approve"), &json!({})).await.refused(403, "permission_denied");
    let stranger = world.tenant().await;
    stranger.post(&scene.path(":approve"), &json!({})).await.refused(404, "not_found");
    assert_eq!(scene.told().await.len(), 1);
}

async fn two_who_decide_at_once_decide_once(world: &World) {
    let scene = Scene::new(world, json!({})).await;
    let (approve, reject) = (scene.path(":approve"), scene.path(":reject"));
    let body = json!({});
    let send = async |path: &str| scene.decider.post(path, &body).await;
    let (one, other) = tokio::join!(send(&approve), send(&reject));
    let (lost, statuses) =
        (if one.status == 200 { &other } else { &one }, (one.status.min(other.status), one.status.max(other.status)));
    assert_eq!(statuses, (200, 409));
    lost.refused(409, "approval_already_decided");
    assert_eq!(scene.told().await.len(), 2);
}

async fn a_token_decides_once_through_its_channel(world: &World) {
    let scene = Scene::new(world, json!({})).await;
    let body = json!({ "principalId": scene.decider.id, "channel": "slack" });
    let made = scene.tenant.post(&scene.path("/decision-tokens"), &body).await.expect(201);
    let token = world.api.with(made["token"].as_str().unwrap());
    token.post(&scene.path(":approve"), &json!({})).await.refused(422, "idempotency_key_required");
    let missing = format!("/approvals/{}:approve", no_such_id());
    let cancel = scene.path(":cancel");
    let expected = token.get("/me/approvals").await;
    expected.refused(403, "outside_purpose");
    for path in ["/events", "/tasks", &missing, &cancel] {
        let refused = token.post(path, &json!({ "garbage": 7 })).header("idempotency-key", "k").await;
        assert_eq!(refused.comparable(), expected.comparable(), "{path}");
    }
    let decide = async || {
        let said = json!({ "comment": "from Slack" });
        token.post(&scene.path(":approve"), &said).header("idempotency-key", "click-1").await.expect(200)
    };
    let decided = decide().await;
    assert_eq!((&decided["channel"], &decided["decisionBy"]), (&json!("slack"), &json!(scene.decider.id)));
    assert_eq!(decide().await, decided, "a repeat is answered alike");
    let again = token.post(&scene.path(":reject"), &json!({})).header("idempotency-key", "click-2").await;
    again.refused(409, "approval_already_decided");
    let told = scene.told().await;
    assert_eq!((told.len(), &told[1]["payload"]["channel"]), (2, &json!("slack")));
    assert_eq!(told[1]["actorId"], scene.decider.id.as_str());
}

async fn a_token_of_an_issuer_decides_as_well(world: &World) {
    let scene = Scene::new(world, json!({})).await;
    scene.tenant.bind(world, "ada", &scene.decider.id).await;
    let claims = json!({
        "scope": "control-plane:decide control-plane:read",
        "purpose_ref": format!("approval:{}", scene.approval),
        "acr": "channel:teams",
    });
    let token = world.bearer("ada", claims);
    token.post(&scene.path(":reject"), &json!({})).await.refused(422, "idempotency_key_required");
    token.get(&scene.path("")).await.refused(403, "outside_purpose");
    let decided = token.post(&scene.path(":reject"), &json!({})).header("idempotency-key", "1").await.expect(200);
    assert_eq!((&decided["status"], &decided["channel"]), (&json!("rejected"), &json!("teams")));
}

async fn a_token_is_made_for_whom_the_approval_asks(world: &World) {
    let scene = Scene::new(world, json!({})).await;
    let path = scene.path("/decision-tokens");
    let stranger = json!({ "principalId": scene.tenant.principal, "channel": "slack" });
    scene.tenant.post(&path, &stranger).await.refused(409, "conflict");
    for (field, bad) in [
        ("channel", json!("")),
        ("channel", json!("Slack")),
        ("channel", json!("x".repeat(41))),
        ("expiresInSeconds", json!(0)),
        ("expiresInSeconds", json!(601)),
        ("principalId", json!("ada")),
    ] {
        let mut body = json!({ "principalId": scene.decider.id, "channel": "slack" });
        body[field] = bad;
        let error = scene.tenant.post(&path, &body).await.refused(400, "invalid_request");
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
    let body = json!({ "principalId": scene.decider.id, "channel": "slack" });
    let send = async || scene.tenant.post(&path, &body).header("idempotency-key", "t-1").await.expect(201);
    let (first, second) = (send().await, send().await);
    assert!(first["token"].as_str().unwrap().starts_with("cdt_"));
    assert_eq!(second["token"], Value::Null, "a token is shown once");
}

async fn what_is_no_request_is_refused_by_field(world: &World) {
    let scene = Scene::new(world, json!({})).await;
    let good = json!({ "taskId": scene.task, "assignedPrincipalId": scene.decider.id });
    for (field, bad) in [
        ("requiredRoleId", json!(no_such_id())),
        ("assignedPrincipalId", Value::Null),
        ("comment", json!("x".repeat(10_001))),
        ("expiresAt", json!("2020-01-01T00:00:00Z")),
        ("gate", json!("yes")),
        ("taskId", json!(7)),
        ("artifactId", json!(no_such_id())),
    ] {
        let mut body = good.clone();
        body[field] = bad;
        let error = scene.tenant.post("/approvals", &body).await.refused(400, "invalid_request");
        let named = if field == "assignedPrincipalId" { "requiredRoleId" } else { field };
        assert!(error.to_string().contains(named), "{field}: {error}");
    }
    for field in ["taskId", "assignedPrincipalId"] {
        let mut body = good.clone();
        body[field] = no_such_id().into();
        scene.tenant.post("/approvals", &body).await.refused(404, "not_found");
    }
    for query in ["taskId", "workspaceId", "requiredRoleId"] {
        scene.tenant.get(&format!("/approvals?{query}={}", no_such_id())).await.refused(404, "not_found");
    }
    let found = scene.tenant.get(&format!("/approvals?taskId={}&status=pending", scene.task)).await.expect(200);
    assert_eq!(found["items"][0]["id"], scene.approval.as_str());
}

on_both_databases! {
    a_gate_holds_the_task_until_somebody_decides,
    only_whom_it_asks_decides,
    two_who_decide_at_once_decide_once,
    a_token_decides_once_through_its_channel,
    a_token_of_an_issuer_decides_as_well,
    a_token_is_made_for_whom_the_approval_asks,
    what_is_no_request_is_refused_by_field,
}

async fn time_ends_what_nobody_decides(engine: Engine) {
    let clock = DrivenClock::take();
    let world = World::start(engine, &[]).await;
    let soon = courant_server::clock::now().plus_micros(10_000_000).to_string();
    let scene = Scene::new(&world, json!({ "gate": true, "expiresAt": soon })).await;
    let body = json!({ "principalId": scene.decider.id, "channel": "slack", "expiresInSeconds": 5 });
    let made = scene.tenant.post(&scene.path("/decision-tokens"), &body).await.expect(201);
    let token = world.api.with(made["token"].as_str().unwrap());
    clock.pass(Duration::from_secs(6)).await;
    let late = token.post(&scene.path(":approve"), &json!({})).header("idempotency-key", "1").await;
    late.refused(401, "unauthenticated");
    clock.pass(Duration::from_secs(5)).await;
    scene.decider.post(&scene.path(":approve"), &json!({})).await.refused(409, "approval_already_decided");
    clock.release();
    eventually("the end of the approval", async || {
        (scene.tenant.get(&scene.path("")).await.expect(200)["status"] == "expired").then_some(())
    })
    .await;
    scene.tenant.post(&format!("/tasks/{}:claim", scene.task), &json!({})).await.expect(200);
    let told = scene.told().await;
    assert_eq!((told.len(), &told[1]["type"]), (2, &json!("approval.expired")));
    world.finish().await;
}

#[tokio::test]
async fn time_ends_what_nobody_decides_on_postgres() {
    time_ends_what_nobody_decides(Engine::Postgres).await;
}

#[tokio::test]
async fn time_ends_what_nobody_decides_on_sqlite() {
    time_ends_what_nobody_decides(Engine::Sqlite).await;
}
