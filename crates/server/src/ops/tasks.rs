//! Tasks, who has claimed them, and what is said about them.

use courant_api::resources::GoalView;
use courant_api::work::{
    Because, ClaimView, CommentCreate, CommentView, LEASE_SECONDS, MAX_REASON_CHARS, MAX_TEXT_CHARS, MAX_TITLE_CHARS,
    TaskClaim, TaskComplete, TaskCreate, TaskPatch, TaskView,
};
use courant_api::{ClaimId, Permission, TaskId};
use courant_store::{Caller, Changed, Page, PageKey, TaskQuery};
use serde_json::{Map, Value};

use super::{Actor, decided, place, require, text};
use crate::app::App;
use crate::http::ApiError;

/// Longest JSON of a task's custom fields, in bytes.
const MAX_CUSTOM_FIELDS_BYTES: usize = 16 * 1024;

/// Creates a task.
pub async fn task_create(app: &App, actor: Actor, body: TaskCreate) -> Result<Changed<TaskView>, ApiError> {
    text::name("/title", &body.title, MAX_TITLE_CHARS)?;
    check_texts(body.description.as_deref(), body.custom_fields.as_ref())?;
    decided(app, || app.store.task_create(actor.change.clone(), body.clone())).await
}

/// One task.
pub async fn task_get(app: &App, caller: &Caller, id: TaskId) -> Result<TaskView, ApiError> {
    let task = app.store.task_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::TasksRead, &place(task.workspace_id)).await?;
    Ok(task)
}

/// Tasks, newest first: of a workspace and all below it, or of the whole tenant.
pub async fn task_list(
    app: &App,
    caller: &Caller,
    query: TaskQuery,
    key: PageKey,
    limit: i64,
) -> Result<Page<TaskView>, ApiError> {
    if let Some(workspace) = query.workspace_id {
        app.store.workspace_get(caller.tenant_id, workspace).await?;
    }
    if let Some(assignee) = query.assignee_id {
        app.store.principal_get(caller.tenant_id, assignee).await?;
    }
    if let Some(goal) = query.goal_id {
        app.store.resource_get::<GoalView>(caller.tenant_id, goal).await?;
    }
    require(app, caller, Permission::TasksRead, &place(query.workspace_id)).await?;
    Ok(app.store.task_list(caller.tenant_id, query, key, limit).await?)
}

/// Changes or moves a task.
pub async fn task_update(app: &App, actor: Actor, id: TaskId, patch: TaskPatch) -> Result<Changed<TaskView>, ApiError> {
    if let Some(title) = &patch.title {
        text::name("/title", title, MAX_TITLE_CHARS)?;
    }
    check_texts(patch.description.as_ref().and_then(Option::as_deref), patch.custom_fields.as_ref())?;
    decided(app, || app.store.task_update(actor.change.clone(), id, patch.clone())).await
}

/// Claims a task, or extends the caller's claim.
pub async fn task_claim(app: &App, actor: Actor, id: TaskId, body: TaskClaim) -> Result<Changed<ClaimView>, ApiError> {
    if body.lease_seconds.is_some_and(|seconds| !LEASE_SECONDS.contains(&seconds)) {
        let (from, to) = (LEASE_SECONDS.start(), LEASE_SECONDS.end());
        return Err(ApiError::invalid_field("/leaseSeconds", &format!("must lie between {from} and {to}")));
    }
    decided(app, || app.store.task_claim(actor.change.clone(), id, body.clone())).await
}

/// Gives a claimed task back.
pub async fn claim_release(
    app: &App,
    actor: Actor,
    id: ClaimId,
    body: Because,
) -> Result<Changed<ClaimView>, ApiError> {
    if let Some(reason) = &body.reason {
        text::prose("/reason", reason, MAX_REASON_CHARS)?;
    }
    decided(app, || app.store.claim_release(actor.change.clone(), id, body.clone())).await
}

/// Completes a task.
pub async fn task_complete(
    app: &App,
    actor: Actor,
    id: TaskId,
    body: TaskComplete,
) -> Result<Changed<TaskView>, ApiError> {
    decided(app, || app.store.task_complete(actor.change.clone(), id, body.clone())).await
}

/// Comments on a task.
pub async fn comment_add(
    app: &App,
    actor: Actor,
    id: TaskId,
    body: CommentCreate,
) -> Result<Changed<CommentView>, ApiError> {
    text::prose("/body", &body.body, MAX_TEXT_CHARS)?;
    if body.body.trim().is_empty() {
        return Err(ApiError::invalid_field("/body", "must say something"));
    }
    decided(app, || app.store.comment_add(actor.change.clone(), id, body.clone())).await
}

/// The comments on a task, newest first.
pub async fn comment_list(
    app: &App,
    caller: &Caller,
    id: TaskId,
    key: PageKey,
    limit: i64,
) -> Result<Page<CommentView>, ApiError> {
    task_get(app, caller, id).await?;
    Ok(app.store.comment_list(caller.tenant_id, id, key, limit).await?)
}

fn check_texts(description: Option<&str>, custom_fields: Option<&Map<String, Value>>) -> Result<(), ApiError> {
    if let Some(description) = description {
        text::prose("/description", description, MAX_TEXT_CHARS)?;
    }
    custom_fields.map_or(Ok(()), |fields| text::json("/customFields", fields, MAX_CUSTOM_FIELDS_BYTES))
}
