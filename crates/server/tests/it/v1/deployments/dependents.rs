//! What an apply tells of the plan that it applied and of what depends on it, and what a stack takes along that goes.

use courant_api::announced::AnnouncedType;

use super::table::Plan;
use super::{announced, complete, deploy, parked, run, stack, step, told};
use crate::support::tenant::WEBHOOK_SECRET;
use crate::support::{Answer, World, json, on_both_databases};

/// The deployment's page in the tool that deploys.
const PAGE: &str = "https://cd.example.com/runs/17";

/// What a deployment that is applied tells of its plan and of what depends on it.
async fn an_apply_tells_the_plan_that_it_applied_and_starts_what_depends_on_it(world: &World) {
    let tenant = world.tenant().await;
    let all = json!({ "events": AnnouncedType::ALL, "paused": true });
    tenant.webhook("all", &world.sink, &[], all).await;
    let network = stack(&tenant, json!({})).await;
    let depends = json!([{ "stackId": network, "trigger": true }]);
    let cluster = stack(&tenant, json!({ "name": "cluster", "dependsOn": depends })).await;
    let busy = stack(&tenant, json!({ "name": "busy", "dependsOn": depends })).await;
    stack(&tenant, json!({ "name": "later", "dependsOn": [{ "stackId": network }] })).await;
    deploy(&tenant, &busy, json!({})).await;

    let heard = json!({ "events": ["dependent_trigger_failed"] });
    tenant.webhook("heard", &world.sink, &[], heard).await;
    let deployment = deploy(&tenant, &network, json!({ "url": PAGE })).await;
    let whole = run(&tenant, &deployment, json!({ "kind": "plan" })).await;
    complete(&tenant, &whole, json!({ "status": "succeeded", "planSummary": Plan::Changes.summary() })).await;
    // A targeted plan sees less; the apply is of that one.
    let narrow = run(&tenant, &deployment, json!({ "kind": "plan" })).await;
    let summary =
        json!({ "add": 1, "change": 0, "destroy": 0, "hasChanges": true, "complete": true, "gapReasons": [] });
    complete(&tenant, &narrow, json!({ "status": "succeeded", "planSummary": summary })).await;
    step(&tenant, &tenant.api, &deployment, "confirm").await.expect(200);
    let apply = run(&tenant, &deployment, json!({ "kind": "apply" })).await;
    complete(&tenant, &apply, json!({ "status": "succeeded" })).await;

    let events = tenant.events("types=deployment.succeeded,dependent_trigger.failed,deployment.created").await;
    let of = |name: &str| events.iter().filter(|event| event["type"] == name).collect::<Vec<_>>();
    assert_eq!(of("deployment.succeeded").len(), 1);
    assert_eq!(of("deployment.succeeded")[0]["payload"]["planSummary"]["add"], 1);
    let started: Vec<_> = of("deployment.created").iter().map(|event| event["payload"]["stackId"].clone()).collect();
    assert_eq!(started, [json!(busy), json!(network), json!(cluster)]);
    let [failed] = of("dependent_trigger.failed")[..] else { panic!("{events:?}") };
    assert_eq!((&failed["entityId"], &failed["payload"]["dependentStackId"]), (&json!(deployment), &json!(busy)));
    assert_eq!(failed["payload"]["reason"], "deployment_active");
    let announced = announced(world, &tenant, &deployment).await;
    assert_eq!(announced.last(), Some(&json!("dependent_trigger_failed")));
    // What arrives leads to the deployment that could not start the other.
    let arrival = world.sink.next().await;
    let notification = arrival.verified(WEBHOOK_SECRET);
    arrival.answer(Answer::status(204));
    assert_eq!((&notification["eventType"], &notification["url"]), (&json!("dependent_trigger_failed"), &json!(PAGE)));
    assert_eq!(notification["subject"], json!({ "kind": "stack", "id": busy, "name": "busy" }));
    assert_eq!(notification["dependent"]["deploymentId"], json!(deployment));
}

async fn a_stack_that_goes_takes_what_waits_for_it_along(world: &World) {
    let tenant = world.tenant().await;
    let all = json!({ "events": AnnouncedType::ALL, "paused": true });
    tenant.webhook("all", &world.sink, &[], all).await;
    let stack = stack(&tenant, json!({})).await;
    let path = tenant.org(&format!("/stacks/{stack}"));
    let waiting = parked(&tenant, &stack).await;
    let running = deploy(&tenant, &stack, json!({})).await;
    run(&tenant, &running, json!({ "kind": "plan" })).await;
    // What is under way holds it back, and nothing is left out meanwhile.
    tenant.delete(&path).await.refused(409, "conflict");
    assert_eq!(told(&tenant, &waiting).await.last().unwrap(), "deployment.awaiting_confirmation");
    step(&tenant, &tenant.api, &running, "cancel").await.expect(200);
    tenant.delete(&path).await.expect(204);
    assert_eq!(told(&tenant, &waiting).await.last().unwrap(), "deployment.auto_skipped");
    assert_eq!(told(&tenant, &running).await.last().unwrap(), "deployment.cancelled");
    let left_out = tenant.get(&tenant.org(&format!("/deployments/{waiting}"))).await.expect(200);
    assert_eq!((&left_out["status"], &left_out["skippedReason"]), (&json!("skipped"), &json!("stack_deleted")));
    assert_eq!(announced(world, &tenant, &waiting).await.last(), Some(&json!("deployment_auto_skipped")));
}

on_both_databases! {
    an_apply_tells_the_plan_that_it_applied_and_starts_what_depends_on_it,
    a_stack_that_goes_takes_what_waits_for_it_along,
}
