//! Approvals: who may decide, who decides first, gates, ends, and tokens for one decision.

use std::collections::BTreeSet;

use courant_api::access::{PrincipalPatch, PrincipalStatus, RoleAssignmentCreate, RoleCreate};
use courant_api::approvals::{ApprovalDecide, ApprovalRequest, ApprovalStatus, ApprovalView};
use courant_api::work::{Because, TaskClaim, TaskComplete, TaskCreate, TaskPatch};
use courant_api::{ApprovalId, Permission, PrincipalId, Resource, RoleId, TaskId, WorkspaceId};
use courant_core::access::Purpose;
use courant_store::{ApprovalQuery, Change, Credential, Decision, DecisionTokenDraft, Error};
use serde_json::json;

use crate::cases;
use crate::world::{Chance, Tenant, World, at, denied, not_found, now, payload, types};

cases![
    an_approval_is_requested_and_decided_once,
    of_many_who_decide_at_once_one_does,
    only_whom_it_asks_decides,
    those_who_can_decide_are_the_holders_that_are_listed,
    a_gate_holds_its_task_until_it_is_over,
    cancelling_twice_is_cancelling_once,
    an_approval_that_nobody_decides_expires,
    an_approval_stays_where_it_was_requested,
    what_one_may_decide_is_listed,
    a_token_is_for_one_principal_and_one_decision,
    another_tenants_approvals_do_not_exist,
];

async fn task(world: &World, tenant: &Tenant, workspace_id: Option<WorkspaceId>) -> TaskId {
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
    now(world.store.task_create(tenant.change_at(1), new).await.unwrap()).id
}

fn about(task_id: TaskId) -> ApprovalRequest {
    ApprovalRequest {
        task_id: Some(task_id),
        artifact_id: None,
        required_role_id: None,
        assigned_principal_id: None,
        gate: None,
        comment: None,
        expires_at: None,
        require_other_than_requester: None,
    }
}

async fn request(world: &World, tenant: &Tenant, new: ApprovalRequest) -> ApprovalView {
    now(world.store.approval_request(tenant.change_at(2), new).await.unwrap())
}

fn by(tenant: &Tenant, principal: PrincipalId, second: i64) -> Change {
    Change { actor_id: Some(principal), ..tenant.change_at(second) }
}

fn yes() -> Decision {
    Decision { approve: true, said: ApprovalDecide::default(), channel: None }
}

async fn decide(world: &World, change: Change, id: ApprovalId) -> Result<ApprovalView, Error> {
    world.store.approval_decide(change, id, yes()).await.map(now)
}

async fn role(world: &World, tenant: &Tenant, key: &str) -> RoleId {
    let new = RoleCreate { key: key.into(), name: "Role".into(), workspace_id: None };
    now(world.store.role_create(tenant.change(), new).await.unwrap()).id
}

async fn assign(world: &World, tenant: &Tenant, role: RoleId, who: PrincipalId, at: Option<WorkspaceId>) -> bool {
    let new = RoleAssignmentCreate { principal_id: who, workspace_id: at };
    world.store.role_assign(tenant.change(), role, new).await.is_ok()
}

fn decided(outcome: Result<ApprovalView, Error>, status: ApprovalStatus) {
    match outcome {
        Err(Error::AlreadyDecided(by)) => assert_eq!(by, status),
        other => panic!("{other:?}"),
    }
}

async fn an_approval_is_requested_and_decided_once(world: World) {
    let tenant = world.tenant().await;
    let workspace = world.workspace(&tenant, None).await;
    let task = task(&world, &tenant, Some(workspace)).await;
    let begin = world.end(&tenant).await;
    let comment = format!("{} password=hunter2hunter2", "é".repeat(990));
    let new =
        ApprovalRequest { assigned_principal_id: Some(tenant.admin), comment: Some(comment.clone()), ..about(task) };
    let asked = request(&world, &tenant, new).await;
    assert_eq!((asked.status, asked.workspace_id, asked.version), (ApprovalStatus::Pending, Some(workspace), 1));
    assert_eq!(asked.comment.as_deref(), Some(comment.as_str()), "the approval keeps the whole text");
    let said = ApprovalDecide { comment: Some("No: see token=abcdefghijkl".into()) };
    let decision = Decision { approve: false, said, channel: Some("slack".into()) };
    let rejected = now(world.store.approval_decide(tenant.change_at(5), asked.id, decision).await.unwrap());
    assert_eq!(
        (rejected.status, rejected.decision_by, rejected.decided_at),
        (ApprovalStatus::Rejected, Some(tenant.admin), Some(at(5)))
    );
    assert_eq!(world.store.approval_get(tenant.id, asked.id).await.unwrap(), rejected);
    decided(decide(&world, tenant.change(), asked.id).await, ApprovalStatus::Rejected);
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["approval.requested", "approval.rejected"]);
    assert!(told.iter().all(|event| event.workspace_id == Some(workspace) && event.schema_version == 2));
    let first = payload(&told[0]);
    assert_eq!((&first["taskPublicId"], &first["workspaceId"]), (&json!("TASK-000001"), &json!(workspace)));
    assert_eq!(first["comment"], format!("{} password=", "é".repeat(990)).chars().take(1000).collect::<String>());
    assert_eq!(
        payload(&told[1]),
        json!({
            "taskId": task,
            "artifactId": null,
            "outcomeStatus": "rejected",
            "decisionBy": tenant.admin,
            "comment": "No: see token=[redacted]",
            "channel": "slack",
            "taskPublicId": "TASK-000001",
            "taskTitle": "Renew",
            "artifactName": null,
        })
    );
}

async fn of_many_who_decide_at_once_one_does(world: World) {
    let tenant = world.tenant().await;
    let role = role(&world, &tenant, "decider").await;
    let mut people = Vec::new();
    for _ in 0..4 {
        let principal = world.principal(&tenant).await;
        assert!(assign(&world, &tenant, role, principal, None).await);
        people.push(principal);
    }
    let asked = ApprovalRequest { required_role_id: Some(role), ..about(task(&world, &tenant, None).await) };
    let asked = request(&world, &tenant, asked).await;
    let begin = world.end(&tenant).await;
    let all = people.iter().map(|principal| decide(&world, by(&tenant, *principal, 3), asked.id));
    let outcomes = futures_util::future::join_all(all).await;
    let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 3));
    for outcome in lost {
        decided(outcome, ApprovalStatus::Approved);
    }
    assert_eq!(types(&world.since(&tenant, &begin).await), ["approval.approved"]);
}

async fn only_whom_it_asks_decides(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    let (ada, eve) = (world.principal(&tenant).await, world.principal(&tenant).await);
    let asked = ApprovalRequest { assigned_principal_id: Some(ada), ..about(task) };
    let asked = request(&world, &tenant, asked).await;
    assert!(matches!(decide(&world, by(&tenant, eve, 3), asked.id).await, Err(Error::NotEligible)));
    let without =
        Change { actor_id: Some(ada), ..tenant.change_with(&[(Permission::ApprovalsRead, Resource::Tenant)]) };
    denied(world.store.approval_decide(without, asked.id, yes()).await);
    decide(&world, by(&tenant, ada, 3), asked.id).await.unwrap();
    assert!(matches!(decide(&world, by(&tenant, eve, 3), asked.id).await, Err(Error::NotEligible)));
    // Whoever requests it can be barred.
    let barred = ApprovalRequest {
        assigned_principal_id: Some(tenant.admin),
        require_other_than_requester: Some(true),
        ..about(task)
    };
    let barred = request(&world, &tenant, barred).await;
    assert!(matches!(decide(&world, tenant.change(), barred.id).await, Err(Error::NotEligible)));
}

async fn those_who_can_decide_are_the_holders_that_are_listed(world: World) {
    let mut chance = Chance(4711);
    for _ in 0..6 {
        let tenant = world.tenant().await;
        let mut places = vec![None];
        for _ in 0..6 {
            let parent = places[chance.below(places.len())];
            places.push(Some(world.workspace(&tenant, parent).await));
        }
        let role = role(&world, &tenant, "decider").await;
        let mut people = Vec::new();
        for _ in 0..6 {
            let principal = world.principal(&tenant).await;
            for _ in 0..chance.below(3) {
                // Twice at one place is refused; that is as well.
                assign(&world, &tenant, role, principal, places[chance.below(places.len())]).await;
            }
            people.push(principal);
        }
        let disabled = people[chance.below(people.len())];
        let patch = PrincipalPatch { display_name: None, status: Some(PrincipalStatus::Disabled) };
        now(world.store.principal_update(tenant.change(), disabled, patch).await.unwrap());
        for place in &places {
            let holders = world.store.role_holders(tenant.id, role, *place, None, 100).await.unwrap().items;
            let active = holders.iter().filter(|holder| holder.status == PrincipalStatus::Active);
            let listed: BTreeSet<_> = active.map(|holder| holder.id.uuid()).collect();
            let mut able = BTreeSet::new();
            let task = task(&world, &tenant, *place).await;
            // Nobody comes to decide with the credential of a disabled principal.
            for principal in people.iter().filter(|principal| **principal != disabled) {
                let asked = ApprovalRequest { required_role_id: Some(role), ..about(task) };
                let asked = request(&world, &tenant, asked).await;
                match decide(&world, by(&tenant, *principal, 3), asked.id).await {
                    Ok(_) => assert!(able.insert(principal.uuid())),
                    Err(Error::NotEligible) => {}
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(able, listed, "at {place:?}");
        }
    }
}

async fn a_gate_holds_its_task_until_it_is_over(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    let gate = ApprovalRequest { assigned_principal_id: Some(tenant.admin), gate: Some(true), ..about(task) };
    let (one, other) = (request(&world, &tenant, gate.clone()).await, request(&world, &tenant, gate).await);
    let mut pending = vec![one.id, other.id];
    for id in [one.id, other.id] {
        match world.store.task_claim(tenant.change(), task, TaskClaim::default()).await {
            Err(Error::Gated(held)) => assert_eq!(held, pending),
            unheld => panic!("{unheld:?}"),
        }
        let complete = world.store.task_complete(tenant.change(), task, TaskComplete::default()).await;
        assert!(matches!(complete, Err(Error::Gated(_))));
        decide(&world, tenant.change(), id).await.unwrap();
        pending.remove(0);
    }
    now(world.store.task_claim(tenant.change(), task, TaskClaim::default()).await.unwrap());
}

async fn cancelling_twice_is_cancelling_once(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    let asked = ApprovalRequest { assigned_principal_id: Some(tenant.admin), ..about(task) };
    let one = request(&world, &tenant, asked.clone()).await;
    let begin = world.end(&tenant).await;
    let own = Change {
        actor_id: Some(tenant.admin),
        ..tenant.change_with(&[(Permission::ApprovalsRequest, Resource::Tenant)])
    };
    let cancelled = now(world.store.approval_cancel(own.clone(), one.id).await.unwrap());
    assert_eq!(now(world.store.approval_cancel(own.clone(), one.id).await.unwrap()), cancelled);
    decided(decide(&world, tenant.change(), one.id).await, ApprovalStatus::Cancelled);
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["approval.cancelled"]);
    assert_eq!(
        payload(&told[0]),
        json!({
            "taskId": task, "cancelledBy": tenant.admin,
            "taskPublicId": "TASK-000001", "taskTitle": "Renew", "artifactName": null,
        })
    );
    let other = request(&world, &tenant, asked).await;
    let stranger = Change { actor_id: Some(world.principal(&tenant).await), ..own };
    denied(world.store.approval_cancel(stranger, other.id).await);
    decide(&world, tenant.change(), other.id).await.unwrap();
    decided(world.store.approval_cancel(tenant.change(), other.id).await.map(now), ApprovalStatus::Approved);
}

async fn an_approval_that_nobody_decides_expires(world: World) {
    let tenant = world.tenant().await;
    let task = task(&world, &tenant, None).await;
    let gate = ApprovalRequest {
        assigned_principal_id: Some(tenant.admin),
        gate: Some(true),
        expires_at: Some(at(50)),
        ..about(task)
    };
    let asked = request(&world, &tenant, gate).await;
    assert!(world.store.approvals_due(at(49), 10).await.unwrap().is_empty());
    assert_eq!(world.store.approvals_due(at(50), 10).await.unwrap(), [(tenant.id, asked.id)]);
    decided(decide(&world, tenant.change_at(50), asked.id).await, ApprovalStatus::Expired);
    let held = world.store.task_claim(tenant.change_at(49), task, TaskClaim::default()).await;
    assert!(matches!(held, Err(Error::Gated(_))));
    let early = world.store.task_claim(tenant.change_at(50), task, TaskClaim::default()).await.map(now).unwrap();
    now(world.store.claim_release(tenant.change_at(50), early.id, Because::default()).await.unwrap());
    let begin = world.end(&tenant).await;
    for second in [49, 50, 51] {
        now(world.store.approval_expire(Change::by_server(tenant.id, at(second)), asked.id).await.unwrap());
    }
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["approval.expired"]);
    assert_eq!(payload(&told[0])["expiredAt"], json!(at(50)));
    now(world.store.task_claim(tenant.change_at(60), task, TaskClaim::default()).await.unwrap());
}

async fn an_approval_stays_where_it_was_requested(world: World) {
    let tenant = world.tenant().await;
    let (one, other) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let task = task(&world, &tenant, Some(one)).await;
    let begin = world.end(&tenant).await;
    let asked = ApprovalRequest { assigned_principal_id: Some(tenant.admin), ..about(task) };
    let asked = request(&world, &tenant, asked).await;
    let patch = TaskPatch { workspace_id: Some(Some(other)), ..TaskPatch::default() };
    now(world.store.task_update(tenant.change(), task, patch).await.unwrap());
    assert_eq!(decide(&world, tenant.change(), asked.id).await.unwrap().workspace_id, Some(one));
    let told = world.since(&tenant, &begin).await;
    let approvals: Vec<_> = told.iter().filter(|event| event.entity_type == "approval").collect();
    assert_eq!(approvals.len(), 2);
    assert!(approvals.iter().all(|event| event.workspace_id == Some(one)));
    assert_eq!(payload(approvals[0])["workspaceId"], json!(one));
}

async fn what_one_may_decide_is_listed(world: World) {
    let tenant = world.tenant().await;
    let above = world.workspace(&tenant, None).await;
    let below = world.workspace(&tenant, Some(above)).await;
    let role = role(&world, &tenant, "decider").await;
    let ada = world.principal(&tenant).await;
    assert!(assign(&world, &tenant, role, ada, Some(above)).await);
    let mut asked = Vec::new();
    for place in [None, Some(above), Some(below)] {
        let new = ApprovalRequest { required_role_id: Some(role), ..about(task(&world, &tenant, place).await) };
        asked.push(request(&world, &tenant, new).await.id);
    }
    let named = ApprovalRequest {
        assigned_principal_id: Some(ada),
        expires_at: Some(at(50)),
        ..about(task(&world, &tenant, None).await)
    };
    asked.push(request(&world, &tenant, named).await.id);
    let rights = |permission| {
        let change = tenant.change_with(&[(permission, Resource::Tenant)]);
        courant_store::Rights::new(
            &courant_store::Authority::Grants(courant_core::access::Reach::Exact),
            tenant.id,
            ada,
            change.rights.grants().to_vec(),
        )
    };
    let listed = async |permission, second, key, limit| {
        let rights = rights(permission);
        let page = world.store.approvals_to_decide(&rights, at(second), key, limit).await.unwrap();
        (page.items.iter().map(|approval| approval.id).collect::<Vec<_>>(), page.next)
    };
    let decide = Permission::ApprovalsDecide;
    assert_eq!(listed(decide, 10, None, 10).await.0, [asked[3], asked[2], asked[1]]);
    assert_eq!(listed(decide, 50, None, 10).await.0, [asked[2], asked[1]], "one has expired");
    let (first, next) = listed(decide, 10, None, 2).await;
    assert_eq!(first, [asked[3], asked[2]]);
    assert_eq!(listed(decide, 10, next, 2).await, (vec![asked[1]], None));
    assert!(listed(Permission::ApprovalsRead, 10, None, 10).await.0.is_empty());
    let there = ApprovalQuery { workspace_id: Some(above), ..ApprovalQuery::default() };
    let page = world.store.approval_list(tenant.id, there, None, 10).await.unwrap();
    assert_eq!(page.items.iter().map(|approval| approval.id).collect::<Vec<_>>(), [asked[2], asked[1]]);
    for query in [
        ApprovalQuery { task_id: page.items[0].task_id, ..ApprovalQuery::default() },
        ApprovalQuery {
            task_id: page.items[0].task_id,
            required_role_id: Some(role),
            statuses: vec![ApprovalStatus::Pending],
            ..ApprovalQuery::default()
        },
    ] {
        assert_eq!(world.store.approval_list(tenant.id, query, None, 10).await.unwrap().items, page.items[..1]);
    }
}

async fn a_token_is_for_one_principal_and_one_decision(world: World) {
    let tenant = world.tenant().await;
    let ada = world.principal(&tenant).await;
    let asked = ApprovalRequest { assigned_principal_id: Some(ada), ..about(task(&world, &tenant, None).await) };
    let asked = request(&world, &tenant, asked).await;
    let draft = |principal_id| DecisionTokenDraft {
        secret: "cdt_secret".into(),
        hash: [7; 32],
        principal_id,
        channel: "slack".into(),
        expires_at: at(60),
    };
    let stranger = world.store.decision_token_create(tenant.change_at(3), asked.id, draft(tenant.admin)).await;
    assert!(matches!(stranger, Err(Error::Conflict(_))));
    let may_not = tenant.change_with(&[(Permission::ApprovalsRequest, Resource::Tenant)]);
    denied(world.store.decision_token_create(may_not, asked.id, draft(ada)).await);
    let made = now(world.store.decision_token_create(tenant.change_at(3), asked.id, draft(ada)).await.unwrap());
    assert_eq!((made.token.as_deref(), made.expires_at), (Some("cdt_secret"), at(60)));
    let caller = async |second| world.store.caller_by_decision_token([7; 32], at(second)).await.unwrap();
    let found = caller(59).await.unwrap();
    assert_eq!((found.principal_id, found.purpose), (ada, Some(Purpose::Approval(asked.id))));
    assert_eq!((found.channel.as_deref(), found.credential), (Some("slack"), Credential::DecisionToken([7; 32])));
    assert!(caller(60).await.is_none());
    assert!(world.store.caller_by_decision_token([8; 32], at(3)).await.unwrap().is_none());
    world.store.decision_tokens_forget(at(59)).await.unwrap();
    assert!(caller(59).await.is_some());
    world.store.decision_tokens_forget(at(60)).await.unwrap();
    assert!(caller(59).await.is_none());
    decide(&world, by(&tenant, ada, 3), asked.id).await.unwrap();
    let late = world.store.decision_token_create(tenant.change_at(3), asked.id, draft(ada)).await;
    assert!(matches!(late, Err(Error::AlreadyDecided(ApprovalStatus::Approved))));
}

async fn another_tenants_approvals_do_not_exist(world: World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    let task = task(&world, &theirs, None).await;
    let asked = ApprovalRequest { assigned_principal_id: Some(theirs.admin), ..about(task) };
    let asked = request(&world, &theirs, asked).await;
    not_found(world.store.approval_get(mine.id, asked.id).await);
    not_found(world.store.approval_decide(mine.change(), asked.id, yes()).await);
    not_found(world.store.approval_cancel(mine.change(), asked.id).await);
    let new = ApprovalRequest { assigned_principal_id: Some(mine.admin), ..about(task) };
    not_found(world.store.approval_request(mine.change(), new).await);
    assert!(world.store.approval_list(mine.id, ApprovalQuery::default(), None, 10).await.unwrap().items.is_empty());
}
