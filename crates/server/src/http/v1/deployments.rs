//! `/orgs/{org_id}/stacks`, `/orgs/{org_id}/deployments`, `/orgs/{org_id}/runs`, `/orgs/{org_id}/findings`

use courant_api::deployments::{
    DeploymentCreate, DeploymentRunComplete, DeploymentRunStart, DeploymentRunView, DeploymentStatus, DeploymentView,
    FindingsView, StackCreate, StackPatch, StackView,
};
use courant_api::{DeploymentId, DeploymentRunId, ErrorCode, Page, Permission, StackId, TenantId, WorkspaceId};
use courant_store::{Changed, DeploymentQuery, DeploymentStep, StackQuery};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{List, ListQuery};
use super::{changed, versioned};
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, deployments, notify};

const STACKS: List = List("stacks");
const DEPLOYMENTS: List = List("deployments");
const RUNS: List = List("deployment-runs");

const ITS_WORKSPACE: &str = "the stack's workspace, or the tenant";
const A_WORKSPACE: &str = "the workspace, or the tenant";

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    let mut all = stacks();
    all.extend(lives());
    all.extend(runs());
    all
}

fn stacks() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    let tagged = |endpoint: Endpoint<App>| endpoint.tag("deployments");
    vec![
        tagged(Endpoint::get("/api/v1/orgs/{org_id}/stacks", list_stacks))
            .summary("Lists stacks")
            .description("Of a workspace and all below it, or of the whole org; newest first.")
            .missing("org")
            .access(Access::On(&[P::StacksRead], A_WORKSPACE))
            .errors(&[E::NotFound, E::InvalidCursor]),
        tagged(Endpoint::post("/api/v1/orgs/{org_id}/stacks", create_stack))
            .summary("Creates a stack")
            .description("The stacks in `dependsOn` must exist; one that is deleted later stays in it, as a finding.")
            .missing("org")
            .access(Access::On(&[P::StacksManage], ITS_WORKSPACE))
            .errors(&[E::NotFound])
            .etag()
            .created(),
        tagged(Endpoint::get("/api/v1/orgs/{org_id}/stacks/{id}", get_stack))
            .summary("Reads a stack")
            .missing("stack")
            .access(Access::On(&[P::StacksRead], ITS_WORKSPACE))
            .etag(),
        tagged(Endpoint::patch("/api/v1/orgs/{org_id}/stacks/{id}", update_stack))
            .summary("Changes or moves a stack")
            .missing("stack")
            .access(Access::On(&[P::StacksManage], ITS_WORKSPACE)),
        tagged(Endpoint::delete("/api/v1/orgs/{org_id}/stacks/{id}", delete_stack))
            .summary("Deletes a stack none of whose deployments runs")
            .description("Those that wait are left out, with `stack_deleted` as their reason; all can still be read.")
            .missing("stack")
            .access(Access::On(&[P::StacksManage], ITS_WORKSPACE))
            .errors(&[E::Conflict]),
        tagged(Endpoint::get("/api/v1/orgs/{org_id}/findings", findings))
            .summary("Says what is wrong with the stacks as they depend on one another")
            .description(
                "Cycles, dependencies on stacks that are gone, and places in a repository that several stacks have. A count that \
                 is null is unknown: the look for it was too long.",
            )
            .missing("org")
            .access(Access::On(&[P::StacksRead], "the tenant")),
    ]
}

fn lives() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    let tagged = |endpoint: Endpoint<App>| endpoint.tag("deployments");
    let step = |endpoint: Endpoint<App>| {
        tagged(endpoint)
            .missing("deployment")
            .access(Access::On(&[P::DeploymentsConfirm], ITS_WORKSPACE))
            .errors(&[E::IllegalTransition, E::Conflict])
            .etag()
    };
    vec![
        tagged(Endpoint::get("/api/v1/orgs/{org_id}/deployments", list))
            .summary("Lists deployments")
            .description("Of stacks of a workspace and all below it, or of the whole org; newest first.")
            .missing("org")
            .access(Access::On(&[P::DeploymentsRead], A_WORKSPACE))
            .errors(&[E::NotFound, E::InvalidCursor]),
        tagged(Endpoint::post("/api/v1/orgs/{org_id}/deployments", create))
            .summary("Creates a deployment of a stack")
            .description(
                "`plan` plans, waits for a confirmation and applies; `plan_unlocked` is a preview, which only plans; `raw` runs a \
                 command. A preview of a pull request retires the older ones of the same, and waits for a confirmation first when \
                 the stack's `prPlanMode` is `manual`.",
            )
            .missing("org")
            .access(Access::On(&[P::DeploymentsRun], ITS_WORKSPACE))
            .errors(&[E::NotFound])
            .etag()
            .created(),
        tagged(Endpoint::get("/api/v1/orgs/{org_id}/deployments/{id}", get))
            .summary("Reads a deployment")
            .missing("deployment")
            .access(Access::On(&[P::DeploymentsRead], ITS_WORKSPACE))
            .etag(),
        step(Endpoint::post("/api/v1/orgs/{org_id}/deployments/{id}:confirm", confirm))
            .summary("Lets a deployment that waits go on")
            .description("What is applied is the latest plan that has succeeded by now, unless the apply names another one."),
        step(Endpoint::post("/api/v1/orgs/{org_id}/deployments/{id}:cancel", cancel)).summary("Stops a deployment"),
        step(Endpoint::post("/api/v1/orgs/{org_id}/deployments/{id}:skip", skip))
            .summary("Leaves out a deployment none of whose runs is under way"),
        step(Endpoint::post("/api/v1/orgs/{org_id}/deployments/{id}:promote", promote))
            .summary("Makes a deployment of what the preview of a pull request has shown; once")
            .description("Answers the new deployment.")
            .created(),
    ]
}

fn runs() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    let tagged = |endpoint: Endpoint<App>| endpoint.tag("deployments");
    vec![
        tagged(Endpoint::get("/api/v1/orgs/{org_id}/deployments/{id}/runs", list_runs))
            .summary("Lists the runs of a deployment")
            .missing("deployment")
            .access(Access::On(&[P::DeploymentsRead], ITS_WORKSPACE))
            .errors(&[E::InvalidCursor]),
        tagged(Endpoint::post("/api/v1/orgs/{org_id}/deployments/{id}/runs", start_run))
            .summary("Begins a run of a deployment, for its runner")
            .description(
                "The runner is heard of by heartbeats; one that is silent for 5 minutes fails the deployment, as does a \
                 deployment whose next run has not begun after 5 minutes. Of a `command` only its length is kept; running it is \
                 the caller's business.",
            )
            .missing("deployment")
            .access(Access::On(&[P::DeploymentsRun], ITS_WORKSPACE))
            .errors(&[E::IllegalTransition, E::Conflict])
            .created(),
        tagged(Endpoint::post("/api/v1/orgs/{org_id}/runs/{id}:heartbeat", heartbeat))
            .summary("Says that a run's runner is there")
            .missing("run")
            .access(Access::On(&[P::DeploymentsRun], ITS_WORKSPACE))
            .errors(&[E::IllegalTransition]),
        tagged(Endpoint::post("/api/v1/orgs/{org_id}/runs/{id}:complete", complete))
            .summary("Ends a run, and takes its deployment on")
            .description(
                "A `planSummary` is for plan runs. Its `hasChanges` is the tool's own verdict; absent means that it was not \
                 measured, and the plan then waits for its confirmation.",
            )
            .missing("run")
            .access(Access::On(&[P::DeploymentsRun], ITS_WORKSPACE))
            .errors(&[E::IllegalTransition]),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Org {
    /// The org: the tenant's id.
    org_id: TenantId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById<I> {
    /// The org: the tenant's id.
    org_id: TenantId,
    /// Its id.
    id: I,
}

impl<I: Copy> ById<I> {
    /// The id, if the caller belongs to the org; what another org has is not there.
    fn own(&self, cx: &Cx<App>, what: &str) -> Result<I, ApiError> {
        notify::of_org(&cx.caller, self.org_id).map_err(|_| ApiError::not_found(what))?;
        Ok(self.id)
    }
}

/// Which stacks, and which page of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StacksQuery {
    /// Only those of this workspace and all below it.
    workspace_id: Option<WorkspaceId>,
    /// Only those with this name.
    name: Option<String>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most rows in the page; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

async fn list_stacks(cx: Cx<App>, input: Input<Org, StacksQuery, ()>) -> Result<Reply<Page<StackView>>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    let StacksQuery { workspace_id, name, cursor, limit } = input.query;
    let page = ListQuery { cursor, limit };
    let query = StackQuery { workspace_id, name };
    let rows = deployments::stack_list(&cx.app, &cx.caller, query, page.key(STACKS)?, page.limit()).await?;
    Ok(Reply::ok(STACKS.page(rows)))
}

async fn create_stack(cx: Cx<App>, input: Input<Org, (), StackCreate>) -> Result<Reply<StackView>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    let done = deployments::stack_create(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

async fn get_stack(cx: Cx<App>, input: Input<ById<StackId>, (), ()>) -> Result<Reply<StackView>, ApiError> {
    let id = input.path.own(&cx, "stack")?;
    let view = deployments::stack_get(&cx.app, &cx.caller, id).await?;
    let version = view.version;
    Ok(Reply::ok(view).etag(version))
}

async fn update_stack(cx: Cx<App>, input: Input<ById<StackId>, (), StackPatch>) -> Result<Reply<StackView>, ApiError> {
    let id = input.path.own(&cx, "stack")?;
    let done = deployments::stack_update(&cx.app, Actor::of(&cx), id, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn delete_stack(cx: Cx<App>, input: Input<ById<StackId>, (), ()>) -> Result<Reply<()>, ApiError> {
    let id = input.path.own(&cx, "stack")?;
    match deployments::stack_delete(&cx.app, Actor::of(&cx), id).await? {
        Changed::Now(()) | Changed::Before(_) => Ok(Reply::no_content()),
    }
}

async fn findings(cx: Cx<App>, input: Input<Org, (), ()>) -> Result<Reply<FindingsView>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    Ok(Reply::ok(deployments::findings(&cx.app, &cx.caller).await?))
}

/// Which deployments, and which page of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeploymentsQuery {
    /// Only those of stacks of this workspace and all below it.
    workspace_id: Option<WorkspaceId>,
    /// Only those in one of these states, repeatable.
    #[serde(default)]
    status: Vec<DeploymentStatus>,
    /// Only those of this stack.
    stack_id: Option<StackId>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most rows in the page; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

async fn list(cx: Cx<App>, input: Input<Org, DeploymentsQuery, ()>) -> Result<Reply<Page<DeploymentView>>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    let DeploymentsQuery { workspace_id, status, stack_id, cursor, limit } = input.query;
    let page = ListQuery { cursor, limit };
    let query = DeploymentQuery { workspace_id, statuses: status, stack_id };
    let rows = deployments::deployment_list(&cx.app, &cx.caller, query, page.key(DEPLOYMENTS)?, page.limit()).await?;
    Ok(Reply::ok(DEPLOYMENTS.page(rows)))
}

async fn create(cx: Cx<App>, input: Input<Org, (), DeploymentCreate>) -> Result<Reply<DeploymentView>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    let done = deployments::deployment_create(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

async fn get(cx: Cx<App>, input: Input<ById<DeploymentId>, (), ()>) -> Result<Reply<DeploymentView>, ApiError> {
    let id = input.path.own(&cx, "deployment")?;
    let view = deployments::deployment_get(&cx.app, &cx.caller, id).await?;
    let version = view.version;
    Ok(Reply::ok(view).etag(version))
}

async fn step(cx: Cx<App>, path: ById<DeploymentId>, step: DeploymentStep) -> Result<Reply<DeploymentView>, ApiError> {
    let id = path.own(&cx, "deployment")?;
    let done = deployments::deployment_step(&cx.app, Actor::of(&cx), id, step).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn confirm(cx: Cx<App>, input: Input<ById<DeploymentId>, (), ()>) -> Result<Reply<DeploymentView>, ApiError> {
    step(cx, input.path, DeploymentStep::Confirm).await
}

async fn cancel(cx: Cx<App>, input: Input<ById<DeploymentId>, (), ()>) -> Result<Reply<DeploymentView>, ApiError> {
    step(cx, input.path, DeploymentStep::Cancel).await
}

async fn skip(cx: Cx<App>, input: Input<ById<DeploymentId>, (), ()>) -> Result<Reply<DeploymentView>, ApiError> {
    step(cx, input.path, DeploymentStep::Skip).await
}

async fn promote(cx: Cx<App>, input: Input<ById<DeploymentId>, (), ()>) -> Result<Reply<DeploymentView>, ApiError> {
    let id = input.path.own(&cx, "deployment")?;
    let done = deployments::deployment_promote(&cx.app, Actor::of(&cx), id).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

async fn list_runs(
    cx: Cx<App>,
    input: Input<ById<DeploymentId>, ListQuery, ()>,
) -> Result<Reply<Page<DeploymentRunView>>, ApiError> {
    let id = input.path.own(&cx, "deployment")?;
    let (key, limit) = (input.query.key(RUNS)?, input.query.limit());
    Ok(Reply::ok(RUNS.page(deployments::run_list(&cx.app, &cx.caller, id, key, limit).await?)))
}

async fn start_run(
    cx: Cx<App>,
    input: Input<ById<DeploymentId>, (), DeploymentRunStart>,
) -> Result<Reply<DeploymentRunView>, ApiError> {
    let id = input.path.own(&cx, "deployment")?;
    Ok(changed(StatusCode::CREATED, deployments::run_start(&cx.app, Actor::of(&cx), id, input.body).await?))
}

async fn heartbeat(
    cx: Cx<App>,
    input: Input<ById<DeploymentRunId>, (), ()>,
) -> Result<Reply<DeploymentRunView>, ApiError> {
    let id = input.path.own(&cx, "run")?;
    Ok(changed(StatusCode::OK, deployments::run_heartbeat(&cx.app, Actor::of(&cx), id).await?))
}

async fn complete(
    cx: Cx<App>,
    input: Input<ById<DeploymentRunId>, (), DeploymentRunComplete>,
) -> Result<Reply<DeploymentRunView>, ApiError> {
    let id = input.path.own(&cx, "run")?;
    Ok(changed(StatusCode::OK, deployments::run_complete(&cx.app, Actor::of(&cx), id, input.body).await?))
}
