//! `/approvals`, `/me/approvals`

use courant_api::approvals::{
    ApprovalDecide, ApprovalRequest, ApprovalStatus, ApprovalView, DecisionToken, DecisionTokenCreate,
};
use courant_api::{ApprovalId, ErrorCode, Page, Permission, RoleId, TaskId, WorkspaceId};
use courant_store::ApprovalQuery;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{List, ListQuery};
use super::{changed, versioned};
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, approvals};

const APPROVALS: List = List("approvals");
const MINE: List = List("my-approvals");

const ITS_WORKSPACE: &str = "the approval's workspace, or the tenant";

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    let decides = |endpoint: Endpoint<App>| {
        endpoint
            .tag("work")
            .description(
                "For the principal whom the approval names, or whoever holds its role where it lies, but not for its requester \
                 when that is barred. The first decision counts.",
            )
            .missing("approval")
            .body_optional()
            .access(Access::On(&[P::ApprovalsDecide], ITS_WORKSPACE))
            .errors(&[E::NotEligible, E::ApprovalAlreadyDecided, E::IdempotencyKeyRequired])
            .etag()
    };
    vec![
        Endpoint::get("/api/v1/approvals", list)
            .tag("work")
            .summary("Lists approvals")
            .description("Of a workspace and all below it, or of the whole tenant; newest first.")
            .access(Access::On(&[P::ApprovalsRead], "the workspace, or the tenant"))
            .errors(&[E::NotFound, E::InvalidCursor]),
        Endpoint::post("/api/v1/approvals", request)
            .tag("work")
            .summary("Requests a decision about a task or an artifact")
            .description(
                "Exactly one of `taskId` and `artifactId` says about what, and exactly one of `requiredRoleId` and \
                 `assignedPrincipalId` who decides. With `gate` the task can be neither claimed nor completed until it is \
                 decided, cancelled or expired. The approval lies where its task or artifact lies now, for ever.",
            )
            .access(Access::On(&[P::ApprovalsRequest], "the workspace of the task or artifact, or the tenant"))
            .errors(&[E::NotFound])
            .etag()
            .created(),
        Endpoint::get("/api/v1/approvals/{id}", get)
            .tag("work")
            .summary("Reads an approval")
            .missing("approval")
            .access(Access::On(&[P::ApprovalsRead], ITS_WORKSPACE))
            .etag(),
        decides(Endpoint::post("/api/v1/approvals/{id}:approve", approve)).summary("Approves"),
        decides(Endpoint::post("/api/v1/approvals/{id}:reject", reject)).summary("Rejects"),
        Endpoint::post("/api/v1/approvals/{id}:cancel", cancel)
            .tag("work")
            .summary("Cancels an approval; a cancelled one stays so")
            .description("Of the caller's own request it needs `approvals.request` instead.")
            .missing("approval")
            .access(Access::On(&[P::ApprovalsManage], ITS_WORKSPACE))
            .errors(&[E::ApprovalAlreadyDecided])
            .etag(),
        Endpoint::post("/api/v1/approvals/{id}/decision-tokens", token)
            .tag("work")
            .summary("Makes a token with which one principal decides this approval")
            .description(
                "For a channel that has found out by itself who answers there. The token is a bearer credential for \
                 `:approve` and `:reject` of this approval with an `Idempotency-Key`, and for nothing else.",
            )
            .missing("approval")
            .access(Access::On(&[P::ApprovalsManage], ITS_WORKSPACE))
            .errors(&[E::Conflict, E::ApprovalAlreadyDecided])
            .created(),
        Endpoint::get("/api/v1/me/approvals", mine)
            .tag("work")
            .summary("Lists what the caller may decide now")
            .access(Access::Caller)
            .errors(&[E::InvalidCursor, E::AuthorizationUnavailable]),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById {
    /// The approval's id.
    id: ApprovalId,
}

/// Which approvals, and which page of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ApprovalsQuery {
    /// Only approvals of this workspace and all below it.
    workspace_id: Option<WorkspaceId>,
    /// Only approvals in one of these states, repeatable.
    #[serde(default)]
    status: Vec<ApprovalStatus>,
    /// Only approvals about this task.
    task_id: Option<TaskId>,
    /// Only approvals that this role decides.
    required_role_id: Option<RoleId>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most rows in the page; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

async fn list(cx: Cx<App>, input: Input<(), ApprovalsQuery, ()>) -> Result<Reply<Page<ApprovalView>>, ApiError> {
    let ApprovalsQuery { workspace_id, status, task_id, required_role_id, cursor, limit } = input.query;
    let page = ListQuery { cursor, limit };
    let query = ApprovalQuery { workspace_id, statuses: status, task_id, required_role_id };
    let rows = approvals::approval_list(&cx.app, &cx.caller, query, page.key(APPROVALS)?, page.limit()).await?;
    Ok(Reply::ok(APPROVALS.page(rows)))
}

async fn request(cx: Cx<App>, input: Input<(), (), ApprovalRequest>) -> Result<Reply<ApprovalView>, ApiError> {
    let done = approvals::approval_request(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

async fn get(cx: Cx<App>, input: Input<ById, (), ()>) -> Result<Reply<ApprovalView>, ApiError> {
    let view = approvals::approval_get(&cx.app, &cx.caller, input.path.id).await?;
    let version = view.version;
    Ok(Reply::ok(view).etag(version))
}

async fn approve(cx: Cx<App>, input: Input<ById, (), ApprovalDecide>) -> Result<Reply<ApprovalView>, ApiError> {
    let done = approvals::approval_decide(&cx.app, Actor::of(&cx), input.path.id, true, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn reject(cx: Cx<App>, input: Input<ById, (), ApprovalDecide>) -> Result<Reply<ApprovalView>, ApiError> {
    let done = approvals::approval_decide(&cx.app, Actor::of(&cx), input.path.id, false, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn cancel(cx: Cx<App>, input: Input<ById, (), ()>) -> Result<Reply<ApprovalView>, ApiError> {
    let done = approvals::approval_cancel(&cx.app, Actor::of(&cx), input.path.id).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn token(cx: Cx<App>, input: Input<ById, (), DecisionTokenCreate>) -> Result<Reply<DecisionToken>, ApiError> {
    let done = approvals::decision_token_create(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(changed(StatusCode::CREATED, done))
}

async fn mine(cx: Cx<App>, input: Input<(), ListQuery, ()>) -> Result<Reply<Page<ApprovalView>>, ApiError> {
    let (key, limit) = (input.query.key(MINE)?, input.query.limit());
    Ok(Reply::ok(MINE.page(approvals::approvals_to_decide(&cx.app, &cx.caller, key, limit).await?)))
}
