//! Goals, rules, projects and artifacts: one slice, whatever the kind.

use courant_api::approvals::ApprovalRequest;
use courant_api::resources::{
    ArtifactCreate, ArtifactView, GoalCreate, GoalPatch, GoalStatus, GoalView, ProjectCreate, ProjectPatch,
    ProjectStatus, ProjectView, RuleCreate, RulePatch, RuleStatus, RuleView,
};
use courant_api::work::{RunStart, TaskClaim, TaskCreate, TaskPatch, TaskView};
use courant_api::{Permission, Resource as Place, TaskId, WorkspaceId};
use courant_store::{Change, Editable, Error, ProjectEdit, Resource, ResourceQuery, RuleEdit};
use serde_json::json;

use crate::cases;
use crate::world::{Tenant, World, at, conflict, denied, not_found, now, payload, types};

cases![
    goals_are_created_changed_listed_and_moved,
    rules_and_projects_have_their_keys_for_themselves,
    what_is_archived_stays_as_it_is,
    an_artifact_lies_where_its_task_lies_unless_it_says_otherwise,
    an_artifact_of_a_run_is_of_its_task,
    a_decision_about_an_artifact_stays_where_it_was_asked,
    rights_are_asked_where_a_resource_lies_and_where_it_goes,
    another_tenants_resources_do_not_exist,
];

pub fn goal(workspace_id: Option<WorkspaceId>) -> GoalCreate {
    GoalCreate { title: "Fewer pages".into(), description: None, workspace_id }
}

pub fn rule(key: &str, workspace_id: Option<WorkspaceId>) -> RuleCreate {
    RuleCreate { key: key.into(), workspace_id, definition: serde_json::Map::new() }
}

pub fn project(key: &str, workspace_id: Option<WorkspaceId>) -> ProjectCreate {
    ProjectCreate { key: key.into(), name: "Billing".into(), workspace_id }
}

pub fn artifact(task_id: Option<TaskId>, workspace_id: Option<WorkspaceId>) -> ArtifactCreate {
    ArtifactCreate {
        r#type: "report".into(),
        name: "plan.txt".into(),
        task_id,
        run_id: None,
        workspace_id,
        uri: None,
        supersedes_artifact_id: None,
    }
}

pub async fn task(world: &World, tenant: &Tenant, workspace_id: Option<WorkspaceId>) -> TaskView {
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

async fn create<R: Resource>(world: &World, tenant: &Tenant, new: R::New) -> Result<R, Error> {
    world.store.resource_create::<R>(tenant.change_at(1), new).await.map(now)
}

async fn edit<R: Editable>(world: &World, tenant: &Tenant, resource: &R, edit: R::Edit) -> Result<R, Error> {
    world.store.resource_update::<R>(tenant.change_at(2), resource.id(), edit).await.map(now)
}

async fn listed<R: Resource>(world: &World, tenant: &Tenant, query: ResourceQuery) -> Vec<R> {
    world.store.resource_list::<R>(tenant.id, query, None, 10).await.unwrap().items
}

fn below(workspace: WorkspaceId) -> ResourceQuery {
    ResourceQuery { workspace_id: Some(workspace), ..ResourceQuery::default() }
}

async fn goals_are_created_changed_listed_and_moved(world: World) {
    let tenant = world.tenant().await;
    let (above, elsewhere) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let inner = world.workspace(&tenant, Some(above)).await;
    let begin = world.end(&tenant).await;
    let mut goals = Vec::new();
    for place in [None, Some(above), Some(inner), Some(elsewhere)] {
        goals.push(create::<GoalView>(&world, &tenant, goal(place)).await.unwrap());
    }
    assert_eq!(listed::<GoalView>(&world, &tenant, ResourceQuery::default()).await.len(), 4);
    assert_eq!(listed::<GoalView>(&world, &tenant, below(above)).await, [goals[2].clone(), goals[1].clone()]);
    let page = world.store.resource_list::<GoalView>(tenant.id, ResourceQuery::default(), None, 3).await.unwrap();
    let rest = world.store.resource_list::<GoalView>(tenant.id, ResourceQuery::default(), page.next, 3).await.unwrap();
    assert_eq!((page.items.len(), rest.items, rest.next), (3, vec![goals[0].clone()], None));

    let patch = GoalPatch {
        title: Some("token=abcdefghijklmnop".into()),
        description: Some(Some("At night".into())),
        workspace_id: Some(Some(elsewhere)),
        status: Some(GoalStatus::Achieved),
    };
    let moved = edit(&world, &tenant, &goals[1], patch.clone()).await.unwrap();
    assert_eq!((moved.version, moved.workspace_id, moved.status), (2, Some(elsewhere), GoalStatus::Achieved));
    assert_eq!(
        world.store.resource_get::<GoalView>(tenant.id, moved.id).await.unwrap(),
        (moved.clone(), Some(elsewhere))
    );
    let achieved = ResourceQuery { statuses: vec!["achieved".into()], ..ResourceQuery::default() };
    assert_eq!(listed::<GoalView>(&world, &tenant, achieved).await, std::slice::from_ref(&moved));
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told)[4..], ["goal.updated", "workspace.entity_left"]);
    assert_eq!(payload(&told[4])["title"], "token=[redacted]");
    assert_eq!((told[4].workspace_id, told[5].workspace_id), (Some(elsewhere), Some(above)));
    let left = json!({ "leftEntityType": "goal", "leftEntityId": moved.id, "toWorkspaceId": elsewhere });
    assert_eq!(payload(&told[5]), left);

    // The same once more changes nothing and tells nothing; an old version is refused.
    assert_eq!(edit(&world, &tenant, &moved, patch.clone()).await.unwrap(), moved);
    let stale = Change { if_match: Some(vec![1]), ..tenant.change() };
    let refused = world.store.resource_update::<GoalView>(stale, moved.id, patch).await;
    assert!(matches!(refused, Err(Error::VersionConflict { current: 2 })), "{refused:?}");
    let nothing = GoalPatch { description: Some(None), workspace_id: Some(None), ..GoalPatch::default() };
    let up = edit(&world, &tenant, &moved, nothing).await.unwrap();
    assert_eq!((up.description, up.workspace_id, up.version), (None, None, 3));
    assert_eq!(types(&world.since(&tenant, &told[5].cursor).await), ["goal.updated", "workspace.entity_left"]);
}

async fn rules_and_projects_have_their_keys_for_themselves(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    create::<RuleView>(&world, &tenant, rule("nightly", None)).await.unwrap();
    create::<ProjectView>(&world, &tenant, project("nightly", None)).await.unwrap();
    let before = world.end(&tenant).await;
    conflict(create::<RuleView>(&world, &tenant, rule("nightly", None)).await);
    conflict(create::<ProjectView>(&world, &tenant, project("nightly", None)).await);
    assert_eq!(world.since(&tenant, &before).await, []);
    create::<RuleView>(&world, &other, rule("nightly", None)).await.unwrap();
}

async fn what_is_archived_stays_as_it_is(world: World) {
    let tenant = world.tenant().await;
    let there = world.workspace(&tenant, None).await;
    let begin = world.end(&tenant).await;
    let made = create::<RuleView>(&world, &tenant, rule("nightly", Some(there))).await.unwrap();
    assert_eq!(made.status, RuleStatus::Disabled);
    let definition = json!({ "every": "night" }).as_object().cloned();
    let patch = || RuleEdit::Patch(RulePatch { definition: definition.clone(), workspace_id: None });
    let steps = [RuleEdit::Disable, RuleEdit::Enable, RuleEdit::Enable, patch(), RuleEdit::Disable, RuleEdit::Archive];
    for step in steps {
        edit(&world, &tenant, &made, step).await.unwrap();
    }
    let archived = edit(&world, &tenant, &made, RuleEdit::Archive).await.unwrap();
    assert_eq!(
        (archived.status, archived.version, Some(&archived.definition)),
        (RuleStatus::Archived, 5, definition.as_ref())
    );
    for (step, wish) in [(RuleEdit::Enable, "enable"), (RuleEdit::Disable, "disable"), (patch(), "update")] {
        match edit(&world, &tenant, &made, step).await {
            Err(Error::Illegal(illegal)) => assert_eq!((illegal.state, illegal.wish), ("archived", wish)),
            other => panic!("{other:?}"),
        }
    }
    let archived_ones = || ResourceQuery { statuses: vec!["archived".into()], ..below(there) };
    assert_eq!(listed::<RuleView>(&world, &tenant, archived_ones()).await, std::slice::from_ref(&archived));
    assert_eq!(world.store.resource_get::<RuleView>(tenant.id, made.id).await.unwrap(), (archived, Some(there)));
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["rule.created", "rule.enabled", "rule.updated", "rule.disabled", "rule.archived"]);
    assert!(told.iter().all(|event| event.workspace_id == Some(there) && payload(event)["key"] == "nightly"));

    let made = create::<ProjectView>(&world, &tenant, project("billing", Some(there))).await.unwrap();
    let name = || ProjectEdit::Patch(ProjectPatch { name: Some("Bills".into()), workspace_id: Some(None) });
    edit(&world, &tenant, &made, name()).await.unwrap();
    edit(&world, &tenant, &made, ProjectEdit::Archive).await.unwrap();
    let archived = edit(&world, &tenant, &made, ProjectEdit::Archive).await.unwrap();
    assert_eq!((archived.status, archived.version, archived.name.as_str()), (ProjectStatus::Archived, 3, "Bills"));
    assert!(matches!(edit(&world, &tenant, &made, name()).await, Err(Error::Illegal(_))));
    assert_eq!(world.store.resource_get::<ProjectView>(tenant.id, made.id).await.unwrap(), (archived, None));
    let active = ResourceQuery { statuses: vec!["active".into()], ..ResourceQuery::default() };
    assert_eq!(listed::<ProjectView>(&world, &tenant, active).await, []);
    let told = world.since(&tenant, &told[4].cursor).await;
    assert_eq!(types(&told), ["project.created", "project.updated", "workspace.entity_left", "project.archived"]);
}

async fn an_artifact_lies_where_its_task_lies_unless_it_says_otherwise(world: World) {
    let tenant = world.tenant().await;
    let (first, second) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let task = task(&world, &tenant, Some(first)).await;
    let begin = world.end(&tenant).await;
    let with_task = create::<ArtifactView>(&world, &tenant, artifact(Some(task.id), None)).await.unwrap();
    let uri = Some("https://ops:hunter2hunter2@files.example/plan".to_owned());
    let replaces = Some(with_task.id);
    let new = ArtifactCreate { uri, supersedes_artifact_id: replaces, ..artifact(Some(task.id), Some(second)) };
    let own = create::<ArtifactView>(&world, &tenant, new).await.unwrap();
    let nowhere = create::<ArtifactView>(&world, &tenant, artifact(None, None)).await.unwrap();
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["artifact.created"; 3]);
    let places: Vec<_> = told.iter().map(|event| event.workspace_id).collect();
    assert_eq!(places, [Some(first), Some(second), None]);
    assert!(!told[1].payload.text().contains("hunter2"), "{}", told[1].payload.text());
    assert_eq!(listed::<ArtifactView>(&world, &tenant, below(first)).await, std::slice::from_ref(&with_task));
    assert_eq!(listed::<ArtifactView>(&world, &tenant, below(second)).await, std::slice::from_ref(&own));
    let of_task = ResourceQuery { task_id: Some(task.id), ..ResourceQuery::default() };
    assert_eq!(listed::<ArtifactView>(&world, &tenant, of_task).await, [own, with_task.clone()]);
    assert_eq!(world.store.resource_get::<ArtifactView>(tenant.id, nowhere.id).await.unwrap(), (nowhere, None));
    // It goes where its task goes; what was told stays where it was.
    let away = TaskPatch { workspace_id: Some(Some(second)), ..TaskPatch::default() };
    world.store.task_update(tenant.change(), task.id, away).await.unwrap();
    assert_eq!(world.store.resource_get::<ArtifactView>(tenant.id, with_task.id).await.unwrap().1, Some(second));
    let missing = ArtifactCreate { run_id: Some(uuid::Uuid::from_u128(7).into()), ..artifact(None, None) };
    not_found(create::<ArtifactView>(&world, &tenant, missing).await);
}

async fn an_artifact_of_a_run_is_of_its_task(world: World) {
    let tenant = world.tenant().await;
    let here = world.workspace(&tenant, None).await;
    let (busy, other) = (task(&world, &tenant, Some(here)).await, task(&world, &tenant, None).await);
    let claim = now(world.store.task_claim(tenant.change_at(1), busy.id, TaskClaim::default()).await.unwrap());
    let run = RunStart { claim_id: claim.id, fencing_token: claim.fencing_token, agent_revision_id: None };
    let run = now(world.store.run_start(tenant.change_at(1), run).await.unwrap());
    let of = |task_id| ArtifactCreate { run_id: Some(run.id), ..artifact(task_id, None) };
    for task_id in [None, Some(busy.id)] {
        let made = create::<ArtifactView>(&world, &tenant, of(task_id)).await.unwrap();
        assert_eq!((made.task_id, made.run_id), (Some(busy.id), Some(run.id)));
        assert_eq!(world.store.resource_get::<ArtifactView>(tenant.id, made.id).await.unwrap().1, Some(here));
    }
    let outcome = create::<ArtifactView>(&world, &tenant, of(Some(other.id))).await;
    assert!(matches!(&outcome, Err(Error::Invalid { field, .. }) if field == "/runId"), "{outcome:?}");
}

async fn a_decision_about_an_artifact_stays_where_it_was_asked(world: World) {
    let tenant = world.tenant().await;
    let (first, second) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let task = task(&world, &tenant, Some(first)).await;
    let made = create::<ArtifactView>(&world, &tenant, artifact(Some(task.id), None)).await.unwrap();
    let request = |artifact_id, task_id| ApprovalRequest {
        task_id,
        artifact_id,
        required_role_id: None,
        assigned_principal_id: Some(tenant.admin),
        gate: None,
        comment: None,
        expires_at: Some(at(50)),
        require_other_than_requester: None,
    };
    for (artifact_id, task_id) in [(Some(made.id), Some(task.id)), (None, None)] {
        let outcome = world.store.approval_request(tenant.change(), request(artifact_id, task_id)).await;
        assert!(matches!(outcome, Err(Error::Invalid { .. })), "{outcome:?}");
    }
    let begin = world.end(&tenant).await;
    let asked = now(world.store.approval_request(tenant.change_at(2), request(Some(made.id), None)).await.unwrap());
    let away = TaskPatch { workspace_id: Some(Some(second)), ..TaskPatch::default() };
    world.store.task_update(tenant.change(), task.id, away).await.unwrap();
    world.store.approval_expire(tenant.change_at(60), asked.id).await.unwrap();
    let view = world.store.approval_get(tenant.id, asked.id).await.unwrap();
    assert_eq!((view.workspace_id, view.artifact_id, view.task_id), (Some(first), Some(made.id), None));
    let told = world.since(&tenant, &begin).await;
    for event in told.iter().filter(|event| event.event_type.starts_with("approval.")) {
        assert_eq!((event.workspace_id, &payload(event)["workspaceId"]), (Some(first), &json!(first)));
        assert_eq!(payload(event)["artifactId"], json!(made.id));
    }
    assert_eq!(types(&told), ["approval.requested", "task.updated", "workspace.entity_left", "approval.expired"]);
}

async fn rights_are_asked_where_a_resource_lies_and_where_it_goes(world: World) {
    let tenant = world.tenant().await;
    let (first, second) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let made = create::<GoalView>(&world, &tenant, goal(Some(first))).await.unwrap();
    let title = || GoalPatch { title: Some("More".into()), ..GoalPatch::default() };
    let there = || GoalPatch { workspace_id: Some(Some(second)), ..GoalPatch::default() };
    let here = || tenant.change_with(&[(Permission::GoalsManage, Place::Workspace(first))]);
    let before = world.end(&tenant).await;
    denied(world.store.resource_create::<GoalView>(here(), goal(Some(second))).await);
    denied(world.store.resource_create::<GoalView>(here(), goal(None)).await);
    denied(world.store.resource_update::<GoalView>(here(), made.id, there()).await);
    let elsewhere = tenant.change_with(&[(Permission::GoalsManage, Place::Workspace(second))]);
    denied(world.store.resource_update::<GoalView>(elsewhere, made.id, title()).await);
    assert_eq!(world.since(&tenant, &before).await, []);
    world.store.resource_update::<GoalView>(here(), made.id, title()).await.unwrap();
    world.store.resource_create::<GoalView>(here(), goal(Some(first))).await.unwrap();
}

async fn another_tenants_resources_do_not_exist(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let theirs = world.workspace(&other, None).await;
    let their_task = task(&world, &other, None).await;
    let their_goal = create::<GoalView>(&world, &other, goal(None)).await.unwrap();
    let their_artifact = create::<ArtifactView>(&world, &other, artifact(None, None)).await.unwrap();
    not_found(create::<GoalView>(&world, &tenant, goal(Some(theirs))).await);
    not_found(create::<ArtifactView>(&world, &tenant, artifact(Some(their_task.id), None)).await);
    let replaces = Some(their_artifact.id);
    let new = ArtifactCreate { supersedes_artifact_id: replaces, ..artifact(None, None) };
    not_found(create::<ArtifactView>(&world, &tenant, new).await);
    not_found(edit(&world, &tenant, &their_goal, GoalPatch::default()).await);
    not_found(world.store.resource_get::<GoalView>(tenant.id, their_goal.id).await);
    assert_eq!(listed::<GoalView>(&world, &tenant, ResourceQuery::default()).await, []);
    let mine = task(&world, &tenant, None).await;
    let patch = TaskPatch { goal_id: Some(Some(their_goal.id)), ..TaskPatch::default() };
    not_found(world.store.task_update(tenant.change(), mine.id, patch).await);
}
