//! `/tasks`, `/claims`

use courant_api::work::{
    Because, ClaimView, CommentCreate, CommentView, TaskClaim, TaskComplete, TaskCreate, TaskPatch, TaskStatus,
    TaskView,
};
use courant_api::{ClaimId, ErrorCode, GoalId, Page, Permission, PrincipalId, TaskId, WorkspaceId};
use courant_store::TaskQuery;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{List, ListQuery};
use super::{changed, versioned};
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, tasks};

const TASKS: List = List("tasks");
const COMMENTS: List = List("task-comments");

pub(super) const ITS_WORKSPACE: &str = "the task's workspace, or the tenant";

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    vec![
        Endpoint::get("/api/v1/tasks", list)
            .tag("work")
            .summary("Lists tasks")
            .description("Of a workspace and all below it, or of the whole tenant; newest first.")
            .access(Access::On(&[P::TasksRead], "the workspace, or the tenant"))
            .errors(&[E::NotFound, E::InvalidCursor]),
        Endpoint::post("/api/v1/tasks", create)
            .tag("work")
            .summary("Creates a task")
            .access(Access::On(&[P::TasksCreate], ITS_WORKSPACE))
            .errors(&[E::NotFound])
            .etag()
            .created(),
        Endpoint::get("/api/v1/tasks/{id}", get)
            .tag("work")
            .summary("Reads a task")
            .missing("task")
            .access(Access::On(&[P::TasksRead], ITS_WORKSPACE))
            .etag(),
        Endpoint::patch("/api/v1/tasks/{id}", update)
            .tag("work")
            .summary("Changes, moves, blocks, reopens or cancels a task")
            .description(
                "Another `workspaceId` moves it, which needs the permission there as well. A task that is blocked or cancelled \
                 loses its claim.",
            )
            .missing("task")
            .access(Access::On(&[P::TasksUpdate], ITS_WORKSPACE))
            .errors(&[E::IllegalTransition]),
        Endpoint::post("/api/v1/tasks/{id}:claim", claim)
            .tag("work")
            .summary("Claims a task for the caller, or extends the caller's claim")
            .description(
                "A claim is a lease: when it ends, the task is open again. Each claim of a task has a greater fencing token than \
                 the ones before, so that whatever the work touches can refuse a holder who does not know that theirs is over.",
            )
            .missing("task")
            .body_optional()
            .access(Access::On(&[P::TasksWork], ITS_WORKSPACE))
            .errors(&[E::IllegalTransition, E::GatedByApproval]),
        Endpoint::post("/api/v1/tasks/{id}:complete", complete)
            .tag("work")
            .summary("Completes a task")
            .description("While the task is claimed it takes the claim's fencing token.")
            .missing("task")
            .body_optional()
            .access(Access::On(&[P::TasksWork], ITS_WORKSPACE))
            .errors(&[E::IllegalTransition, E::StaleFencingToken, E::GatedByApproval])
            .etag(),
        Endpoint::get("/api/v1/tasks/{id}/comments", comments)
            .tag("work")
            .summary("Lists the comments on a task")
            .missing("task")
            .access(Access::On(&[P::TasksRead], ITS_WORKSPACE))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/tasks/{id}/comments", comment)
            .tag("work")
            .summary("Comments on a task")
            .description("Its text is in no event; the event tells how long it is.")
            .missing("task")
            .access(Access::On(&[P::TasksUpdate], ITS_WORKSPACE))
            .created(),
        Endpoint::post("/api/v1/claims/{id}:release", release)
            .tag("work")
            .summary("Gives a claimed task back")
            .description("Of the caller's own claim it needs `tasks.work` alone.")
            .missing("claim")
            .body_optional()
            .access(Access::On(&[P::TasksWork, P::TasksUpdate], ITS_WORKSPACE))
            .errors(&[E::IllegalTransition]),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ByTask {
    /// The task's id.
    pub id: TaskId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByClaim {
    /// The claim's id.
    id: ClaimId,
}

/// Which tasks, and which page of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TasksQuery {
    /// Only tasks of this workspace and all below it.
    workspace_id: Option<WorkspaceId>,
    /// Only tasks in one of these states, repeatable.
    #[serde(default)]
    status: Vec<TaskStatus>,
    /// Only tasks that this principal is to do.
    assignee_id: Option<PrincipalId>,
    /// Only tasks that are for this goal.
    goal_id: Option<GoalId>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most rows in the page; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

async fn list(cx: Cx<App>, input: Input<(), TasksQuery, ()>) -> Result<Reply<Page<TaskView>>, ApiError> {
    let TasksQuery { workspace_id, status, assignee_id, goal_id, cursor, limit } = input.query;
    let page = ListQuery { cursor, limit };
    let query = TaskQuery { workspace_id, statuses: status, assignee_id, goal_id };
    Ok(Reply::ok(TASKS.page(tasks::task_list(&cx.app, &cx.caller, query, page.key(TASKS)?, page.limit()).await?)))
}

async fn create(cx: Cx<App>, input: Input<(), (), TaskCreate>) -> Result<Reply<TaskView>, ApiError> {
    let done = tasks::task_create(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

async fn get(cx: Cx<App>, input: Input<ByTask, (), ()>) -> Result<Reply<TaskView>, ApiError> {
    let view = tasks::task_get(&cx.app, &cx.caller, input.path.id).await?;
    let version = view.version;
    Ok(Reply::ok(view).etag(version))
}

async fn update(cx: Cx<App>, input: Input<ByTask, (), TaskPatch>) -> Result<Reply<TaskView>, ApiError> {
    let done = tasks::task_update(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn claim(cx: Cx<App>, input: Input<ByTask, (), TaskClaim>) -> Result<Reply<ClaimView>, ApiError> {
    Ok(changed(StatusCode::OK, tasks::task_claim(&cx.app, Actor::of(&cx), input.path.id, input.body).await?))
}

async fn complete(cx: Cx<App>, input: Input<ByTask, (), TaskComplete>) -> Result<Reply<TaskView>, ApiError> {
    let done = tasks::task_complete(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn comments(cx: Cx<App>, input: Input<ByTask, ListQuery, ()>) -> Result<Reply<Page<CommentView>>, ApiError> {
    let (key, limit) = (input.query.key(COMMENTS)?, input.query.limit());
    Ok(Reply::ok(COMMENTS.page(tasks::comment_list(&cx.app, &cx.caller, input.path.id, key, limit).await?)))
}

async fn comment(cx: Cx<App>, input: Input<ByTask, (), CommentCreate>) -> Result<Reply<CommentView>, ApiError> {
    Ok(changed(StatusCode::CREATED, tasks::comment_add(&cx.app, Actor::of(&cx), input.path.id, input.body).await?))
}

async fn release(cx: Cx<App>, input: Input<ByClaim, (), Because>) -> Result<Reply<ClaimView>, ApiError> {
    Ok(changed(StatusCode::OK, tasks::claim_release(&cx.app, Actor::of(&cx), input.path.id, input.body).await?))
}
