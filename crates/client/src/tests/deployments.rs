//! Stacks and deployments: every route where the contract has it, and what is sent under a key.

use std::collections::BTreeMap;

use courant_api::deployments::{
    Command, DeploymentCreate, DeploymentMode, DeploymentRunComplete, DeploymentRunStart, DeploymentStatus,
    OriginGiven, PlanSummary, RunKind, RunOutcome, StackCreate, StackPatch,
};
use courant_api::{DeploymentId, DeploymentRunId, StackId, TenantId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::server::{Answer, Server};
use crate::{DeploymentsQuery, PageQuery, StacksQuery};

const AT: &str = "2026-09-01T10:15:04.117Z";

fn id() -> Uuid {
    Uuid::from_u128(8)
}

fn stack() -> Value {
    json!({
        "id": id(), "name": "network", "workspaceId": null, "labels": {}, "repository": null, "path": null,
        "dependsOn": [], "prPlanMode": "auto", "version": 1, "createdAt": AT,
    })
}

fn deployment() -> Value {
    json!({
        "id": id(), "stackId": id(), "mode": "plan", "status": "pending", "readOnly": false, "commitSha": null,
        "commitMessage": null, "origin": { "kind": "manual" }, "skippedReason": null, "error": null, "planSummary": null,
        "confirmedBy": null, "promoted": false, "url": null, "version": 1, "createdAt": AT, "finishedAt": null,
    })
}

fn run() -> Value {
    json!({
        "id": id(), "deploymentId": id(), "kind": "plan", "status": "running", "planRunId": null, "commandBytes": null,
        "planSummary": null, "error": null, "startedAt": AT, "heartbeatAt": AT, "finishedAt": null,
    })
}

fn page(item: &Value) -> Value {
    json!({ "items": [item], "nextCursor": null, "hasMore": false })
}

fn stack_create() -> StackCreate {
    StackCreate {
        name: "network".into(),
        workspace_id: None,
        labels: BTreeMap::from([("team".into(), "core".into())]),
        repository: None,
        path: None,
        depends_on: Vec::new(),
        pr_plan_mode: None,
    }
}

fn deployment_create() -> DeploymentCreate {
    DeploymentCreate {
        stack_id: StackId::from(id()),
        mode: DeploymentMode::Plan,
        commit_sha: Some("4f9c2d1".into()),
        commit_message: None,
        origin: Some(OriginGiven::Push { branch: Some("main".into()) }),
        read_only: None,
        url: None,
    }
}

#[tokio::test]
async fn stacks_are_where_the_contract_has_them() {
    let (org, id) = (TenantId(Uuid::from_u128(7)), StackId::from(id()));
    let findings = json!({
        "counts": { "cycles": 0, "orphans": null, "duplicates": 0 }, "cyclesComplete": true, "orphansComplete": false,
        "duplicatesComplete": true, "cycles": [], "orphans": [], "duplicates": [],
    });
    let answers = [page(&stack()), stack(), stack(), stack()].map(|body| Answer::ok(&body));
    let server = Server::answering(answers.into_iter().chain([Answer::no_content(), Answer::ok(&findings)])).await;
    let client = server.client();
    let query = StacksQuery {
        workspace_id: Some(Uuid::from_u128(3).into()),
        name: Some("network & co".into()),
        page: PageQuery { limit: Some(2), cursor: Some("c".into()) },
    };
    assert_eq!(client.stacks(org, &query).await.unwrap().items[0].name, "network");
    client.stack(org, id).await.unwrap();
    client.create_stack(org, &stack_create()).await.unwrap();
    client.update_stack(org, id, Some(4), &StackPatch::default()).await.unwrap();
    client.delete_stack(org, id, Some(5)).await.unwrap();
    assert_eq!(client.findings(org).await.unwrap().counts.orphans, None);
    let asked = server.asked();
    let lines: Vec<_> = asked.iter().map(|a| format!("{} {}?{}", a.method, a.path, a.query)).collect();
    let (root, workspace) = (format!("/api/v1/orgs/{org}"), Uuid::from_u128(3));
    assert_eq!(
        lines,
        [
            format!("GET {root}/stacks?workspaceId={workspace}&name=network+%26+co&limit=2&cursor=c"),
            format!("GET {root}/stacks/{id}?"),
            format!("POST {root}/stacks?"),
            format!("PATCH {root}/stacks/{id}?"),
            format!("DELETE {root}/stacks/{id}?"),
            format!("GET {root}/findings?"),
        ]
    );
    let guards: Vec<_> = asked.iter().map(|a| a.header("if-match")).collect();
    assert_eq!(guards, [None, None, None, Some("\"4\""), Some("\"5\""), None]);
    assert_eq!(asked[2].json()["labels"], json!({ "team": "core" }));
    assert_eq!(asked[3].json(), json!({}), "what is absent stays");
}

#[tokio::test]
async fn deployments_are_where_the_contract_has_them_and_every_change_has_its_key() {
    let (org, id) = (TenantId(Uuid::from_u128(7)), DeploymentId::from(id()));
    let run_id = DeploymentRunId::from(self::id());
    let mut answers: Vec<_> = [page(&deployment()), deployment(), page(&run())].iter().map(Answer::ok).collect();
    answers.extend((0..5).map(|_| Answer::ok(&deployment())));
    answers.extend((0..3).map(|_| Answer::ok(&run())));
    let server = Server::answering(answers).await;
    let client = server.client();
    let query = DeploymentsQuery {
        statuses: vec![DeploymentStatus::Pending, DeploymentStatus::AwaitingConfirmation],
        stack_id: Some(self::id().into()),
        workspace_id: Some(Uuid::from_u128(3).into()),
        page: PageQuery::default(),
    };
    client.deployments(org, &query).await.unwrap();
    client.deployment(org, id).await.unwrap();
    client.deployment_runs(org, id, &PageQuery { limit: Some(1), cursor: None }).await.unwrap();
    client.create_deployment(org, &deployment_create()).await.unwrap();
    client.confirm_deployment(org, id).await.unwrap();
    client.cancel_deployment(org, id).await.unwrap();
    client.skip_deployment(org, id).await.unwrap();
    client.promote_deployment(org, id).await.unwrap();
    let start = DeploymentRunStart { kind: RunKind::Plan, plan_run_id: None, command: None };
    client.start_deployment_run(org, id, &start).await.unwrap();
    client.heartbeat_deployment_run(org, run_id).await.unwrap();
    let summary =
        PlanSummary { add: 2, change: 0, destroy: 1, has_changes: None, complete: true, gap_reasons: Vec::new() };
    let end = DeploymentRunComplete { status: RunOutcome::Succeeded, plan_summary: Some(summary), error: None };
    client.complete_deployment_run(org, run_id, &end).await.unwrap();
    let asked = server.asked();
    let lines: Vec<_> = asked.iter().map(|a| format!("{} {}?{}", a.method, a.path, a.query)).collect();
    let (root, workspace) = (format!("/api/v1/orgs/{org}"), Uuid::from_u128(3));
    assert_eq!(
        lines,
        [
            format!(
                "GET {root}/deployments?status=pending&status=awaiting_confirmation&stackId={id}&workspaceId={workspace}"
            ),
            format!("GET {root}/deployments/{id}?"),
            format!("GET {root}/deployments/{id}/runs?limit=1"),
            format!("POST {root}/deployments?"),
            format!("POST {root}/deployments/{id}:confirm?"),
            format!("POST {root}/deployments/{id}:cancel?"),
            format!("POST {root}/deployments/{id}:skip?"),
            format!("POST {root}/deployments/{id}:promote?"),
            format!("POST {root}/deployments/{id}/runs?"),
            format!("POST {root}/runs/{run_id}:heartbeat?"),
            format!("POST {root}/runs/{run_id}:complete?"),
        ]
    );
    let keys: Vec<_> = asked.iter().filter_map(|a| a.header("idempotency-key")).collect();
    assert_eq!(keys.len(), 8, "each change and no read");
    let sent = json!({
        "stackId": id, "mode": "plan", "commitSha": "4f9c2d1", "origin": { "kind": "push", "branch": "main" },
    });
    assert_eq!(asked[3].json(), sent);
    assert_eq!(asked[8].json(), json!({ "kind": "plan" }));
    assert_eq!(asked[10].json()["planSummary"]["hasChanges"], Value::Null, "what was not measured is not said");
}

#[tokio::test]
async fn a_run_whose_answer_was_lost_is_begun_under_the_same_key() {
    let server = Server::answering([Answer::Breaks, Answer::refused(503, "unavailable"), Answer::ok(&run())]).await;
    let start = DeploymentRunStart { kind: RunKind::Command, plan_run_id: None, command: Some(Command("make".into())) };
    let org = TenantId(Uuid::from_u128(7));
    server.client().start_deployment_run(org, id().into(), &start).await.unwrap();
    let asked = server.asked();
    let keys: Vec<_> = asked.iter().map(|a| a.header("idempotency-key").unwrap()).collect();
    assert_eq!(keys, [keys[0]; 3]);
    assert!(asked.iter().all(|a| a.json() == json!({ "kind": "command", "command": "make" })));
}
