//! Whoever ends a deployment, and through whichever server: it ends once.

use futures_util::future::join;

use super::{complete, deploy, parked, preview, run, stack, step, told};
use crate::support::http::Call;
use crate::support::{Reply, World, json, on_both_databases};

/// How many deployments are raced for.
const RACES: usize = 200;

/// Both at once; which of them succeeded.
async fn both(one: Call, other: Call) -> (Reply, Reply) {
    join(one.into_future(), other.into_future()).await
}

/// That one was done and the other told that it came too late.
fn one_won((one, other): &(Reply, Reply)) {
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    let lost = if one.status == 409 { one } else { other };
    assert!(statuses[0] / 100 == 2 && statuses[1] == 409, "{} {}", one.text(), other.text());
    let code = lost.expect(409)["error"]["code"].clone();
    assert!(code == "illegal_transition" || code == "conflict", "{code}");
}

/// Two hundred deployments, each ended by two at once through two servers, in every combination of ends.
async fn a_deployment_ends_once_whoever_ends_it(world: &World) {
    let tenant = world.tenant().await;
    let elsewhere = tenant.api.at(world.second_server().await);
    let network = stack(&tenant, json!({})).await;
    let mut won = [0; 2];
    for n in 0..RACES {
        let deployment = deploy(&tenant, &network, json!({ "mode": "plan_unlocked" })).await;
        let begun = run(&tenant, &deployment, json!({ "kind": "plan" })).await;
        let end = |status: &str| {
            elsewhere.post(&tenant.org(&format!("/runs/{begun}:complete")), &json!({ "status": status }))
        };
        let ends = match n % 4 {
            0 => both(step(&tenant, &tenant.api, &deployment, "cancel"), end("succeeded")).await,
            1 => both(end("failed"), step(&tenant, &tenant.api, &deployment, "cancel")).await,
            2 => {
                both(
                    end("failed"),
                    tenant.post(&tenant.org(&format!("/runs/{begun}:complete")), &json!({ "status": "succeeded" })),
                )
                .await
            }
            _ => {
                both(
                    step(&tenant, &tenant.api, &deployment, "cancel"),
                    step(&tenant, &elsewhere, &deployment, "cancel"),
                )
                .await
            }
        };
        one_won(&ends);
        won[usize::from(ends.0.status == 409)] += 1;
        let told = told(&tenant, &deployment).await;
        assert_eq!(told.len(), 2, "{told:?}");
    }
    assert_eq!(won[0] + won[1], RACES);
}

async fn confirming_parking_submitting_and_promoting_are_done_once(world: &World) {
    let tenant = world.tenant().await;
    let elsewhere = tenant.api.at(world.second_server().await);
    let network = stack(&tenant, json!({})).await;
    for _ in 0..10 {
        let waiting = parked(&tenant, &network).await;
        let twice =
            both(step(&tenant, &tenant.api, &waiting, "confirm"), step(&tenant, &elsewhere, &waiting, "confirm"));
        one_won(&twice.await);
        let expected = ["deployment.created", "deployment.awaiting_confirmation", "deployment.confirmed"];
        assert_eq!(told(&tenant, &waiting).await, expected);
        step(&tenant, &tenant.api, &waiting, "cancel").await.expect(200);

        // To park is what a plan's end does: told by two, it parks once.
        let planned = deploy(&tenant, &network, json!({})).await;
        let plan = run(&tenant, &planned, json!({ "kind": "plan" })).await;
        let path = tenant.org(&format!("/runs/{plan}:complete"));
        let done = json!({ "status": "succeeded" });
        one_won(&both(tenant.post(&path, &done), elsewhere.post(&path, &done)).await);
        assert_eq!(told(&tenant, &planned).await, ["deployment.created", "deployment.awaiting_confirmation"]);
        step(&tenant, &tenant.api, &planned, "skip").await.expect(200);

        let command = deploy(&tenant, &network, json!({ "mode": "raw" })).await;
        let path = tenant.org(&format!("/deployments/{command}/runs"));
        let body = json!({ "kind": "command", "command": "true" });
        one_won(&both(tenant.post(&path, &body), elsewhere.post(&path, &body)).await);
        assert_eq!(told(&tenant, &command).await, ["deployment.created", "run_command.executed"]);

        let shown = deploy(&tenant, &network, preview(3)).await;
        let plan = run(&tenant, &shown, json!({ "kind": "plan" })).await;
        complete(&tenant, &plan, json!({ "status": "succeeded" })).await;
        let promoted =
            both(step(&tenant, &tenant.api, &shown, "promote"), step(&tenant, &elsewhere, &shown, "promote")).await;
        one_won(&promoted);
        assert_eq!(told(&tenant, &shown).await, ["deployment.created", "preview.succeeded", "pull_request.promoted"]);
        let made = if promoted.0.status == 201 { &promoted.0 } else { &promoted.1 }.expect(201);
        step(&tenant, &tenant.api, made["id"].as_str().unwrap(), "cancel").await.expect(200);
    }
    let parked_and_cancelled = parked(&tenant, &network).await;
    let ends = both(
        step(&tenant, &tenant.api, &parked_and_cancelled, "confirm"),
        step(&tenant, &elsewhere, &parked_and_cancelled, "skip"),
    )
    .await;
    let told = told(&tenant, &parked_and_cancelled).await;
    // A skip after the confirmation is one of a deployment whose apply has not begun.
    let won = [ends.0.status, ends.1.status].iter().filter(|status| **status == 200).count();
    assert_eq!(told.len(), 2 + won, "{told:?}");
}

on_both_databases! {
    a_deployment_ends_once_whoever_ends_it,
    confirming_parking_submitting_and_promoting_are_done_once,
}
