//! Approvals: requested, decided, cancelled; and the tokens with which one person decides one of them.

use courant_api::approvals::{
    ApprovalDecide, ApprovalRequest, ApprovalView, DECISION_TOKEN_SECONDS, DEFAULT_DECISION_TOKEN_SECONDS,
    DecisionToken, DecisionTokenCreate, MAX_COMMENT_CHARS, is_channel,
};
use courant_api::{ApprovalId, Permission};
use courant_store::{ApprovalQuery, Caller, Changed, Decision, DecisionTokenDraft, Page, PageKey};

use super::{Actor, decided, place, require, text};
use crate::app::App;
use crate::clock;
use crate::http::ApiError;
use crate::secrets::api_key;

const SECOND_US: i64 = 1_000_000;

fn comment(said: Option<&String>) -> Result<(), ApiError> {
    said.map_or(Ok(()), |said| text::prose("/comment", said, MAX_COMMENT_CHARS))
}

/// Requests a decision.
pub async fn approval_request(
    app: &App,
    actor: Actor,
    body: ApprovalRequest,
) -> Result<Changed<ApprovalView>, ApiError> {
    if body.task_id.is_some() == body.artifact_id.is_some() {
        let problem = "or else artifactId must be given: exactly one of them";
        return Err(ApiError::invalid_field("/taskId", problem));
    }
    if body.gate == Some(true) && body.task_id.is_none() {
        return Err(ApiError::invalid_field("/gate", "holds a task, and there is none"));
    }
    if body.required_role_id.is_some() == body.assigned_principal_id.is_some() {
        let problem = "or else assignedPrincipalId must be given: exactly one of them";
        return Err(ApiError::invalid_field("/requiredRoleId", problem));
    }
    comment(body.comment.as_ref())?;
    if body.expires_at.is_some_and(|at| at <= actor.change.now) {
        return Err(ApiError::invalid_field("/expiresAt", "lies in the past"));
    }
    decided(app, || app.store.approval_request(actor.change.clone(), body.clone())).await
}

/// One approval.
pub async fn approval_get(app: &App, caller: &Caller, id: ApprovalId) -> Result<ApprovalView, ApiError> {
    let approval = app.store.approval_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::ApprovalsRead, &place(approval.workspace_id)).await?;
    Ok(approval)
}

/// Approvals, newest first: of a workspace and all below it, or of the whole tenant.
pub async fn approval_list(
    app: &App,
    caller: &Caller,
    query: ApprovalQuery,
    key: PageKey,
    limit: i64,
) -> Result<Page<ApprovalView>, ApiError> {
    if let Some(workspace) = query.workspace_id {
        app.store.workspace_get(caller.tenant_id, workspace).await?;
    }
    if let Some(task) = query.task_id {
        app.store.task_get(caller.tenant_id, task).await?;
    }
    if let Some(role) = query.required_role_id {
        app.store.role_get(caller.tenant_id, role).await?;
    }
    require(app, caller, Permission::ApprovalsRead, &place(query.workspace_id)).await?;
    Ok(app.store.approval_list(caller.tenant_id, query, key, limit).await?)
}

/// What the caller may decide now, newest first.
pub async fn approvals_to_decide(
    app: &App,
    caller: &Caller,
    key: PageKey,
    limit: i64,
) -> Result<Page<ApprovalView>, ApiError> {
    let now = clock::now();
    decided(app, || app.store.approvals_to_decide(&caller.rights, now, key, limit)).await
}

/// Decides an approval.
pub async fn approval_decide(
    app: &App,
    actor: Actor,
    id: ApprovalId,
    approve: bool,
    said: ApprovalDecide,
) -> Result<Changed<ApprovalView>, ApiError> {
    comment(said.comment.as_ref())?;
    let decision = Decision { approve, said, channel: actor.caller.channel.clone() };
    decided(app, || app.store.approval_decide(actor.change.clone(), id, decision.clone())).await
}

/// Asks no more.
pub async fn approval_cancel(app: &App, actor: Actor, id: ApprovalId) -> Result<Changed<ApprovalView>, ApiError> {
    decided(app, || app.store.approval_cancel(actor.change.clone(), id)).await
}

/// Makes a token with which one principal decides one approval, through one channel.
pub async fn decision_token_create(
    app: &App,
    actor: Actor,
    id: ApprovalId,
    body: DecisionTokenCreate,
) -> Result<Changed<DecisionToken>, ApiError> {
    if !is_channel(&body.channel) {
        let problem = "must have 1 to 40 lower-case letters, digits, '_' and '-', the first a letter or digit";
        return Err(ApiError::invalid_field("/channel", problem));
    }
    let seconds = body.expires_in_seconds.unwrap_or(DEFAULT_DECISION_TOKEN_SECONDS);
    if !DECISION_TOKEN_SECONDS.contains(&seconds) {
        let (from, to) = (DECISION_TOKEN_SECONDS.start(), DECISION_TOKEN_SECONDS.end());
        return Err(ApiError::invalid_field("/expiresInSeconds", &format!("must lie between {from} and {to}")));
    }
    let secret = api_key::generate_marked(api_key::DECISION_MARK);
    let token = DecisionTokenDraft {
        hash: api_key::hash(secret.expose()),
        secret: secret.expose().to_owned(),
        principal_id: body.principal_id,
        channel: body.channel,
        expires_at: actor.change.now.plus_micros(seconds * SECOND_US),
    };
    decided(app, || app.store.decision_token_create(actor.change.clone(), id, token.clone())).await
}
