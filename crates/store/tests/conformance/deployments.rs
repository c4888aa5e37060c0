//! Stacks and deployments: lives, runs, ends that race, and what depends on what.

use std::sync::Arc;

use courant_api::deployments::{
    Dependency, DeploymentCreate, DeploymentMode, DeploymentRunComplete, DeploymentRunStatus, DeploymentRunView,
    DeploymentStatus, DeploymentView, Origin, OriginGiven, PlanSummary, PrPlanMode, RunKind, RunOutcome, StackCreate,
    StackPatch, StackView,
};
use courant_api::{DeploymentId, DeploymentRunId, Event, Permission, Resource, StackId, WorkspaceId};
use courant_store::{Change, DeploymentQuery, DeploymentStep, Error, Options, RunNew, StackQuery, Store};
use futures_util::future::join;
use serde_json::json;

use crate::world::{Tenant, World, at, conflict, denied, not_found, now, payload, types};
use crate::{cases, second_server};

cases![
    stacks_are_created_changed_listed_moved_and_deleted,
    a_plan_is_confirmed_and_applied,
    the_plan_that_is_applied_is_the_latest_at_the_confirmation_or_the_one_named,
    a_newer_preview_retires_the_older_ones_once,
    an_apply_starts_what_depends_on_it_and_says_when_it_cannot,
    what_nobody_reports_fails_in_time,
    an_end_is_told_once_whoever_ends_it,
    racing_steps_tell_once_and_refuse_once,
    an_untold_end_is_told_by_the_sweep,
    ends_from_before_the_feature_are_not_told,
    rights_are_asked_where_the_stack_lies,
    another_tenants_deployments_do_not_exist,
    the_graph_of_stacks_has_what_is_gone,
];

fn new_stack(name: &str, workspace_id: Option<WorkspaceId>, depends_on: &[(StackId, bool)]) -> StackCreate {
    StackCreate {
        name: name.into(),
        workspace_id,
        labels: [("team".to_owned(), "platform".to_owned())].into(),
        repository: Some("github.com/acme/infra".into()),
        path: Some(name.into()),
        depends_on: depends_on
            .iter()
            .map(|(stack_id, trigger)| Dependency { stack_id: *stack_id, trigger: *trigger })
            .collect(),
        pr_plan_mode: None,
    }
}

pub async fn stack(world: &World, tenant: &Tenant, name: &str, depends_on: &[(StackId, bool)]) -> StackView {
    now(world.store.stack_create(tenant.change_at(1), new_stack(name, None, depends_on)).await.unwrap())
}

pub fn of(stack_id: StackId, mode: DeploymentMode) -> DeploymentCreate {
    DeploymentCreate {
        stack_id,
        mode,
        commit_sha: Some("4f9c2d1".into()),
        commit_message: Some("Widen the subnet; token=abcdefghijklmnop".into()),
        origin: None,
        read_only: None,
        url: None,
    }
}

fn preview(stack_id: StackId, number: i64) -> DeploymentCreate {
    let origin = OriginGiven::PullRequest { number, title: None, branch: None, url: None };
    DeploymentCreate { origin: Some(origin), ..of(stack_id, DeploymentMode::PlanUnlocked) }
}

pub async fn deploy(world: &World, tenant: &Tenant, new: DeploymentCreate) -> DeploymentView {
    now(world.store.deployment_create(tenant.change_at(2), new).await.unwrap())
}

pub fn run(kind: RunKind) -> RunNew {
    RunNew { kind, plan_run_id: None, command_bytes: (kind == RunKind::Command).then_some(4) }
}

pub async fn start(world: &World, tenant: &Tenant, id: DeploymentId, new: RunNew) -> DeploymentRunView {
    now(world.store.deployment_run_start(tenant.change_at(3), id, new).await.unwrap())
}

pub fn ended(status: RunOutcome, plan: Option<(i64, Option<bool>)>) -> DeploymentRunComplete {
    let plan_summary = plan.map(|(add, has_changes)| PlanSummary {
        add,
        change: 0,
        destroy: 0,
        has_changes,
        complete: true,
        gap_reasons: Vec::new(),
    });
    DeploymentRunComplete { status, plan_summary, error: None }
}

pub async fn end(
    world: &World,
    tenant: &Tenant,
    run: DeploymentRunId,
    end: DeploymentRunComplete,
) -> DeploymentRunView {
    now(world.store.deployment_run_complete(tenant.change_at(4), run, end).await.unwrap())
}

async fn step(world: &World, tenant: &Tenant, id: DeploymentId, step: DeploymentStep) -> Result<DeploymentView, Error> {
    world.store.deployment_step(tenant.change_at(5), id, step).await.map(now)
}

async fn status(world: &World, tenant: &Tenant, id: DeploymentId) -> DeploymentStatus {
    world.store.deployment_get(tenant.id, id).await.unwrap().0.status
}

fn illegal<T: std::fmt::Debug>(outcome: Result<T, Error>, state: &str, wish: &str) {
    match outcome {
        Err(Error::Illegal(illegal)) => assert_eq!((illegal.state, illegal.wish), (state, wish)),
        other => panic!("{other:?}"),
    }
}

async fn stacks_are_created_changed_listed_moved_and_deleted(world: World) {
    let tenant = world.tenant().await;
    let (above, elsewhere) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let inner = world.workspace(&tenant, Some(above)).await;
    let begin = world.end(&tenant).await;
    let network = now(world.store.stack_create(tenant.change(), new_stack("network", Some(inner), &[])).await.unwrap());
    let cluster = stack(&world, &tenant, "cluster", &[(network.id, true)]).await;
    assert_eq!(world.store.stack_get(tenant.id, cluster.id).await.unwrap(), cluster);
    let listed = async |query| world.store.stack_list(tenant.id, query, None, 10).await.unwrap().items;
    assert_eq!(listed(StackQuery::default()).await, [cluster.clone(), network.clone()]);
    assert_eq!(listed(StackQuery { workspace_id: Some(above), name: None }).await, std::slice::from_ref(&network));
    let named = StackQuery { workspace_id: None, name: Some("cluster".into()) };
    assert_eq!(listed(named).await, std::slice::from_ref(&cluster));
    let patch = StackPatch {
        name: Some("net".into()),
        workspace_id: Some(Some(elsewhere)),
        labels: Some([("team".to_owned(), "password: hunter2hunter2".to_owned())].into()),
        repository: Some(None),
        path: Some(None),
        depends_on: Some(vec![Dependency { stack_id: cluster.id, trigger: false }]),
        pr_plan_mode: Some(PrPlanMode::Manual),
    };
    let changed = now(world.store.stack_update(tenant.change(), network.id, patch.clone()).await.unwrap());
    assert_eq!((changed.version, changed.repository.as_deref(), changed.depends_on.len()), (2, None, 1));
    assert_eq!(now(world.store.stack_update(tenant.change(), network.id, patch).await.unwrap()), changed);
    let stale = Change { if_match: Some(vec![1]), ..tenant.change() };
    let refused = world.store.stack_update(stale.clone(), network.id, StackPatch::default()).await;
    assert!(matches!(refused, Err(Error::VersionConflict { current: 2 })));
    assert!(matches!(world.store.stack_delete(stale, network.id).await, Err(Error::VersionConflict { .. })));
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["stack.created", "stack.created", "stack.updated", "workspace.entity_left"]);
    let all = json!(["name", "workspaceId", "labels", "repository", "path", "dependsOn", "prPlanMode"]);
    assert_eq!((&payload(&told[2])["changes"], told[2].workspace_id), (&all, Some(elsewhere)));
    assert!(!told[2].payload.text().contains("hunter2"));

    let missing = StackPatch {
        depends_on: Some(vec![Dependency { stack_id: uuid::Uuid::from_u128(9).into(), trigger: true }]),
        ..StackPatch::default()
    };
    not_found(world.store.stack_update(tenant.change(), network.id, missing).await);
    world.store.stack_delete(tenant.change(), cluster.id).await.unwrap();
    not_found(world.store.stack_get(tenant.id, cluster.id).await);
    not_found(world.store.stack_update(tenant.change(), cluster.id, StackPatch::default()).await);
    // What depended on it may be saved with it, and nothing new may name it.
    let kept = StackPatch { depends_on: Some(changed.depends_on.clone()), ..StackPatch::default() };
    world.store.stack_update(tenant.change(), network.id, kept).await.unwrap();
    not_found(world.store.stack_create(tenant.change(), new_stack("new", None, &[(cluster.id, false)])).await);
}

async fn a_plan_is_confirmed_and_applied(world: World) {
    let tenant = world.tenant().await;
    let network = stack(&world, &tenant, "network", &[]).await;
    let base_url = Some(Arc::from("https://courant.example.com"));
    let change = Change { base_url, ..tenant.change_at(2) };
    let begin = world.end(&tenant).await;
    let made = now(world.store.deployment_create(change, of(network.id, DeploymentMode::Plan)).await.unwrap());
    let page = format!("https://courant.example.com/orgs/{}/deployments/{}", tenant.id, made.id);
    assert_eq!((made.status, made.url.as_deref()), (DeploymentStatus::Pending, Some(page.as_str())));
    illegal(step(&world, &tenant, made.id, DeploymentStep::Confirm).await, "pending", "confirm");
    let early = world.store.deployment_run_start(tenant.change(), made.id, run(RunKind::Apply)).await;
    illegal(early, "pending", "start an apply");
    let plan = start(&world, &tenant, made.id, run(RunKind::Plan)).await;
    illegal(
        world.store.deployment_run_start(tenant.change(), made.id, run(RunKind::Plan)).await,
        "running",
        "start a plan",
    );
    let heard = now(world.store.deployment_run_heartbeat(tenant.change_at(9), plan.id).await.unwrap());
    assert_eq!(heard.heartbeat_at, at(9));
    end(&world, &tenant, plan.id, ended(RunOutcome::Succeeded, Some((3, Some(true))))).await;
    illegal(world.store.deployment_run_heartbeat(tenant.change_at(10), plan.id).await, "succeeded", "heartbeat");
    let twice = world.store.deployment_run_complete(tenant.change(), plan.id, ended(RunOutcome::Failed, None)).await;
    illegal(twice, "succeeded", "complete");
    let waiting = world.store.deployment_get(tenant.id, made.id).await.unwrap().0;
    assert_eq!(waiting.plan_summary.map(|plan| plan.add), Some(3));
    let confirmed = step(&world, &tenant, made.id, DeploymentStep::Confirm).await.unwrap();
    assert_eq!((confirmed.status, confirmed.confirmed_by), (DeploymentStatus::Pending, Some(tenant.admin)));
    let apply = start(&world, &tenant, made.id, run(RunKind::Apply)).await;
    assert_eq!(apply.plan_run_id, Some(plan.id));
    let odd = world
        .store
        .deployment_run_complete(tenant.change(), apply.id, ended(RunOutcome::Succeeded, Some((1, None))))
        .await;
    assert!(matches!(&odd, Err(Error::Invalid { field, .. }) if field == "/planSummary"), "{odd:?}");
    end(&world, &tenant, apply.id, ended(RunOutcome::Succeeded, None)).await;
    let done = world.store.deployment_get(tenant.id, made.id).await.unwrap().0;
    assert_eq!((done.status, done.finished_at, done.version), (DeploymentStatus::Finished, Some(at(4)), 6));
    let runs = world.store.deployment_run_list(tenant.id, made.id, None, 10).await.unwrap().items;
    assert_eq!(runs.iter().map(|run| run.kind).collect::<Vec<_>>(), [RunKind::Apply, RunKind::Plan]);
    let told = world.since(&tenant, &begin).await;
    let expected =
        ["created", "awaiting_confirmation", "confirmed", "succeeded"].map(|end| format!("deployment.{end}"));
    assert_eq!(types(&told), expected);
    let last = payload(&told[3]);
    assert_eq!(
        (&last["planSummary"]["add"], &last["url"], &last["stackLabels"]),
        (&json!(3), &json!(page), &json!({ "team": "platform" }))
    );
    assert_eq!(
        (&last["commitMessage"], &payload(&told[2])["confirmedBy"]),
        (&json!("Widen the subnet; token=[redacted]"), &json!(tenant.admin))
    );
    let query =
        DeploymentQuery { statuses: vec![DeploymentStatus::Finished], stack_id: Some(network.id), workspace_id: None };
    assert_eq!(world.store.deployment_list(tenant.id, query, None, 10).await.unwrap().items, [done]);
}

/// Plans, once more for a part, and confirms; the runs and what is applied then.
async fn the_plan_that_is_applied_is_the_latest_at_the_confirmation_or_the_one_named(world: World) {
    let tenant = world.tenant().await;
    let network = stack(&world, &tenant, "network", &[]).await;
    let other = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
    let others = start(&world, &tenant, other.id, run(RunKind::Plan)).await;
    end(&world, &tenant, others.id, ended(RunOutcome::Succeeded, Some((9, None)))).await;
    for named in [false, true] {
        let made = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
        let whole = start(&world, &tenant, made.id, run(RunKind::Plan)).await;
        end(&world, &tenant, whole.id, ended(RunOutcome::Succeeded, Some((5, Some(true))))).await;
        let part = start(&world, &tenant, made.id, run(RunKind::Plan)).await;
        conflict(step(&world, &tenant, made.id, DeploymentStep::Confirm).await);
        conflict(world.store.deployment_run_start(tenant.change(), made.id, run(RunKind::Plan)).await);
        // A part without changes says nothing of the rest: it still waits.
        end(&world, &tenant, part.id, ended(RunOutcome::Succeeded, Some((2, Some(false))))).await;
        assert_eq!(status(&world, &tenant, made.id).await, DeploymentStatus::AwaitingConfirmation);
        step(&world, &tenant, made.id, DeploymentStep::Confirm).await.unwrap();
        let foreign = RunNew { plan_run_id: Some(others.id), ..run(RunKind::Apply) };
        conflict(world.store.deployment_run_start(tenant.change(), made.id, foreign).await);
        let plan_run_id = named.then_some(whole.id);
        let apply = start(&world, &tenant, made.id, RunNew { plan_run_id, ..run(RunKind::Apply) }).await;
        end(&world, &tenant, apply.id, ended(RunOutcome::Failed, None)).await;
        let done = world.store.deployment_get(tenant.id, made.id).await.unwrap().0;
        let (plan, add) = if named { (whole.id, 5) } else { (part.id, 2) };
        assert_eq!((apply.plan_run_id, done.plan_summary.unwrap().add), (Some(plan), add));
        let told = world.events(&tenant).await;
        assert_eq!(payload(told.last().unwrap())["planSummary"]["add"], add);
    }
}

async fn a_newer_preview_retires_the_older_ones_once(world: World) {
    let tenant = world.tenant().await;
    let new = StackCreate { pr_plan_mode: Some(PrPlanMode::Manual), ..new_stack("network", None, &[]) };
    let network = now(world.store.stack_create(tenant.change(), new).await.unwrap());
    let first = deploy(&world, &tenant, preview(network.id, 7)).await;
    assert_eq!(first.status, DeploymentStatus::AwaitingConfirmation);
    assert!(first.read_only);
    step(&world, &tenant, first.id, DeploymentStep::Confirm).await.unwrap();
    let plan = start(&world, &tenant, first.id, run(RunKind::Plan)).await;
    let other = deploy(&world, &tenant, preview(network.id, 8)).await;
    let ungated = deploy(&world, &tenant, of(network.id, DeploymentMode::PlanUnlocked)).await;
    assert_eq!(ungated.status, DeploymentStatus::Pending);
    let begin = world.end(&tenant).await;
    let second = deploy(&world, &tenant, preview(network.id, 7)).await;
    let third = deploy(&world, &tenant, preview(network.id, 7)).await;
    let told = world.since(&tenant, &begin).await;
    let expected = ["deployment.created", "preview.auto_skipped", "preview.awaiting_confirmation"];
    assert_eq!(types(&told), [expected, expected].concat());
    let retired: Vec<_> = [&told[1], &told[4]].map(|event| event.entity_id.clone()).into();
    assert_eq!(retired, [first.id.to_string(), second.id.to_string()]);
    let first = world.store.deployment_get(tenant.id, first.id).await.unwrap().0;
    assert_eq!((first.status, first.skipped_reason.as_deref()), (DeploymentStatus::Skipped, Some("superseded")));
    illegal(
        world.store.deployment_run_complete(tenant.change(), plan.id, ended(RunOutcome::Succeeded, None)).await,
        "cancelled",
        "complete",
    );
    for still in [other.id, third.id, ungated.id] {
        assert!(!status(&world, &tenant, still).await.is_terminal());
    }
    let begin = world.end(&tenant).await;
    let promoted = now(world.store.deployment_promote(tenant.change_at(8), third.id).await.unwrap());
    assert_eq!(
        (promoted.mode, promoted.read_only, promoted.origin.pull_request()),
        (DeploymentMode::Plan, false, Some(7))
    );
    illegal(world.store.deployment_promote(tenant.change(), third.id).await, "awaiting_confirmation", "promote");
    conflict(world.store.deployment_promote(tenant.change(), ungated.id).await);
    assert_eq!(types(&world.since(&tenant, &begin).await), ["pull_request.promoted", "deployment.created"]);
}

/// Plans, confirms and applies.
async fn apply(world: &World, tenant: &Tenant, id: DeploymentId) {
    let plan = start(world, tenant, id, run(RunKind::Plan)).await;
    end(world, tenant, plan.id, ended(RunOutcome::Succeeded, None)).await;
    step(world, tenant, id, DeploymentStep::Confirm).await.unwrap();
    let apply = start(world, tenant, id, run(RunKind::Apply)).await;
    end(world, tenant, apply.id, ended(RunOutcome::Succeeded, None)).await;
}

async fn active_of(world: &World, tenant: &Tenant, stack: StackId) -> DeploymentView {
    let query = DeploymentQuery { stack_id: Some(stack), ..DeploymentQuery::default() };
    world.store.deployment_list(tenant.id, query, None, 1).await.unwrap().items.remove(0)
}

async fn an_apply_starts_what_depends_on_it_and_says_when_it_cannot(world: World) {
    let tenant = world.tenant().await;
    let network = stack(&world, &tenant, "network", &[]).await;
    let cluster = stack(&world, &tenant, "cluster", &[(network.id, true)]).await;
    stack(&world, &tenant, "quiet", &[(network.id, false)]).await;
    let back = StackPatch {
        depends_on: Some(vec![Dependency { stack_id: cluster.id, trigger: true }]),
        ..StackPatch::default()
    };
    world.store.stack_update(tenant.change(), network.id, back).await.unwrap();
    let first = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
    apply(&world, &tenant, first.id).await;
    let started = active_of(&world, &tenant, cluster.id).await;
    let origin = Origin::Dependency { stack_id: network.id, deployment_id: first.id };
    assert_eq!((started.status, started.origin), (DeploymentStatus::Pending, origin));
    let begin = world.end(&tenant).await;
    let second = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
    apply(&world, &tenant, second.id).await;
    // The chain would lead back to where it began.
    apply(&world, &tenant, started.id).await;
    let failures: Vec<Event> =
        world.since(&tenant, &begin).await.into_iter().filter(|e| e.event_type == "dependent_trigger.failed").collect();
    let told: Vec<_> = failures
        .iter()
        .map(|e| (e.entity_id.clone(), payload(e)["dependentStackName"].clone(), payload(e)["reason"].clone()))
        .collect();
    let expected = [
        (second.id.to_string(), json!("cluster"), json!("deployment_active")),
        (started.id.to_string(), json!("network"), json!("dependency_cycle")),
    ];
    assert_eq!(told, expected);
}

async fn what_nobody_reports_fails_in_time(world: World) {
    let tenant = world.tenant().await;
    let network = stack(&world, &tenant, "network", &[]).await;
    let stuck = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
    let silent = deploy(&world, &tenant, of(network.id, DeploymentMode::PlanUnlocked)).await;
    let plan = start(&world, &tenant, silent.id, run(RunKind::Plan)).await;
    world.store.deployment_run_heartbeat(tenant.change_at(50), plan.id).await.unwrap();
    let waits = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
    let whole = start(&world, &tenant, waits.id, run(RunKind::Plan)).await;
    end(&world, &tenant, whole.id, ended(RunOutcome::Succeeded, None)).await;
    let due = async |second| {
        let due = world.store.deployments_due(at(second), 10).await.unwrap();
        due.into_iter().filter(|(of, _)| *of == tenant.id).map(|(_, id)| id).collect::<Vec<_>>()
    };
    assert_eq!(due(301).await, []);
    assert_eq!(due(302).await, [stuck.id]);
    assert_eq!(due(350).await, [silent.id, stuck.id]);
    let begin = world.end(&tenant).await;
    for (id, second) in
        [(stuck.id, 301), (stuck.id, 302), (stuck.id, 303), (silent.id, 349), (silent.id, 350), (waits.id, 9_999)]
    {
        world.store.deployment_expire(Change::by_server(tenant.id, at(second)), id).await.unwrap();
    }
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["deployment.failed", "preview.failed"]);
    assert_eq!(
        (&payload(&told[0])["error"], &payload(&told[1])["error"]),
        (&json!("start_failed"), &json!("runner_lost"))
    );
    let runs = world.store.deployment_run_list(tenant.id, silent.id, None, 10).await.unwrap().items;
    assert_eq!((runs[0].status, runs[0].error.as_deref()), (DeploymentRunStatus::Failed, Some("runner_lost")));
    assert_eq!(status(&world, &tenant, waits.id).await, DeploymentStatus::AwaitingConfirmation);
}

async fn an_end_is_told_once_whoever_ends_it(world: World) {
    let tenant = world.tenant().await;
    let second = Arc::new(second_server(&world).await);
    let network = stack(&world, &tenant, "network", &[]).await;
    let mut ended_by: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for n in 0..200 {
        let made = deploy(&world, &tenant, of(network.id, DeploymentMode::PlanUnlocked)).await;
        let plan = start(&world, &tenant, made.id, run(RunKind::Plan)).await;
        let complete =
            world.store.deployment_run_complete(tenant.change_at(4), plan.id, ended(RunOutcome::Succeeded, None));
        let late = Change::by_server(tenant.id, at(900));
        let expire = second.deployment_expire(late, made.id);
        let cancel = second.deployment_step(tenant.change_at(5), made.id, DeploymentStep::Cancel);
        match n % 3 {
            0 => drop(join(complete, expire).await),
            1 => drop(join(complete, cancel).await),
            _ => drop(join(cancel, expire).await),
        }
        *ended_by.entry(status(&world, &tenant, made.id).await.to_string()).or_default() += 1;
    }
    let events = world.events(&tenant).await;
    let ends: Vec<_> = events.iter().filter(|e| e.event_type.starts_with("preview.")).collect();
    let mut entities: Vec<_> = ends.iter().map(|e| e.entity_id.as_str()).collect();
    entities.sort_unstable();
    entities.dedup();
    assert_eq!((ends.len(), entities.len()), (200, 200), "{ended_by:?}");
}

/// Two callers at once: one changes it, the other one is refused.
async fn race<T>(a: impl Future<Output = Result<T, Error>>, b: impl Future<Output = Result<T, Error>>) {
    let (a, b) = join(a, b).await;
    let lost = match (a, b) {
        (Ok(_), Err(lost)) | (Err(lost), Ok(_)) => lost,
        (Ok(_), Ok(_)) => panic!("both changed it"),
        (Err(a), Err(b)) => panic!("nobody did: {a:?}, {b:?}"),
    };
    assert!(matches!(lost, Error::Illegal(_) | Error::Conflict(_)), "{lost:?}");
}

async fn racing_steps_tell_once_and_refuse_once(world: World) {
    let tenant = world.tenant().await;
    let second = second_server(&world).await;
    let stores: [&Store; 2] = [&world.store, &second];
    let network = stack(&world, &tenant, "network", &[]).await;
    for _ in 0..10 {
        let begin = world.end(&tenant).await;
        let command = deploy(&world, &tenant, of(network.id, DeploymentMode::Raw)).await;
        let [a, b] = stores.map(|s| s.deployment_run_start(tenant.change_at(3), command.id, run(RunKind::Command)));
        race(a, b).await;
        let made = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
        let plan = start(&world, &tenant, made.id, run(RunKind::Plan)).await;
        let done = || ended(RunOutcome::Succeeded, None);
        let [a, b] = stores.map(|s| s.deployment_run_complete(tenant.change_at(4), plan.id, done()));
        race(a, b).await;
        let [a, b] = stores.map(|s| s.deployment_step(tenant.change_at(5), made.id, DeploymentStep::Confirm));
        race(a, b).await;
        let shown = deploy(&world, &tenant, preview(network.id, 7)).await;
        let [a, b] = stores.map(|s| s.deployment_promote(tenant.change_at(6), shown.id));
        race(a, b).await;
        // What was promoted is left, so that the next round's preview retires one of its own.
        step(&world, &tenant, shown.id, DeploymentStep::Cancel).await.unwrap();
        let told = world.since(&tenant, &begin).await;
        let told: Vec<_> = types(&told).into_iter().filter(|name| *name != "deployment.created").collect();
        let expected = [
            "run_command.executed",
            "deployment.awaiting_confirmation",
            "deployment.confirmed",
            "pull_request.promoted",
            "preview.cancelled",
        ];
        assert_eq!(told, expected);
    }
}

async fn an_untold_end_is_told_by_the_sweep(world: World) {
    let tenant = world.tenant().await;
    let network = stack(&world, &tenant, "network", &[]).await;
    let made = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
    // As a server would leave it that wrote the end and died before it told.
    world.raw().await.run("UPDATE deployment SET status = 'failed', error = 'start_failed'").await.unwrap();
    let begin = world.end(&tenant).await;
    let untold = world.store.deployments_untold(10).await.unwrap();
    assert_eq!(untold, [(tenant.id, made.id)]);
    for _ in 0..2 {
        world.store.deployment_tell_end(Change::by_server(tenant.id, at(9)), made.id).await.unwrap();
    }
    assert_eq!(types(&world.since(&tenant, &begin).await), ["deployment.failed"]);
    assert_eq!(world.store.deployments_untold(10).await.unwrap(), []);
}

async fn ends_from_before_the_feature_are_not_told(world: World) {
    let tenant = world.tenant().await;
    let network = stack(&world, &tenant, "network", &[]).await;
    for _ in 0..2 {
        deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
    }
    let raw = world.raw().await;
    let last = "(SELECT id FROM deployment ORDER BY id DESC LIMIT 1)";
    // The schema before the ninth migration, whose successors only add to other tables.
    let later =
        ["events", "stack_labels", "changes_only", "digest_schedule", "edited_at", "digest_sent_at", "digest_counts"];
    let tables = "DROP TABLE delivery_attempt; DROP TABLE integration_health";
    let indexes = "DROP INDEX delivery_dead; DROP INDEX integration_by_digest; DROP INDEX deployment_end_untold";
    raw.run(&format!("{tables}; {indexes}")).await.unwrap();
    for column in later {
        raw.run(&format!("ALTER TABLE integration DROP COLUMN {column}")).await.unwrap();
    }
    raw.run("ALTER TABLE deployment DROP COLUMN end_told_at; DELETE FROM schema_migration WHERE number >= 9")
        .await
        .unwrap();
    raw.run(&format!("UPDATE deployment SET status = 'finished' WHERE id = {last}")).await.unwrap();
    let begin = world.end(&tenant).await;
    let store = Store::open(&Options { migrate: true, ..Options::command(world.url()) }).await.unwrap();
    assert_eq!(store.deployments_untold(10).await.unwrap(), []);
    assert_eq!(world.since(&tenant, &begin).await, []);
}

async fn rights_are_asked_where_the_stack_lies(world: World) {
    let tenant = world.tenant().await;
    let (here, there) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let network = now(world.store.stack_create(tenant.change(), new_stack("network", Some(here), &[])).await.unwrap());
    let made = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
    let plan = start(&world, &tenant, made.id, run(RunKind::Plan)).await;
    let with = |permission, workspace| tenant.change_with(&[(permission, Resource::Workspace(workspace))]);
    let (run_there, confirm_there) = (Permission::DeploymentsRun, Permission::DeploymentsConfirm);
    denied(world.store.deployment_create(with(run_there, there), of(network.id, DeploymentMode::Plan)).await);
    denied(world.store.deployment_run_start(with(run_there, there), made.id, run(RunKind::Plan)).await);
    denied(world.store.deployment_run_heartbeat(with(confirm_there, here), plan.id).await);
    denied(world.store.deployment_run_complete(with(run_there, there), plan.id, ended(RunOutcome::Failed, None)).await);
    denied(world.store.deployment_step(with(run_there, here), made.id, DeploymentStep::Cancel).await);
    denied(world.store.deployment_promote(with(run_there, here), made.id).await);
    let manage = Permission::StacksManage;
    denied(world.store.stack_create(with(manage, there), new_stack("other", Some(here), &[])).await);
    let away = StackPatch { workspace_id: Some(Some(there)), ..StackPatch::default() };
    denied(world.store.stack_update(with(manage, here), network.id, away).await);
    denied(world.store.stack_delete(with(manage, there), network.id).await);
    conflict(world.store.stack_delete(with(manage, here), network.id).await);
    world.store.deployment_run_complete(with(run_there, here), plan.id, ended(RunOutcome::Failed, None)).await.unwrap();
    world.store.stack_delete(with(manage, here), network.id).await.unwrap();
    let below = DeploymentQuery { workspace_id: Some(here), ..DeploymentQuery::default() };
    assert_eq!(world.store.deployment_list(tenant.id, below, None, 10).await.unwrap().items.len(), 1);
}

async fn another_tenants_deployments_do_not_exist(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let theirs = stack(&world, &other, "network", &[]).await;
    let made = deploy(&world, &other, of(theirs.id, DeploymentMode::Plan)).await;
    let plan = start(&world, &other, made.id, run(RunKind::Plan)).await;
    not_found(world.store.stack_get(tenant.id, theirs.id).await);
    not_found(world.store.stack_update(tenant.change(), theirs.id, StackPatch::default()).await);
    not_found(world.store.stack_delete(tenant.change(), theirs.id).await);
    not_found(world.store.stack_create(tenant.change(), new_stack("mine", None, &[(theirs.id, true)])).await);
    not_found(world.store.deployment_create(tenant.change(), of(theirs.id, DeploymentMode::Plan)).await);
    not_found(world.store.deployment_get(tenant.id, made.id).await);
    not_found(world.store.deployment_step(tenant.change(), made.id, DeploymentStep::Cancel).await);
    not_found(world.store.deployment_promote(tenant.change(), made.id).await);
    not_found(world.store.deployment_run_start(tenant.change(), made.id, run(RunKind::Plan)).await);
    not_found(world.store.deployment_run_heartbeat(tenant.change(), plan.id).await);
    not_found(world.store.deployment_run_complete(tenant.change(), plan.id, ended(RunOutcome::Failed, None)).await);
    assert_eq!(world.store.deployment_run_list(tenant.id, made.id, None, 10).await.unwrap().items, []);
    assert_eq!(world.store.stack_list(tenant.id, StackQuery::default(), None, 10).await.unwrap().items, []);
}

async fn the_graph_of_stacks_has_what_is_gone(world: World) {
    let tenant = world.tenant().await;
    let gone = stack(&world, &tenant, "gone", &[]).await;
    let network = stack(&world, &tenant, "network", &[]).await;
    let cluster = stack(&world, &tenant, "cluster", &[(network.id, true), (gone.id, false)]).await;
    let back = StackPatch {
        depends_on: Some(vec![Dependency { stack_id: cluster.id, trigger: false }]),
        ..StackPatch::default()
    };
    world.store.stack_update(tenant.change(), network.id, back).await.unwrap();
    world.store.stack_delete(tenant.change(), gone.id).await.unwrap();
    let graph = world.store.stack_graph(tenant.id, 100).await.unwrap();
    let shown: Vec<_> = graph.iter().map(|stack| (stack.id, stack.depends_on.clone())).collect();
    assert_eq!(shown, [(network.id, vec![cluster.id]), (cluster.id, vec![gone.id, network.id])]);
    let some: usize = world.store.stack_graph(tenant.id, 2).await.unwrap().iter().map(|s| s.depends_on.len()).sum();
    assert_eq!(some, 2);
}
