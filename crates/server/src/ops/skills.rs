//! Skill invocations: wanted, done, tried again.

use courant_api::resources::{ATTEMPTS, SkillInvocationView, SkillInvoke};
use courant_api::{Permission, SkillInvocationId};
use courant_store::{Caller, Changed, Page, PageKey, SkillQuery, SkillStep};

use super::resources::{key, word};
use super::{Actor, decided, place, require};
use crate::app::App;
use crate::http::ApiError;

/// Wants a skill used for a task.
pub async fn request(app: &App, actor: Actor, body: SkillInvoke) -> Result<Changed<SkillInvocationView>, ApiError> {
    key("/skill", &body.skill)?;
    word("/skillVersion", &body.skill_version)?;
    if body.max_attempts.is_some_and(|attempts| !ATTEMPTS.contains(&attempts)) {
        let (from, to) = (ATTEMPTS.start(), ATTEMPTS.end());
        return Err(ApiError::invalid_field("/maxAttempts", &format!("must lie between {from} and {to}")));
    }
    decided(app, || app.store.skill_request(actor.change.clone(), body.clone())).await
}

/// One invocation.
pub async fn get(app: &App, caller: &Caller, id: SkillInvocationId) -> Result<SkillInvocationView, ApiError> {
    let (invocation, workspace) = app.store.skill_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::TasksRead, &place(workspace)).await?;
    Ok(invocation)
}

/// Invocations, newest first: for tasks of a workspace and all below it, or of the whole tenant.
pub async fn list(
    app: &App,
    caller: &Caller,
    query: SkillQuery,
    key: PageKey,
    limit: i64,
) -> Result<Page<SkillInvocationView>, ApiError> {
    if let Some(workspace) = query.workspace_id {
        app.store.workspace_get(caller.tenant_id, workspace).await?;
    }
    if let Some(task) = query.task_id {
        app.store.task_get(caller.tenant_id, task).await?;
    }
    require(app, caller, Permission::TasksRead, &place(query.workspace_id)).await?;
    Ok(app.store.skill_list(caller.tenant_id, query, key, limit).await?)
}

/// Takes an invocation on.
pub async fn advance(
    app: &App,
    actor: Actor,
    id: SkillInvocationId,
    step: SkillStep,
) -> Result<Changed<SkillInvocationView>, ApiError> {
    match &step {
        SkillStep::Retry(why) => word("/errorCode", &why.error_code)?,
        SkillStep::Fail(why) => word("/errorCode", &why.error_code)?,
        SkillStep::Claim | SkillStep::Succeed | SkillStep::Cancel => {}
    }
    decided(app, || app.store.skill_advance(actor.change.clone(), id, step.clone())).await
}
