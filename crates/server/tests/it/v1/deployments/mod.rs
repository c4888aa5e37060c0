//! Stacks, deployments and their runs over HTTP: every way that one goes, who races, and findings.

mod dependents;
mod findings;
mod races;
mod table;
mod ways;

use crate::support::tenant::id;
use crate::support::{Api, Tenant, Value, World, json};

/// A new stack; its id.
pub async fn stack(tenant: &Tenant, with: Value) -> String {
    let mut body = json!({ "name": "network", "labels": { "team": "platform" } });
    body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    id(&tenant.post(&tenant.org("/stacks"), &body).await.expect(201))
}

/// A new deployment of a stack; its id.
pub async fn deploy(tenant: &Tenant, stack: &str, with: Value) -> String {
    let mut body = json!({ "stackId": stack, "mode": "plan", "commitSha": "4f9c2d1" });
    body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    id(&tenant.post(&tenant.org("/deployments"), &body).await.expect(201))
}

/// A preview of this pull request.
pub fn preview(number: i64) -> Value {
    json!({ "mode": "plan_unlocked", "origin": { "kind": "pull_request", "number": number } })
}

/// A run of a deployment that has begun; its id.
pub async fn run(tenant: &Tenant, deployment: &str, with: Value) -> String {
    id(&tenant.post(&tenant.org(&format!("/deployments/{deployment}/runs")), &with).await.expect(201))
}

/// Ends a run.
pub async fn complete(tenant: &Tenant, run: &str, with: Value) {
    tenant.post(&tenant.org(&format!("/runs/{run}:complete")), &with).await.expect(200);
}

/// A deployment that waits for the confirmation of its plan; its id.
pub async fn parked(tenant: &Tenant, stack: &str) -> String {
    let deployment = deploy(tenant, stack, json!({})).await;
    let plan = run(tenant, &deployment, json!({ "kind": "plan" })).await;
    complete(tenant, &plan, json!({ "status": "succeeded" })).await;
    deployment
}

/// Does this to a deployment through one server.
pub fn step(tenant: &Tenant, server: &Api, deployment: &str, verb: &str) -> crate::support::http::Call {
    server.act(&tenant.org(&format!("/deployments/{deployment}:{verb}")))
}

/// The types of what was told about a deployment, in their order.
pub async fn told(tenant: &Tenant, deployment: &str) -> Vec<String> {
    let events = tenant.events(&format!("entityType=deployment&entityId={deployment}")).await;
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

/// What was announced to an integration that wants everything, of this deployment.
pub async fn announced(world: &World, tenant: &Tenant, deployment: &str) -> Vec<Value> {
    let horizon = world.app.store.journal_horizon().await.unwrap();
    world.announced(horizon).await;
    let mut of: Vec<_> = tenant.deliveries().await.into_iter().filter(|d| d["deploymentId"] == deployment).collect();
    of.reverse();
    of.into_iter().map(|mut delivery| delivery["eventType"].take()).collect()
}
