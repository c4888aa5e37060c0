//! `/skill-invocations`

use courant_api::resources::{SkillFail, SkillInvocationView, SkillInvoke, SkillRetry, SkillStatus};
use courant_api::{ErrorCode, Page, Permission, SkillInvocationId, TaskId, WorkspaceId};
use courant_store::{SkillQuery, SkillStep};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{List, ListQuery};
use super::tasks::ITS_WORKSPACE;
use super::versioned;
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, skills};

const INVOCATIONS: List = List("skill-invocations");

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    let step = |endpoint: Endpoint<App>| {
        endpoint.tag("work").missing("skill invocation").errors(&[E::IllegalTransition, E::Conflict]).etag()
    };
    let work = Access::On(&[P::TasksWork], ITS_WORKSPACE);
    let of_others = Access::On(&[P::TasksWork, P::TasksUpdate], ITS_WORKSPACE);
    let own = "Of the caller's own claim it needs `tasks.work` alone.";
    vec![
        Endpoint::get("/api/v1/skill-invocations", list)
            .tag("work")
            .summary("Lists skill invocations")
            .description("For tasks of a workspace and all below it, or of the whole tenant; newest first.")
            .access(Access::On(&[P::TasksRead], "the workspace, or the tenant"))
            .errors(&[E::NotFound, E::InvalidCursor]),
        Endpoint::post("/api/v1/skill-invocations", request)
            .tag("work")
            .summary("Wants a skill used for a task")
            .description(
                "Whoever can do it claims it, and then says that it succeeded, failed, or is to be tried again.",
            )
            .access(work)
            .errors(&[E::NotFound, E::IllegalTransition])
            .etag()
            .created(),
        Endpoint::get("/api/v1/skill-invocations/{id}", get)
            .tag("work")
            .summary("Reads a skill invocation")
            .missing("skill invocation")
            .access(Access::On(&[P::TasksRead], ITS_WORKSPACE))
            .etag(),
        step(Endpoint::post("/api/v1/skill-invocations/{id}:claim", claim))
            .summary("Claims a skill invocation for the caller")
            .description("One that is to be tried again can be claimed from its `availableAt`.")
            .access(work),
        step(Endpoint::post("/api/v1/skill-invocations/{id}:retry", retry))
            .summary("Has it tried again, if attempts are left")
            .description(own)
            .access(of_others),
        step(Endpoint::post("/api/v1/skill-invocations/{id}:succeed", succeed))
            .summary("Says that it is done")
            .description(own)
            .access(of_others),
        step(Endpoint::post("/api/v1/skill-invocations/{id}:fail", fail))
            .summary("Says that it was tried in vain")
            .description(own)
            .access(of_others),
        step(Endpoint::post("/api/v1/skill-invocations/{id}:cancel", cancel))
            .summary("Wants it no more")
            .description("Of the caller's own wish it needs `tasks.work` alone.")
            .access(of_others),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById {
    /// The invocation's id.
    id: SkillInvocationId,
}

/// Which skill invocations, and which page of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InvocationsQuery {
    /// Only those for tasks of this workspace and all below it.
    workspace_id: Option<WorkspaceId>,
    /// Only those in one of these states, repeatable.
    #[serde(default)]
    status: Vec<SkillStatus>,
    /// Only those for this task.
    task_id: Option<TaskId>,
    /// Only those of this skill.
    skill: Option<String>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most rows in the page; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

type Invocation = Result<Reply<SkillInvocationView>, ApiError>;

async fn list(
    cx: Cx<App>,
    input: Input<(), InvocationsQuery, ()>,
) -> Result<Reply<Page<SkillInvocationView>>, ApiError> {
    let InvocationsQuery { workspace_id, status, task_id, skill, cursor, limit } = input.query;
    let page = ListQuery { cursor, limit };
    let query = SkillQuery { workspace_id, statuses: status, task_id, skill };
    let rows = skills::list(&cx.app, &cx.caller, query, page.key(INVOCATIONS)?, page.limit()).await?;
    Ok(Reply::ok(INVOCATIONS.page(rows)))
}

async fn request(cx: Cx<App>, input: Input<(), (), SkillInvoke>) -> Invocation {
    let done = skills::request(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

async fn get(cx: Cx<App>, input: Input<ById, (), ()>) -> Invocation {
    let view = skills::get(&cx.app, &cx.caller, input.path.id).await?;
    let version = view.version;
    Ok(Reply::ok(view).etag(version))
}

async fn step(cx: Cx<App>, id: SkillInvocationId, step: SkillStep) -> Invocation {
    let done = skills::advance(&cx.app, Actor::of(&cx), id, step).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn claim(cx: Cx<App>, input: Input<ById, (), ()>) -> Invocation {
    step(cx, input.path.id, SkillStep::Claim).await
}

async fn retry(cx: Cx<App>, input: Input<ById, (), SkillRetry>) -> Invocation {
    step(cx, input.path.id, SkillStep::Retry(input.body)).await
}

async fn succeed(cx: Cx<App>, input: Input<ById, (), ()>) -> Invocation {
    step(cx, input.path.id, SkillStep::Succeed).await
}

async fn fail(cx: Cx<App>, input: Input<ById, (), SkillFail>) -> Invocation {
    step(cx, input.path.id, SkillStep::Fail(input.body)).await
}

async fn cancel(cx: Cx<App>, input: Input<ById, (), ()>) -> Invocation {
    step(cx, input.path.id, SkillStep::Cancel).await
}
