//! Every row of the table of transitions, driven to its end: what it tells, once, and what that is announced as.

use std::time::Duration;

use courant_api::announced::AnnouncedType;
use courant_testkit::DrivenClock;

use super::{complete, deploy, preview, run, stack, step};
use crate::support::{Engine, Tenant, Value, World, eventually, json};

/// One thing that happens to a deployment.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// A run of this kind begins and ends so.
    Run(&'static str, &'static str, Plan),
    /// A run of this kind begins, and its runner is heard of no more.
    Silence(&'static str),
    /// Nobody begins a run.
    Nothing,
    /// A person does this.
    Person(&'static str),
    /// A newer preview of the same pull request.
    Newer,
}

/// What a plan reports.
#[derive(Clone, Copy, Debug)]
enum Plan {
    /// No summary.
    None,
    /// Changes.
    Changes,
    /// Measured: no changes.
    NoChanges,
    /// Counts, and no verdict.
    Unmeasured,
    /// Not everything was looked at.
    Incomplete,
}

impl Plan {
    fn summary(self) -> Option<Value> {
        let summary = |add: i64, has_changes: Option<bool>, gaps: &[&str]| json!({ "add": add, "change": 0, "destroy": 0, "hasChanges": has_changes, "complete": gaps.is_empty(), "gapReasons": gaps });
        match self {
            Self::None => None,
            Self::Changes => Some(summary(3, Some(true), &[])),
            Self::NoChanges => Some(summary(0, Some(false), &[])),
            Self::Unmeasured => Some(summary(0, None, &[])),
            Self::Incomplete => Some(summary(0, Some(false), &["a module was not read"])),
        }
    }
}

/// A row of the table.
struct Way {
    name: &'static str,
    /// The stack's `prPlanMode`.
    previews: &'static str,
    /// The deployment.
    new: fn() -> Value,
    happens: &'static [Happens],
    /// What is told after `deployment.created`.
    told: &'static [&'static str],
    /// Where it stands at last.
    ends: &'static str,
}

use Happens::{Newer, Nothing, Person, Run, Silence};

const PLANNED: Happens = Run("plan", "succeeded", Plan::Changes);
const FAILED: Happens = Run("plan", "failed", Plan::None);

fn plan() -> Value {
    json!({})
}

fn plan_only() -> Value {
    json!({ "readOnly": true })
}

fn unlocked() -> Value {
    json!({ "mode": "plan_unlocked" })
}

fn of_pull_request() -> Value {
    preview(7)
}

fn raw() -> Value {
    json!({ "mode": "raw" })
}

const fn way(
    name: &'static str,
    new: fn() -> Value,
    happens: &'static [Happens],
    told: &'static [&'static str],
    ends: &'static str,
) -> Way {
    Way { name, previews: "auto", new, happens, told, ends }
}

const fn manual(
    name: &'static str,
    happens: &'static [Happens],
    told: &'static [&'static str],
    ends: &'static str,
) -> Way {
    Way { name, previews: "manual", new: of_pull_request, happens, told, ends }
}

const WAYS: &[Way] = &[
    way("a plan with changes parks", plan, &[PLANNED], &["deployment.awaiting_confirmation"], "awaiting_confirmation"),
    way(
        "a plan that was not measured parks",
        plan,
        &[Run("plan", "succeeded", Plan::Unmeasured)],
        &["deployment.awaiting_confirmation"],
        "awaiting_confirmation",
    ),
    way(
        "a plan without a summary parks",
        plan,
        &[Run("plan", "succeeded", Plan::None)],
        &["deployment.awaiting_confirmation"],
        "awaiting_confirmation",
    ),
    way(
        "an applied deployment succeeds",
        plan,
        &[PLANNED, Person("confirm"), Run("apply", "succeeded", Plan::None)],
        &["deployment.awaiting_confirmation", "deployment.confirmed", "deployment.succeeded"],
        "finished",
    ),
    way(
        "a plan without changes ends without an apply",
        plan,
        &[Run("plan", "succeeded", Plan::NoChanges)],
        &["deployment.succeeded"],
        "finished",
    ),
    way(
        "a plan that says no changes of what it has not all looked at ends as its tool's verdict has it",
        plan,
        &[Run("plan", "succeeded", Plan::Incomplete)],
        &["deployment.succeeded"],
        "finished",
    ),
    way("what only plans ends with its plan", plan_only, &[PLANNED], &["deployment.succeeded"], "finished"),
    way("a failed plan fails it", plan, &[FAILED], &["deployment.failed"], "failed"),
    way(
        "a failed apply fails it",
        plan,
        &[PLANNED, Person("confirm"), Run("apply", "failed", Plan::None)],
        &["deployment.awaiting_confirmation", "deployment.confirmed", "deployment.failed"],
        "failed",
    ),
    way("a silent runner fails it", plan, &[Silence("plan")], &["deployment.failed"], "failed"),
    way("what is not started fails", plan, &[Nothing], &["deployment.failed"], "failed"),
    way(
        "an apply that is not started fails it",
        plan,
        &[PLANNED, Person("confirm"), Nothing],
        &["deployment.awaiting_confirmation", "deployment.confirmed", "deployment.failed"],
        "failed",
    ),
    way("it is cancelled", plan, &[Person("cancel")], &["deployment.cancelled"], "cancelled"),
    way(
        "what waits is cancelled",
        plan,
        &[PLANNED, Person("cancel")],
        &["deployment.awaiting_confirmation", "deployment.cancelled"],
        "cancelled",
    ),
    way("a person skips it", plan, &[Person("skip")], &["deployment.skipped"], "skipped"),
    way("a preview succeeds", unlocked, &[PLANNED], &["preview.succeeded"], "finished"),
    way(
        "a preview without changes succeeds",
        unlocked,
        &[Run("plan", "succeeded", Plan::NoChanges)],
        &["preview.succeeded"],
        "finished",
    ),
    way("a preview fails", unlocked, &[FAILED], &["preview.failed"], "failed"),
    way("a preview's silent runner fails it", unlocked, &[Silence("plan")], &["preview.failed"], "failed"),
    way("a preview that is not started fails", unlocked, &[Nothing], &["preview.failed"], "failed"),
    way("a preview is cancelled", unlocked, &[Person("cancel")], &["preview.cancelled"], "cancelled"),
    way("a person skips a preview", unlocked, &[Person("skip")], &["preview.skipped"], "skipped"),
    way("a newer preview retires it", of_pull_request, &[Newer], &["preview.auto_skipped"], "skipped"),
    way(
        "a newer preview leaves what has ended",
        of_pull_request,
        &[PLANNED, Newer],
        &["preview.succeeded"],
        "finished",
    ),
    manual(
        "a preview of a manual stack opens parked",
        &[],
        &["preview.awaiting_confirmation"],
        "awaiting_confirmation",
    ),
    manual(
        "a parked preview is confirmed and succeeds",
        &[Person("confirm"), PLANNED],
        &["preview.awaiting_confirmation", "preview.confirmed", "preview.succeeded"],
        "finished",
    ),
    manual(
        "a parked preview is retired once",
        &[Newer, Newer],
        &["preview.awaiting_confirmation", "preview.auto_skipped"],
        "skipped",
    ),
    way(
        "a preview is promoted once",
        of_pull_request,
        &[PLANNED, Person("promote")],
        &["preview.succeeded", "pull_request.promoted"],
        "finished",
    ),
    way(
        "a command is told at its submission, and its end is the deployment's",
        raw,
        &[Run("command", "succeeded", Plan::None)],
        &["run_command.executed", "deployment.succeeded"],
        "finished",
    ),
    way(
        "a command fails",
        raw,
        &[Run("command", "failed", Plan::None)],
        &["run_command.executed", "deployment.failed"],
        "failed",
    ),
];

async fn happens(tenant: &Tenant, stack: &str, deployment: &str, new: &Value, what: Happens) {
    match what {
        Run(kind, status, plan) => {
            let begun = begin(tenant, deployment, kind).await;
            let mut end = json!({ "status": status });
            if let Some(summary) = plan.summary() {
                end["planSummary"] = summary;
            }
            complete(tenant, &begun, end).await;
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
        body["command"] = "tofu state list".into();
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

/// What was announced to an integration that wants everything, of this deployment.
async fn announced(world: &World, tenant: &Tenant, deployment: &str) -> Vec<Value> {
    let horizon = world.app.store.journal_horizon().await.unwrap();
    world.announced(horizon).await;
    let mut of: Vec<_> = tenant.deliveries().await.into_iter().filter(|d| d["deploymentId"] == deployment).collect();
    of.reverse();
    of.into_iter().map(|mut delivery| delivery["eventType"].take()).collect()
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
        let told = super::told(&tenant, &deployment).await;
        assert_eq!(told[0], "deployment.created", "{}", way.name);
        assert_eq!(told[1..], *way.told, "{}", way.name);
        let view = tenant.get(&tenant.org(&format!("/deployments/{deployment}"))).await.expect(200);
        assert_eq!(view["status"], way.ends, "{}", way.name);
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

    let deployment = deploy(&tenant, &network, json!({})).await;
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
    let told = announced(world, &tenant, &deployment).await;
    assert_eq!(told.last(), Some(&json!("dependent_trigger_failed")));

    // A stack that goes takes what waits for it along, by itself.
    let waiting = super::parked(&tenant, &cluster_free(&tenant).await).await;
    let gone = tenant.get(&tenant.org(&format!("/deployments/{waiting}"))).await.expect(200)["stackId"].clone();
    tenant.delete(&tenant.org(&format!("/stacks/{}", gone.as_str().unwrap()))).await.expect(204);
    assert_eq!(super::told(&tenant, &waiting).await.last().unwrap(), "deployment.auto_skipped");
    assert_eq!(announced(world, &tenant, &waiting).await.last(), Some(&json!("deployment_auto_skipped")));
}

/// A stack that nothing else happens to.
async fn cluster_free(tenant: &Tenant) -> String {
    stack(tenant, json!({ "name": "alone" })).await
}

crate::support::on_both_databases! {
    an_apply_tells_the_plan_that_it_applied_and_starts_what_depends_on_it,
}
