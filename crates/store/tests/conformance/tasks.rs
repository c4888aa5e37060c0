//! Tasks, claims and comments: lives, leases, fencing, moves and gates.

use courant_api::work::{
    Because, ClaimStatus, ClaimView, CommentCreate, RunStart, RunStatus, TaskClaim, TaskComplete, TaskCreate,
    TaskPatch, TaskPriority, TaskStatus, TaskView, VerificationStart,
};
use courant_api::{Permission, PrincipalId, Resource, TaskId, WorkspaceId};
use courant_store::{Change, Error, RunEnd, TaskQuery, VerificationEnd};
use serde_json::json;

use crate::cases;
use crate::world::{Tenant, World, at, conflict, denied, not_found, now, payload, types};

cases![
    a_task_is_numbered_changed_and_listed,
    a_patch_that_changes_nothing_tells_nothing,
    a_claim_is_one_principals_until_it_ends,
    a_lease_that_has_ended_holds_nothing,
    completion_takes_the_token_of_the_claim_in_force,
    a_task_that_is_blocked_or_cancelled_is_nobodys,
    a_move_is_told_where_it_went_and_where_it_left,
    rights_are_asked_where_the_task_lies,
    a_gate_holds_claim_and_completion,
    comments_are_kept_and_only_their_length_is_told,
    runs_are_attempts_under_the_claim_in_force,
    verifications_that_fail_in_a_row_block_the_task,
    another_tenants_tasks_do_not_exist,
];

async fn task(world: &World, tenant: &Tenant, workspace_id: Option<WorkspaceId>) -> TaskView {
    let new = TaskCreate {
        title: "Renew".into(),
        description: None,
        priority: None,
        workspace_id,
        assignee_id: None,
        due_date: None,
        goal_id: None,
        custom_fields: None,
    };
    now(world.store.task_create(tenant.change_at(1), new).await.unwrap())
}

/// A change of somebody who may do everything, at this second.
async fn by(world: &World, tenant: &Tenant, second: i64) -> (PrincipalId, Change) {
    let principal = world.principal(tenant).await;
    (principal, Change { actor_id: Some(principal), ..tenant.change_at(second) })
}

async fn claim(world: &World, change: Change, task: TaskId, seconds: i64) -> Result<ClaimView, Error> {
    world.store.task_claim(change, task, TaskClaim { lease_seconds: Some(seconds) }).await.map(now)
}

fn illegal<T: std::fmt::Debug>(outcome: Result<T, Error>, state: &str, wish: &str) {
    match outcome {
        Err(Error::Illegal(illegal)) => assert_eq!((illegal.state, illegal.wish), (state, wish)),
        other => panic!("{other:?}"),
    }
}

fn status(status: TaskStatus) -> TaskPatch {
    TaskPatch { status: Some(status), ..TaskPatch::default() }
}

async fn a_task_is_numbered_changed_and_listed(world: World) {
    let tenant = world.tenant().await;
    let (above, elsewhere) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let below = world.workspace(&tenant, Some(above)).await;
    let begin = world.end(&tenant).await;
    let mut tasks = Vec::new();
    for place in [None, Some(above), Some(below), Some(elsewhere)] {
        tasks.push(task(&world, &tenant, place).await);
    }
    let numbers: Vec<_> = tasks.iter().map(|task| task.public_id.as_str()).collect();
    assert_eq!(numbers, ["TASK-000001", "TASK-000002", "TASK-000003", "TASK-000004"]);
    let patch = TaskPatch {
        title: Some("Renew it".into()),
        description: Some(Some("Soon".into())),
        priority: Some(TaskPriority::High),
        assignee_id: Some(Some(tenant.admin)),
        due_date: Some(Some(at(9))),
        custom_fields: json!({ "cost": 7 }).as_object().cloned(),
        ..TaskPatch::default()
    };
    let changed = now(world.store.task_update(tenant.change_at(2), tasks[0].id, patch).await.unwrap());
    assert_eq!((changed.version, changed.updated_at, changed.due_date), (2, at(2), Some(at(9))));
    assert_eq!(world.store.task_get(tenant.id, changed.id).await.unwrap(), changed);
    let stale = Change { if_match: Some(vec![1]), ..tenant.change() };
    let conflict = world.store.task_update(stale, changed.id, status(TaskStatus::Blocked)).await;
    assert!(matches!(conflict, Err(Error::VersionConflict { current: 2 })));
    let listed = async |query: TaskQuery| {
        let page = world.store.task_list(tenant.id, query, None, 10).await.unwrap();
        page.items.iter().map(|task| task.public_id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed(TaskQuery::default()).await.len(), 4);
    let there = TaskQuery { workspace_id: Some(above), ..TaskQuery::default() };
    assert_eq!(listed(there).await, ["TASK-000003", "TASK-000002"]);
    let hers = TaskQuery { assignee_id: Some(tenant.admin), ..TaskQuery::default() };
    assert_eq!(listed(hers).await, ["TASK-000001"]);
    now(world.store.task_update(tenant.change(), tasks[3].id, status(TaskStatus::Cancelled)).await.unwrap());
    let statuses = vec![TaskStatus::Cancelled, TaskStatus::Completed];
    assert_eq!(listed(TaskQuery { statuses, ..TaskQuery::default() }).await, ["TASK-000004"]);
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told)[4..], ["task.updated", "task.updated"]);
    assert_eq!(told.iter().map(|event| event.workspace_id).collect::<Vec<_>>()[1..3], [Some(above), Some(below)]);
    let changes = json!(["title", "description", "priority", "assigneeId", "dueDate", "customFields"]);
    assert_eq!((&payload(&told[4])["changes"], &payload(&told[4])["status"]), (&changes, &json!(null)));
    assert_eq!(payload(&told[5])["fromStatus"], "open");
}

async fn a_patch_that_changes_nothing_tells_nothing(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    let begin = world.end(&tenant).await;
    let patch = TaskPatch { title: Some(task.title.clone()), status: Some(TaskStatus::Open), ..TaskPatch::default() };
    assert_eq!(now(world.store.task_update(tenant.change_at(5), task.id, patch).await.unwrap()), task);
    assert!(world.since(&tenant, &begin).await.is_empty());
}

async fn a_claim_is_one_principals_until_it_ends(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    let begin = world.end(&tenant).await;
    let (ada, hers) = by(&world, &tenant, 10).await;
    let (_, his) = by(&world, &tenant, 11).await;
    let first = claim(&world, hers.clone(), task.id, 60).await.unwrap();
    assert_eq!((first.holder_id, first.fencing_token, first.expires_at), (ada, 1, at(70)));
    illegal(claim(&world, his.clone(), task.id, 60).await, "in_progress", "claim");
    let later = Change { now: at(20), ..hers.clone() };
    let extended = claim(&world, later.clone(), task.id, 60).await.unwrap();
    assert_eq!((extended.id, extended.fencing_token, extended.expires_at), (first.id, 1, at(80)));
    let shorter = claim(&world, later, task.id, 10).await.unwrap();
    assert_eq!(shorter.expires_at, at(80), "a lease is never shortened");
    let why = Because { reason: Some("stuck; password=hunter2hunter2".into()) };
    let released = now(world.store.claim_release(hers.clone(), first.id, why).await.unwrap());
    assert_eq!(released.status, ClaimStatus::Released);
    illegal(world.store.claim_release(hers, first.id, Because::default()).await, "released", "release");
    assert_eq!(claim(&world, his, task.id, 60).await.unwrap().fencing_token, 2);
    let told = world.since(&tenant, &begin).await;
    let told: Vec<_> = told.into_iter().filter(|event| event.entity_type != "principal").collect();
    assert_eq!(types(&told), ["task.claimed", "claim.released", "task.claimed"]);
    let payload = payload(&told[1]);
    assert_eq!((&payload["reason"], &payload["taskStatus"]), (&json!("stuck; password=[redacted]"), &json!("open")));
}

async fn a_lease_that_has_ended_holds_nothing(world: World) {
    let tenant = world.tenant().await;
    let place = world.workspace(&tenant, None).await;
    let (by_clock, by_claim) = (task(&world, &tenant, Some(place)).await, task(&world, &tenant, None).await);
    let (_, hers) = by(&world, &tenant, 10).await;
    claim(&world, hers.clone(), by_clock.id, 20).await.unwrap();
    claim(&world, hers, by_claim.id, 30).await.unwrap();
    assert!(world.store.claims_due(at(29), 10).await.unwrap().is_empty());
    assert_eq!(world.store.claims_due(at(30), 10).await.unwrap(), [(tenant.id, by_clock.id)]);
    assert_eq!(world.store.claims_due(at(40), 1).await.unwrap(), [(tenant.id, by_clock.id)]);
    let begin = world.end(&tenant).await;
    let early = Change::by_server(tenant.id, at(29));
    now(world.store.claim_expire(early, by_clock.id).await.unwrap());
    for _ in 0..2 {
        now(world.store.claim_expire(Change::by_server(tenant.id, at(30)), by_clock.id).await.unwrap());
    }
    let (_, his) = by(&world, &tenant, 50).await;
    assert_eq!(claim(&world, his, by_claim.id, 60).await.unwrap().fencing_token, 2);
    let told = world.since(&tenant, &begin).await;
    let told: Vec<_> = told.into_iter().filter(|event| event.entity_type != "principal").collect();
    assert_eq!(types(&told), ["claim.expired", "claim.expired", "task.claimed"]);
    assert_eq!((told[0].workspace_id, told[0].actor_id), (Some(place), None));
    assert_eq!(world.store.task_get(tenant.id, by_clock.id).await.unwrap().status, TaskStatus::Open);
}

async fn completion_takes_the_token_of_the_claim_in_force(world: World) {
    let tenant = world.tenant().await;
    let (_, hers) = by(&world, &tenant, 10).await;
    let complete = async |task: TaskId, second: i64, fencing_token: Option<i64>| {
        let change = Change { now: at(second), ..hers.clone() };
        world.store.task_complete(change, task, TaskComplete { fencing_token }).await.map(now)
    };
    let unclaimed = task(&world, &tenant, None).await;
    assert!(matches!(complete(unclaimed.id, 10, Some(1)).await, Err(Error::StaleFencingToken { newest: 0 })));
    let done = complete(unclaimed.id, 10, None).await.unwrap();
    assert_eq!((done.status, done.version), (TaskStatus::Completed, 2));
    illegal(complete(unclaimed.id, 10, None).await, "completed", "complete");
    illegal(claim(&world, hers.clone(), unclaimed.id, 60).await, "completed", "claim");

    let claimed = task(&world, &tenant, None).await;
    claim(&world, hers.clone(), claimed.id, 60).await.unwrap();
    for stale in [None, Some(0), Some(2)] {
        assert!(matches!(complete(claimed.id, 20, stale).await, Err(Error::StaleFencingToken { newest: 1 })));
    }
    // After its lease the token is nobody's, and the first refusal does not free the task behind the clock's back.
    assert!(matches!(complete(claimed.id, 70, Some(1)).await, Err(Error::StaleFencingToken { newest: 1 })));
    let begin = world.end(&tenant).await;
    complete(claimed.id, 69, Some(1)).await.unwrap();
    assert_eq!(types(&world.since(&tenant, &begin).await), ["task.completed"]);
    assert!(world.store.claims_due(at(1000), 10).await.unwrap().is_empty());
}

async fn a_task_that_is_blocked_or_cancelled_is_nobodys(world: World) {
    let tenant = world.tenant().await;
    let (_, hers) = by(&world, &tenant, 10).await;
    for (to, back) in [(TaskStatus::Blocked, TaskStatus::Open), (TaskStatus::Cancelled, TaskStatus::Open)] {
        let task = task(&world, &tenant, None).await;
        let held = claim(&world, hers.clone(), task.id, 60).await.unwrap();
        let begin = world.end(&tenant).await;
        now(world.store.task_update(tenant.change(), task.id, status(to)).await.unwrap());
        let told = world.since(&tenant, &begin).await;
        assert_eq!(types(&told), ["claim.released", "task.updated"]);
        assert_eq!(payload(&told[0])["taskStatus"], to.as_str());
        illegal(world.store.claim_release(hers.clone(), held.id, Because::default()).await, "released", "release");
        illegal(claim(&world, hers.clone(), task.id, 60).await, to.as_str(), "claim");
        now(world.store.task_update(tenant.change(), task.id, status(back)).await.unwrap());
        claim(&world, hers.clone(), task.id, 60).await.unwrap();
        let wished = world.store.task_update(tenant.change(), task.id, status(TaskStatus::Completed)).await;
        assert!(matches!(wished, Err(Error::Invalid { .. })));
        illegal(world.store.task_update(tenant.change(), task.id, status(back)).await, "in_progress", "reopen");
    }
}

async fn a_move_is_told_where_it_went_and_where_it_left(world: World) {
    let tenant = world.tenant().await;
    let (one, other) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let task = task(&world, &tenant, Some(one)).await;
    let to = |place: Option<WorkspaceId>| TaskPatch { workspace_id: Some(place), ..TaskPatch::default() };
    let begin = world.end(&tenant).await;
    for place in [Some(other), Some(other), None, Some(one)] {
        let moved = now(world.store.task_update(tenant.change(), task.id, to(place)).await.unwrap());
        assert_eq!(moved.workspace_id, place);
    }
    let told = world.since(&tenant, &begin).await;
    let places: Vec<_> = told.iter().map(|event| (event.event_type.as_str(), event.workspace_id)).collect();
    let left = "workspace.entity_left";
    assert_eq!(
        places,
        [
            ("task.updated", Some(other)),
            (left, Some(one)),
            ("task.updated", None),
            (left, Some(other)),
            ("task.updated", Some(one)),
        ]
    );
    assert_eq!(payload(&told[1]), json!({ "leftEntityType": "task", "leftEntityId": task.id, "toWorkspaceId": other }));
    not_found(world.store.task_update(tenant.change(), task.id, to(Some(WorkspaceId(uuid::Uuid::nil())))).await);
}

async fn rights_are_asked_where_the_task_lies(world: World) {
    let tenant = world.tenant().await;
    let (one, other) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let task = task(&world, &tenant, Some(one)).await;
    let may = |permission, places: &[WorkspaceId]| {
        let grants: Vec<_> = places.iter().map(|place| (permission, Resource::Workspace(*place))).collect();
        tenant.change_with(&grants)
    };
    let patch = TaskPatch { workspace_id: Some(Some(other)), ..TaskPatch::default() };
    denied(world.store.task_update(may(Permission::TasksUpdate, &[one]), task.id, patch.clone()).await);
    denied(world.store.task_update(may(Permission::TasksUpdate, &[other]), task.id, patch.clone()).await);
    now(world.store.task_update(may(Permission::TasksUpdate, &[one, other]), task.id, patch).await.unwrap());
    denied(world.store.task_claim(may(Permission::TasksWork, &[one]), task.id, TaskClaim::default()).await);
    let held = now(world.store.task_claim(tenant.change(), task.id, TaskClaim::default()).await.unwrap());
    let (_, stranger) = by(&world, &tenant, 1).await;
    let work = Change { actor_id: stranger.actor_id, ..may(Permission::TasksWork, &[other]) };
    denied(world.store.claim_release(work.clone(), held.id, Because::default()).await);
    denied(world.store.task_complete(may(Permission::TasksUpdate, &[other]), task.id, TaskComplete::default()).await);
    denied(world.store.comment_add(work, task.id, CommentCreate { body: "x".into() }).await);
}

async fn a_gate_holds_claim_and_completion(world: World) {
    let tenant = world.tenant().await;
    let held = task(&world, &tenant, None).await;
    let raw = world.raw().await;
    let quoted = |id: uuid::Uuid| {
        if world.is_postgres() { format!("'{id}'") } else { format!("x'{}'", id.simple()) }
    };
    let gate = uuid::Uuid::from_u128(7);
    let (tenant_id, task_id, admin) = (quoted(tenant.id.uuid()), quoted(held.id.uuid()), quoted(tenant.admin.uuid()));
    let yes = if world.is_postgres() { "true" } else { "1" };
    let no = if world.is_postgres() { "false" } else { "0" };
    raw.run(&format!(
        "INSERT INTO approval (id, tenant_id, task_id, assigned_principal_id, gate, requested_by, require_other, status, \
         version, created_at) VALUES ({}, {tenant_id}, {task_id}, {admin}, {yes}, {admin}, {no}, 'pending', 1, 0)",
        quoted(gate)
    ))
    .await
    .unwrap();
    let gated = |outcome: Result<(), Error>| match outcome {
        Err(Error::Gated(pending)) => assert_eq!(pending, [courant_api::ApprovalId(gate)]),
        other => panic!("{other:?}"),
    };
    gated(claim(&world, tenant.change(), held.id, 60).await.map(|_| ()));
    gated(world.store.task_complete(tenant.change(), held.id, TaskComplete::default()).await.map(|_| ()));
    raw.run("UPDATE approval SET status = 'expired'").await.unwrap();
    claim(&world, tenant.change(), held.id, 60).await.unwrap();
}

async fn comments_are_kept_and_only_their_length_is_told(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    let begin = world.end(&tenant).await;
    let mut made = Vec::new();
    for body in ["Grüße", "second"] {
        let new = CommentCreate { body: body.into() };
        made.push(now(world.store.comment_add(tenant.change_at(3), task.id, new).await.unwrap()));
    }
    made.reverse();
    assert_eq!(world.store.comment_list(tenant.id, task.id, None, 10).await.unwrap().items, made);
    let told = world.since(&tenant, &begin).await;
    assert_eq!(payload(&told[0])["bodyLength"], 5);
    assert!(!told[0].payload.text().contains("Gr"));
}

async fn runs_are_attempts_under_the_claim_in_force(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    let held = claim(&world, tenant.change_at(10), task.id, 60).await.unwrap();
    let begin = world.end(&tenant).await;
    let start = async |second: i64, fencing_token: i64| {
        let new = RunStart { claim_id: held.id, fencing_token, agent_revision_id: Some("build-7".into()) };
        world.store.run_start(tenant.change_at(second), new).await.map(now)
    };
    assert!(matches!(start(11, 2).await, Err(Error::StaleFencingToken { newest: 1 })));
    assert!(matches!(start(70, 1).await, Err(Error::StaleFencingToken { newest: 1 })), "the lease is over");
    let first = start(11, 1).await.unwrap();
    conflict(start(12, 1).await.map(courant_store::Changed::Now));
    assert_eq!(world.store.run_get(tenant.id, first.id).await.unwrap(), (first.clone(), None));
    let end =
        async |id, second, how: RunEnd| world.store.run_end(tenant.change_at(second), id, how, None).await.map(now);
    let waits = RunEnd::Suspended(Some(courant_api::ApprovalId(uuid::Uuid::nil())));
    not_found(end(first.id, 12, waits).await.map(courant_store::Changed::Now));
    end(first.id, 12, RunEnd::Suspended(None)).await.unwrap();
    let second = start(13, 1).await.unwrap();
    assert_eq!((first.attempt, second.attempt), (1, 2));
    illegal(end(first.id, 14, RunEnd::Failed).await, "suspended", "fail");
    end(first.id, 14, RunEnd::Cancelled).await.unwrap();
    let done = end(second.id, 14, RunEnd::Succeeded { complete_task: true }).await.unwrap();
    assert_eq!(done.status, RunStatus::Succeeded);
    assert_eq!(world.store.task_get(tenant.id, task.id).await.unwrap().status, TaskStatus::Completed);
    let listed = world.store.run_list(tenant.id, task.id, None, 1).await.unwrap();
    assert_eq!((listed.items, listed.next), (vec![done], Some(second.id.uuid())));
    let told = world.since(&tenant, &begin).await;
    let expected = ["run.started", "run.suspended", "run.started", "run.cancelled", "run.succeeded", "task.completed"];
    assert_eq!(types(&told), expected);
}

async fn verifications_that_fail_in_a_row_block_the_task(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    claim(&world, tenant.change_at(10), task.id, 60).await.unwrap();
    let begin = world.end(&tenant).await;
    let start = async || {
        let new = VerificationStart { trigger: None, checks: vec!["tests".into()] };
        world.store.verification_start(tenant.change_at(11), task.id, new).await.map(now)
    };
    let failed = || VerificationEnd::Failed { check: "tests".into(), reason: Some("red".into()) };
    let end = async |id, how: VerificationEnd| {
        world.store.verification_end(tenant.change_at(12), id, how, None).await.map(now)
    };
    let first = start().await.unwrap();
    conflict(start().await.map(courant_store::Changed::Now));
    let nothing = VerificationEnd::Passed { artifact_id: Some(courant_api::ArtifactId(uuid::Uuid::nil())) };
    not_found(end(first.id, nothing).await.map(courant_store::Changed::Now));
    end(first.id, failed()).await.unwrap();
    illegal(end(first.id, failed()).await, "failed", "fail");
    end(start().await.unwrap().id, VerificationEnd::Passed { artifact_id: None }).await.unwrap();
    for _ in 0..3 {
        end(start().await.unwrap().id, failed()).await.unwrap();
    }
    let blocked = world.store.task_get(tenant.id, task.id).await.unwrap();
    assert_eq!((blocked.status, blocked.consecutive_failures), (TaskStatus::Blocked, 3));
    illegal(start().await, "blocked", "verify");
    let listed = world.store.verification_list(tenant.id, task.id, None, 10).await.unwrap().items;
    assert_eq!(listed.iter().map(|one| one.attempt).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told)[..2], ["task.verification_started", "task.verification_failed"]);
    let last: Vec<_> = told.iter().rev().take(2).map(|event| event.event_type.as_str()).collect();
    assert_eq!(last, ["claim.released", "task.verification_failed"]);
}

async fn another_tenants_tasks_do_not_exist(world: World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    let task = task(&world, &theirs, None).await;
    let held = claim(&world, theirs.change(), task.id, 60).await.unwrap();
    not_found(world.store.task_get(mine.id, task.id).await);
    not_found(world.store.task_update(mine.change(), task.id, status(TaskStatus::Blocked)).await);
    not_found(world.store.task_claim(mine.change(), task.id, TaskClaim::default()).await);
    not_found(world.store.task_complete(mine.change(), task.id, TaskComplete::default()).await);
    not_found(world.store.claim_release(mine.change(), held.id, Because::default()).await);
    not_found(world.store.comment_add(mine.change(), task.id, CommentCreate { body: "x".into() }).await);
    assert!(world.store.task_list(mine.id, TaskQuery::default(), None, 10).await.unwrap().items.is_empty());
}
