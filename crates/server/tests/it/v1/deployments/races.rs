//! Whoever ends a deployment, and through whichever server: it ends once.

use std::time::Duration;

use courant_testkit::DrivenClock;
use futures_util::future::join;

use super::{complete, deploy, parked, preview, run, stack, step, told};
use crate::support::http::Call;
use crate::support::{Engine, Reply, Value, World, json, on_both_databases};

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
    assert!(won[0] > 0 && won[1] > 0, "no race: {won:?}");
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
}

/// Somebody lets it go on while somebody else stops it or leaves it out: each is done before the other or is refused, and what
/// was refused is not told.
async fn what_is_confirmed_and_stopped_at_once_tells_what_was_done(world: &World) {
    let tenant = world.tenant().await;
    let elsewhere = tenant.api.at(world.second_server().await);
    let network = stack(&tenant, json!({})).await;
    for n in 0..RACES / 10 {
        let (verb, end) = if n % 2 == 0 { ("cancel", "deployment.cancelled") } else { ("skip", "deployment.skipped") };
        let waiting = parked(&tenant, &network).await;
        let confirm = step(&tenant, &tenant.api, &waiting, "confirm");
        let (confirmed, ended) = both(confirm, step(&tenant, &elsewhere, &waiting, verb)).await;
        // What was confirmed may still be stopped, as its apply has not begun; what was stopped is not confirmed.
        ended.expect(200);
        let mut expected = vec!["deployment.created", "deployment.awaiting_confirmation"];
        if confirmed.status == 200 {
            expected.push("deployment.confirmed");
        } else {
            confirmed.refused(409, "illegal_transition");
        }
        expected.push(end);
        assert_eq!(told(&tenant, &waiting).await, expected);
    }
}

/// Two runners begin the same run: one has it, and only that one's end counts.
async fn a_run_is_begun_by_one(world: &World) {
    let tenant = world.tenant().await;
    let elsewhere = tenant.api.at(world.second_server().await);
    let network = stack(&tenant, json!({})).await;
    for _ in 0..RACES / 20 {
        let deployment = deploy(&tenant, &network, json!({})).await;
        let path = tenant.org(&format!("/deployments/{deployment}/runs"));
        for (kind, then) in [("plan", Some("confirm")), ("apply", None)] {
            let body = json!({ "kind": kind });
            let begun = both(tenant.post(&path, &body), elsewhere.post(&path, &body)).await;
            one_won(&begun);
            let begun = if begun.0.status == 201 { &begun.0 } else { &begun.1 }.expect(201);
            let runs = tenant.get(&path).await.expect(200)["items"].as_array().unwrap().clone();
            assert_eq!(runs.iter().filter(|run| run["kind"] == kind).collect::<Vec<_>>(), [&begun]);
            complete(&tenant, begun["id"].as_str().unwrap(), json!({ "status": "succeeded" })).await;
            if let Some(verb) = then {
                step(&tenant, &tenant.api, &deployment, verb).await.expect(200);
            }
        }
        let expected =
            ["deployment.created", "deployment.awaiting_confirmation", "deployment.confirmed", "deployment.succeeded"];
        assert_eq!(told(&tenant, &deployment).await, expected);
    }
}

/// Runners that were silent for too long come back, and report through two servers, while their deployments are being ended.
async fn what_is_late_and_reported_ends_once(engine: Engine) {
    let world = World::start(engine, &[]).await;
    let tenant = world.tenant().await;
    let elsewhere = tenant.api.at(world.second_server().await);
    let network = stack(&tenant, json!({})).await;
    let mut late = Vec::new();
    for _ in 0..RACES / 2 {
        let deployment = deploy(&tenant, &network, json!({ "mode": "plan_unlocked" })).await;
        let begun = run(&tenant, &deployment, json!({ "kind": "plan" })).await;
        late.push((deployment, tenant.org(&format!("/runs/{begun}:complete"))));
    }
    let clock = DrivenClock::take();
    clock.pass(Duration::from_secs(301)).await;
    clock.release();
    let done = json!({ "status": "succeeded" });
    let broken = json!({ "status": "failed", "error": "exit status 1" });
    // The longest silent are ended first: those who report begin at the other end, and meet that on their way.
    let mut reports = Vec::new();
    for (deployment, path) in late.iter().rev() {
        reports.push((deployment, both(tenant.post(path, &done), elsewhere.post(path, &broken)).await));
    }
    let mut reported = 0;
    for (deployment, (one, other)) in &reports {
        let (end, error) = match (one.status, other.status) {
            (200, 409) => ("preview.succeeded", Value::Null),
            (409, 200) => ("preview.failed", "exit status 1".into()),
            (409, 409) => ("preview.failed", "runner_lost".into()),
            _ => panic!("{} {}", one.text(), other.text()),
        };
        reported += usize::from(error != "runner_lost");
        assert_eq!(told(&tenant, deployment).await, ["deployment.created", end]);
        let view = tenant.get(&tenant.org(&format!("/deployments/{deployment}"))).await.expect(200);
        assert_eq!(view["error"], error, "{view}");
    }
    assert!(reported < late.len(), "none was ended meanwhile");
    let ends = tenant.events("types=preview.").await;
    assert_eq!(ends.len(), late.len());
    world.finish().await;
}

#[tokio::test]
async fn what_is_late_and_reported_ends_once_on_postgres() {
    what_is_late_and_reported_ends_once(Engine::Postgres).await;
}

#[tokio::test]
async fn what_is_late_and_reported_ends_once_on_sqlite() {
    what_is_late_and_reported_ends_once(Engine::Sqlite).await;
}

on_both_databases! {
    a_deployment_ends_once_whoever_ends_it,
    confirming_parking_submitting_and_promoting_are_done_once,
    what_is_confirmed_and_stopped_at_once_tells_what_was_done,
    a_run_is_begun_by_one,
}
