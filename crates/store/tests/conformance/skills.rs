//! Skill invocations: wanted, claimed, tried again, ended.

use courant_api::resources::{SkillFail, SkillInvocationView, SkillInvoke, SkillRetry, SkillStatus};
use courant_api::work::{TaskPatch, TaskStatus};
use courant_api::{Permission, PrincipalId, Resource, TaskId};
use courant_store::{Change, Error, SkillQuery, SkillStep};
use serde_json::json;

use crate::cases;
use crate::resources::task;
use crate::world::{Tenant, World, at, conflict, denied, not_found, now, payload, types};

cases![
    an_invocation_is_claimed_tried_again_and_done,
    attempts_and_states_are_bounds,
    what_is_somebody_elses_needs_a_further_right,
    another_tenants_invocations_do_not_exist,
];

fn wanted(task_id: TaskId, max_attempts: Option<i64>) -> SkillInvoke {
    SkillInvoke { task_id, skill: "docs/translate".into(), skill_version: "1.2".into(), max_attempts }
}

fn by(tenant: &Tenant, principal: PrincipalId, second: i64) -> Change {
    Change { actor_id: Some(principal), ..tenant.change_at(second) }
}

fn retry(available_at: Option<i64>) -> SkillStep {
    SkillStep::Retry(SkillRetry { error_code: "rate_limited".into(), available_at: available_at.map(at) })
}

fn fail() -> SkillStep {
    SkillStep::Fail(SkillFail { error_code: "no_model".into() })
}

async fn request(world: &World, tenant: &Tenant, new: SkillInvoke) -> SkillInvocationView {
    now(world.store.skill_request(tenant.change_at(1), new).await.unwrap())
}

async fn an_invocation_is_claimed_tried_again_and_done(world: World) {
    let tenant = world.tenant().await;
    let (here, agent) = (world.workspace(&tenant, None).await, world.principal(&tenant).await);
    let task = task(&world, &tenant, Some(here)).await;
    let begin = world.end(&tenant).await;
    let made = request(&world, &tenant, wanted(task.id, None)).await;
    assert_eq!((made.attempt, made.max_attempts, made.claimed_by), (0, 3, None));
    let step = async |second, step| world.store.skill_advance(by(&tenant, agent, second), made.id, step).await.map(now);
    let claimed = step(2, SkillStep::Claim).await.unwrap();
    assert_eq!((claimed.attempt, claimed.claimed_by), (1, Some(agent)));
    let waits = step(3, retry(Some(10))).await.unwrap();
    let expected = (SkillStatus::Requested, None, Some("rate_limited"), at(10));
    assert_eq!((waits.status, waits.claimed_by, waits.error_code.as_deref(), waits.available_at), expected);
    conflict(step(9, SkillStep::Claim).await);
    step(10, SkillStep::Claim).await.unwrap();
    let done = step(11, SkillStep::Succeed).await.unwrap();
    assert_eq!(
        (done.status, done.attempt, done.error_code.clone(), done.version),
        (SkillStatus::Succeeded, 2, None, 5)
    );
    assert_eq!(world.store.skill_get(tenant.id, made.id).await.unwrap(), (done.clone(), Some(here)));
    let list = async |query| world.store.skill_list(tenant.id, query, None, 10).await.unwrap().items;
    let of = |statuses: &[SkillStatus], skill: &str| SkillQuery {
        workspace_id: Some(here),
        statuses: statuses.to_vec(),
        task_id: Some(task.id),
        skill: Some(skill.to_owned()),
    };
    assert_eq!(list(of(&[SkillStatus::Succeeded], "docs/translate")).await, std::slice::from_ref(&done));
    assert_eq!(list(of(&[SkillStatus::Failed], "docs/translate")).await, []);
    assert_eq!(list(of(&[], "docs/other")).await, []);
    assert_eq!(list(SkillQuery::default()).await, [done]);
    let told = world.since(&tenant, &begin).await;
    let expected = ["requested", "claimed", "retry_scheduled", "claimed", "succeeded"];
    assert_eq!(types(&told), expected.map(|what| format!("skill.invocation_{what}")));
    assert!(told.iter().all(|event| event.workspace_id == Some(here) && event.entity_type == "skill_invocation"));
    let retried = json!({ "taskId": task.id, "skill": "docs/translate", "skillVersion": "1.2", "attempt": 1,
        "errorCode": "rate_limited" });
    assert_eq!(payload(&told[2]), retried);
}

async fn attempts_and_states_are_bounds(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    let made = request(&world, &tenant, wanted(task.id, Some(1))).await;
    let step = async |step| world.store.skill_advance(tenant.change_at(5), made.id, step).await.map(now);
    assert!(matches!(step(SkillStep::Succeed).await, Err(Error::Illegal(_))));
    step(SkillStep::Claim).await.unwrap();
    assert!(matches!(step(SkillStep::Claim).await, Err(Error::Illegal(_))));
    let before = world.end(&tenant).await;
    conflict(step(retry(None)).await);
    assert_eq!(world.since(&tenant, &before).await, []);
    assert_eq!(step(fail()).await.unwrap().error_code.as_deref(), Some("no_model"));
    assert!(matches!(step(SkillStep::Cancel).await, Err(Error::Illegal(_))));
    // A time that has passed is now.
    let again = request(&world, &tenant, wanted(task.id, None)).await;
    world.store.skill_advance(tenant.change_at(5), again.id, SkillStep::Claim).await.unwrap();
    let waits = now(world.store.skill_advance(tenant.change_at(6), again.id, retry(Some(2))).await.unwrap());
    assert_eq!(waits.available_at, at(6));
    now(world.store.skill_advance(tenant.change_at(6), again.id, SkillStep::Cancel).await.unwrap());
    let cancelled = TaskPatch { status: Some(TaskStatus::Cancelled), ..TaskPatch::default() };
    world.store.task_update(tenant.change(), task.id, cancelled).await.unwrap();
    let outcome = world.store.skill_request(tenant.change(), wanted(task.id, None)).await;
    assert!(matches!(outcome, Err(Error::Illegal(_))), "{outcome:?}");
}

async fn what_is_somebody_elses_needs_a_further_right(world: World) {
    let tenant = world.tenant().await;
    let (here, agent) = (world.workspace(&tenant, None).await, world.principal(&tenant).await);
    let task = task(&world, &tenant, Some(here)).await;
    let made = request(&world, &tenant, wanted(task.id, None)).await;
    let with = |permissions: &[Permission]| {
        let grants: Vec<_> = permissions.iter().map(|p| (*p, Resource::Workspace(here))).collect();
        Change { actor_id: Some(agent), ..tenant.change_with(&grants) }
    };
    let work = || with(&[Permission::TasksWork]);
    denied(world.store.skill_request(with(&[Permission::TasksRead]), wanted(task.id, None)).await);
    denied(world.store.skill_advance(work(), made.id, SkillStep::Cancel).await);
    world.store.skill_advance(tenant.change_at(5), made.id, SkillStep::Claim).await.unwrap();
    for step in [retry(None), SkillStep::Succeed, fail()] {
        denied(world.store.skill_advance(work(), made.id, step).await);
    }
    let both = with(&[Permission::TasksWork, Permission::TasksUpdate]);
    world.store.skill_advance(both, made.id, retry(None)).await.unwrap();
    world.store.skill_advance(Change { now: at(10), ..work() }, made.id, SkillStep::Claim).await.unwrap();
    world.store.skill_advance(work(), made.id, SkillStep::Succeed).await.unwrap();
}

async fn another_tenants_invocations_do_not_exist(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let theirs = task(&world, &other, None).await;
    let made = request(&world, &other, wanted(theirs.id, None)).await;
    not_found(world.store.skill_request(tenant.change(), wanted(theirs.id, None)).await);
    not_found(world.store.skill_advance(tenant.change(), made.id, SkillStep::Claim).await);
    not_found(world.store.skill_get(tenant.id, made.id).await);
    assert_eq!(world.store.skill_list(tenant.id, SkillQuery::default(), None, 10).await.unwrap().items, []);
}
