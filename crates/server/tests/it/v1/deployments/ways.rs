//! Every row of the table of transitions, driven to its end: what it tells, once, and what that is announced as.

use std::time::Duration;

use courant_api::announced::AnnouncedType;
use courant_testkit::DrivenClock;

use super::table::Happens::{self, Begun, Newer, Nothing, Person, Run, Silence};
use super::table::{WAYS, Way};
use super::{announced, complete, deploy, run, stack, step};
use crate::support::{Engine, Tenant, Value, World, eventually, json};

/// What is run; it has more bytes than letters.
const COMMAND: &str = "echo grüße";
/// Why a run fails.
const BROKEN: &str = "exit status 1";

async fn happens(tenant: &Tenant, stack: &str, deployment: &str, new: &Value, what: Happens) {
    match what {
        Run(kind, status, plan) => {
            let begun = begin(tenant, deployment, kind).await;
            let mut end = json!({ "status": status });
            if let Some(summary) = plan.summary() {
                end["planSummary"] = summary;
            }
            if status == "failed" {
                end["error"] = BROKEN.into();
            }
            complete(tenant, &begun, end).await;
        }
        Begun(kind) => {
            begin(tenant, deployment, kind).await;
        }
        Silence(kind) => {
            begin(tenant, deployment, kind).await;
            wait(tenant, deployment).await;
        }
        Nothing => wait(tenant, deployment).await,
        Person(verb) => {
            let status = if verb == "promote" { 201 } else { 200 };
            step(tenant, &tenant.api, deployment, verb).await.expect(status);
        }
        Newer => {
            deploy(tenant, stack, new.clone()).await;
        }
    }
}

async fn begin(tenant: &Tenant, deployment: &str, kind: &str) -> String {
    let mut body = json!({ "kind": kind });
    if kind == "command" {
        body["command"] = COMMAND.into();
    }
    run(tenant, deployment, body).await
}

/// More than five minutes pass.
async fn wait(tenant: &Tenant, deployment: &str) {
    let clock = DrivenClock::take();
    clock.pass(Duration::from_secs(301)).await;
    clock.release();
    let path = tenant.org(&format!("/deployments/{deployment}"));
    eventually("the end", async || (tenant.get(&path).await.expect(200)["status"] == "failed").then_some(())).await;
}

/// Why it is over that ends so, and why nobody in person wanted that.
fn reasons(way: &Way) -> (Value, Value) {
    let error = match way.happens.last() {
        Some(Run(_, "failed", _)) => BROKEN.into(),
        Some(Silence(_)) => "runner_lost".into(),
        Some(Nothing) => "start_failed".into(),
        _ => Value::Null,
    };
    let retired = way.told.contains(&"preview.auto_skipped");
    (error, if retired { "superseded".into() } else { Value::Null })
}

/// What each event tells of the deployment, the last one all that there is to tell.
fn tells(way: &Way, tenant: &Tenant, events: &[Value], view: &Value) {
    for event in events {
        let (name, payload) = (event["type"].as_str().unwrap(), &event["payload"]);
        let seen = format!("{}: {event}", way.name);
        assert_eq!((&payload["deploymentId"], &payload["stackId"]), (&view["id"], &view["stackId"]), "{seen}");
        assert_eq!(payload["stackName"], "network", "{seen}");
        assert_eq!(payload["stackLabels"], json!({ "team": "platform" }), "{seen}");
        for field in ["mode", "readOnly", "commitSha", "origin", "url"] {
            assert_eq!(payload[field], view[field], "{field} of {seen}");
        }
        let by_person = name.ends_with(".confirmed") || name.ends_with(".skipped") || name.ends_with(".cancelled");
        let by_server = event == events.last().unwrap() && matches!(way.happens.last(), Some(Silence(_) | Nothing));
        assert!(!(by_person && by_server), "{seen}");
        assert_eq!(event["actorId"], if by_server { Value::Null } else { tenant.principal.clone().into() }, "{seen}");
        let confirmed = name.ends_with(".confirmed").then(|| tenant.principal.clone());
        assert_eq!(payload.get("confirmedBy"), confirmed.map(Value::from).as_ref(), "{seen}");
        let bytes = (name == "run_command.executed").then(|| COMMAND.len().into());
        assert_eq!(payload.get("commandBytes"), bytes.as_ref(), "{seen}");
        // What opens parked is so when it is created.
        let asks = name.ends_with(".awaiting_confirmation");
        assert!(payload["status"] != "awaiting_confirmation" || asks || name == "deployment.created", "{seen}");
    }
    let last = &events.last().unwrap()["payload"];
    let plan = way.happens.iter().rev().find_map(|what| match what {
        Run("plan", "succeeded", plan) => Some(plan.summary()),
        _ => None,
    });
    let (error, skipped) = reasons(way);
    for (field, expected) in [
        ("status", way.ends.into()),
        ("error", error),
        ("skippedReason", skipped),
        ("planSummary", plan.flatten().unwrap_or_default()),
    ] {
        assert_eq!(last[field], expected, "{field} of {}: {last}", way.name);
        assert_eq!(view[field], expected, "{field} of {}: {view}", way.name);
    }
}

async fn every_way_tells_what_the_table_says(engine: Engine) {
    let world = World::start(engine, &[]).await;
    for way in WAYS {
        let tenant = world.tenant().await;
        let all = json!({ "events": AnnouncedType::ALL, "paused": true });
        tenant.webhook("all", &world.sink, &[], all).await;
        let stack = stack(&tenant, json!({ "prPlanMode": way.previews })).await;
        let new = (way.new)();
        let deployment = deploy(&tenant, &stack, new.clone()).await;
        for what in way.happens {
            happens(&tenant, &stack, &deployment, &new, *what).await;
        }
        let events = tenant.events(&format!("entityType=deployment&entityId={deployment}")).await;
        let told: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(told[0], "deployment.created", "{}", way.name);
        assert_eq!(told[1..], *way.told, "{}", way.name);
        let view = tenant.get(&tenant.org(&format!("/deployments/{deployment}"))).await.expect(200);
        assert_eq!(view["status"], way.ends, "{}", way.name);
        assert_eq!(view["finishedAt"].is_null(), way.ends == "awaiting_confirmation", "{}", way.name);
        tells(way, &tenant, &events, &view);
        let expected: Vec<Value> = way
            .told
            .iter()
            .filter(|told| !told.ends_with(".confirmed") && !told.ends_with(".skipped"))
            .map(|told| told.replace('.', "_").into())
            .collect();
        assert_eq!(announced(&world, &tenant, &deployment).await, expected, "{}", way.name);
    }
    world.finish().await;
}

#[tokio::test]
async fn every_way_tells_what_the_table_says_on_postgres() {
    every_way_tells_what_the_table_says(Engine::Postgres).await;
}

#[tokio::test]
async fn every_way_tells_what_the_table_says_on_sqlite() {
    every_way_tells_what_the_table_says(Engine::Sqlite).await;
}

/// Every announced type of this family is at the end of some way here, or of one below.
#[test]
fn the_ways_lead_to_every_type_of_deployments() {
    let elsewhere = ["deployment_auto_skipped", "dependent_trigger_failed"];
    let told: Vec<_> = WAYS.iter().flat_map(|way| way.told).map(|told| told.replace('.', "_")).collect();
    for announced in &AnnouncedType::ALL[..13] {
        let name = announced.as_str();
        assert_ne!(told.iter().any(|told| told == name), elsewhere.contains(&name), "{name}");
    }
}
