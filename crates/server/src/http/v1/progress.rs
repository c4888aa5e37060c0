//! `/runs`, `/tasks/{id}/verifications`, `/verifications`

use courant_api::work::{
    Because, RunStart, RunSucceed, RunSuspend, RunView, VerificationFail, VerificationPass, VerificationStart,
    VerificationView,
};
use courant_api::{ErrorCode, Page, Permission, RunId, TaskId, VerificationId};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::changed;
use super::list::{List, ListQuery};
use super::tasks::{ByTask, ITS_WORKSPACE};
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, progress};

const RUNS: List = List("runs");
const VERIFICATIONS: List = List("verifications");

const WORKS: Access = Access::On(&[Permission::TasksWork], ITS_WORKSPACE);
const READS: Access = Access::On(&[Permission::TasksRead], ITS_WORKSPACE);

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    let mut all = runs();
    all.extend(verifications());
    all
}

fn runs() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    vec![
        Endpoint::get("/api/v1/runs", run_list)
            .tag("work")
            .summary("Lists the runs of a task")
            .missing("task")
            .access(READS)
            .errors(&[E::NotFound, E::InvalidCursor]),
        Endpoint::post("/api/v1/runs", run_start)
            .tag("work")
            .summary("Begins a run under a claim that holds its task")
            .access(WORKS)
            .errors(&[E::NotFound, E::Conflict, E::StaleFencingToken])
            .created(),
        Endpoint::get("/api/v1/runs/{id}", run_get).tag("work").summary("Reads a run").missing("run").access(READS),
        Endpoint::post("/api/v1/runs/{id}:succeed", run_succeed)
            .tag("work")
            .summary("Says that a run reached its end, and completes its task if asked to")
            .description("The run's claim must still hold the task.")
            .missing("run")
            .body_optional()
            .access(WORKS)
            .errors(&[E::IllegalTransition, E::StaleFencingToken, E::GatedByApproval]),
        Endpoint::post("/api/v1/runs/{id}:fail", run_fail)
            .tag("work")
            .summary("Says that a run failed")
            .missing("run")
            .body_optional()
            .access(WORKS)
            .errors(&[E::IllegalTransition]),
        Endpoint::post("/api/v1/runs/{id}:cancel", run_cancel)
            .tag("work")
            .summary("Stops a run, also one that waits")
            .missing("run")
            .body_optional()
            .access(WORKS)
            .errors(&[E::IllegalTransition]),
        Endpoint::post("/api/v1/runs/{id}:suspend", run_suspend)
            .tag("work")
            .summary("Says that a run waits; another run goes on from there")
            .description("The run's claim must still hold the task.")
            .missing("run")
            .body_optional()
            .access(WORKS)
            .errors(&[E::IllegalTransition, E::StaleFencingToken]),
    ]
}

fn verifications() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    vec![
        Endpoint::get("/api/v1/tasks/{id}/verifications", verification_list)
            .tag("work")
            .summary("Lists the verifications of a task")
            .missing("task")
            .access(READS)
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/tasks/{id}/verifications", verification_start)
            .tag("work")
            .summary("Begins a round of checks on a task")
            .missing("task")
            .access(WORKS)
            .errors(&[E::Conflict, E::IllegalTransition])
            .created(),
        Endpoint::post("/api/v1/verifications/{id}:pass", verification_pass)
            .tag("work")
            .summary("Says that every check passed")
            .missing("verification")
            .body_optional()
            .access(WORKS)
            .errors(&[E::IllegalTransition]),
        Endpoint::post("/api/v1/verifications/{id}:fail", verification_fail)
            .tag("work")
            .summary("Says that a check failed; the third failure in a row blocks the task")
            .missing("verification")
            .access(WORKS)
            .errors(&[E::IllegalTransition]),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByRun {
    /// The run's id.
    id: RunId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByVerification {
    /// The verification's id.
    id: VerificationId,
}

/// Of which task, and which page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RunsQuery {
    /// The task.
    task_id: TaskId,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most rows in the page; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

async fn run_list(cx: Cx<App>, input: Input<(), RunsQuery, ()>) -> Result<Reply<Page<RunView>>, ApiError> {
    let RunsQuery { task_id, cursor, limit } = input.query;
    let page = ListQuery { cursor, limit };
    let rows = progress::run_list(&cx.app, &cx.caller, task_id, page.key(RUNS)?, page.limit()).await?;
    Ok(Reply::ok(RUNS.page(rows)))
}

async fn run_start(cx: Cx<App>, input: Input<(), (), RunStart>) -> Result<Reply<RunView>, ApiError> {
    Ok(changed(StatusCode::CREATED, progress::run_start(&cx.app, Actor::of(&cx), input.body).await?))
}

async fn run_get(cx: Cx<App>, input: Input<ByRun, (), ()>) -> Result<Reply<RunView>, ApiError> {
    Ok(Reply::ok(progress::run_get(&cx.app, &cx.caller, input.path.id).await?))
}

async fn run_succeed(cx: Cx<App>, input: Input<ByRun, (), RunSucceed>) -> Result<Reply<RunView>, ApiError> {
    Ok(changed(StatusCode::OK, progress::run_succeed(&cx.app, Actor::of(&cx), input.path.id, input.body).await?))
}

async fn run_fail(cx: Cx<App>, input: Input<ByRun, (), Because>) -> Result<Reply<RunView>, ApiError> {
    Ok(changed(StatusCode::OK, progress::run_fail(&cx.app, Actor::of(&cx), input.path.id, input.body).await?))
}

async fn run_cancel(cx: Cx<App>, input: Input<ByRun, (), Because>) -> Result<Reply<RunView>, ApiError> {
    Ok(changed(StatusCode::OK, progress::run_cancel(&cx.app, Actor::of(&cx), input.path.id, input.body).await?))
}

async fn run_suspend(cx: Cx<App>, input: Input<ByRun, (), RunSuspend>) -> Result<Reply<RunView>, ApiError> {
    Ok(changed(StatusCode::OK, progress::run_suspend(&cx.app, Actor::of(&cx), input.path.id, input.body).await?))
}

async fn verification_list(
    cx: Cx<App>,
    input: Input<ByTask, ListQuery, ()>,
) -> Result<Reply<Page<VerificationView>>, ApiError> {
    let (key, limit) = (input.query.key(VERIFICATIONS)?, input.query.limit());
    let rows = progress::verification_list(&cx.app, &cx.caller, input.path.id, key, limit).await?;
    Ok(Reply::ok(VERIFICATIONS.page(rows)))
}

async fn verification_start(
    cx: Cx<App>,
    input: Input<ByTask, (), VerificationStart>,
) -> Result<Reply<VerificationView>, ApiError> {
    let done = progress::verification_start(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(changed(StatusCode::CREATED, done))
}

async fn verification_pass(
    cx: Cx<App>,
    input: Input<ByVerification, (), VerificationPass>,
) -> Result<Reply<VerificationView>, ApiError> {
    let done = progress::verification_pass(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(changed(StatusCode::OK, done))
}

async fn verification_fail(
    cx: Cx<App>,
    input: Input<ByVerification, (), VerificationFail>,
) -> Result<Reply<VerificationView>, ApiError> {
    let done = progress::verification_fail(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(changed(StatusCode::OK, done))
}
