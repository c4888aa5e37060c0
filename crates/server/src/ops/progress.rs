//! What is done on a task: runs and verifications.

use std::collections::BTreeSet;

use courant_api::work::{
    Because, CheckResult, MAX_CHECK_CHARS, MAX_CHECKS_OF_VERIFICATION, MAX_REASON_CHARS, MAX_REVISION_CHARS, RunStart,
    RunSucceed, RunSuspend, RunView, VerificationFail, VerificationPass, VerificationStart, VerificationView,
};
use courant_api::{Permission, RunId, TaskId, VerificationId};
use courant_store::{Caller, Changed, Page, PageKey, RunEnd, VerificationEnd};

use super::tasks::task_get;
use super::{Actor, decided, place, require, text};
use crate::app::App;
use crate::http::ApiError;

fn check_reason(reason: Option<&String>) -> Result<(), ApiError> {
    reason.map_or(Ok(()), |reason| text::prose("/reason", reason, MAX_REASON_CHARS))
}

/// Begins a run under a claim.
pub async fn run_start(app: &App, actor: Actor, body: RunStart) -> Result<Changed<RunView>, ApiError> {
    if let Some(revision) = &body.agent_revision_id {
        text::name("/agentRevisionId", revision, MAX_REVISION_CHARS)?;
    }
    decided(app, || app.store.run_start(actor.change.clone(), body.clone())).await
}

/// One run.
pub async fn run_get(app: &App, caller: &Caller, id: RunId) -> Result<RunView, ApiError> {
    let (run, workspace) = app.store.run_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::TasksRead, &place(workspace)).await?;
    Ok(run)
}

/// A task's runs, newest first.
pub async fn run_list(
    app: &App,
    caller: &Caller,
    task: TaskId,
    key: PageKey,
    limit: i64,
) -> Result<Page<RunView>, ApiError> {
    task_get(app, caller, task).await?;
    Ok(app.store.run_list(caller.tenant_id, task, key, limit).await?)
}

async fn run_end(
    app: &App,
    actor: Actor,
    id: RunId,
    end: RunEnd,
    reason: Option<String>,
) -> Result<Changed<RunView>, ApiError> {
    check_reason(reason.as_ref())?;
    decided(app, || app.store.run_end(actor.change.clone(), id, end.clone(), reason.clone())).await
}

/// A run reached its end, and perhaps its task is thereby done.
pub async fn run_succeed(app: &App, actor: Actor, id: RunId, body: RunSucceed) -> Result<Changed<RunView>, ApiError> {
    let end = RunEnd::Succeeded { complete_task: body.complete_task.unwrap_or(false) };
    run_end(app, actor, id, end, body.reason).await
}

/// A run failed.
pub async fn run_fail(app: &App, actor: Actor, id: RunId, body: Because) -> Result<Changed<RunView>, ApiError> {
    run_end(app, actor, id, RunEnd::Failed, body.reason).await
}

/// Stops a run.
pub async fn run_cancel(app: &App, actor: Actor, id: RunId, body: Because) -> Result<Changed<RunView>, ApiError> {
    run_end(app, actor, id, RunEnd::Cancelled, body.reason).await
}

/// A run waits.
pub async fn run_suspend(app: &App, actor: Actor, id: RunId, body: RunSuspend) -> Result<Changed<RunView>, ApiError> {
    run_end(app, actor, id, RunEnd::Suspended(body.waiting_for_approval_id), body.reason).await
}

/// Begins a round of checks on a task.
pub async fn verification_start(
    app: &App,
    actor: Actor,
    task: TaskId,
    body: VerificationStart,
) -> Result<Changed<VerificationView>, ApiError> {
    if body.checks.is_empty() || body.checks.len() > MAX_CHECKS_OF_VERIFICATION {
        let problem = format!("must have 1 to {MAX_CHECKS_OF_VERIFICATION} items");
        return Err(ApiError::invalid_field("/checks", &problem));
    }
    let mut names = BTreeSet::new();
    for (n, check) in body.checks.iter().enumerate() {
        text::name(&format!("/checks/{n}"), check, MAX_CHECK_CHARS)?;
        if !names.insert(check) {
            return Err(ApiError::invalid_field(&format!("/checks/{n}"), "is named twice"));
        }
    }
    if let Some(trigger) = &body.trigger {
        text::name("/trigger", trigger, MAX_CHECK_CHARS)?;
    }
    decided(app, || app.store.verification_start(actor.change.clone(), task, body.clone())).await
}

/// A task's verifications, newest first.
pub async fn verification_list(
    app: &App,
    caller: &Caller,
    task: TaskId,
    key: PageKey,
    limit: i64,
) -> Result<Page<VerificationView>, ApiError> {
    task_get(app, caller, task).await?;
    Ok(app.store.verification_list(caller.tenant_id, task, key, limit).await?)
}

/// Each check has one result at most; which checks there are only the store knows.
fn check_results(results: Option<&Vec<CheckResult>>) -> Result<(), ApiError> {
    let mut names = BTreeSet::new();
    for (n, result) in results.into_iter().flatten().enumerate() {
        if !names.insert(&result.check) {
            return Err(ApiError::invalid_field(&format!("/results/{n}/check"), "has a result already"));
        }
    }
    Ok(())
}

/// All checks passed.
pub async fn verification_pass(
    app: &App,
    actor: Actor,
    id: VerificationId,
    body: VerificationPass,
) -> Result<Changed<VerificationView>, ApiError> {
    check_results(body.results.as_ref())?;
    let end = VerificationEnd::Passed { artifact_id: body.artifact_id };
    decided(app, || app.store.verification_end(actor.change.clone(), id, end.clone(), body.results.clone())).await
}

/// A check failed.
pub async fn verification_fail(
    app: &App,
    actor: Actor,
    id: VerificationId,
    body: VerificationFail,
) -> Result<Changed<VerificationView>, ApiError> {
    check_reason(body.reason.as_ref())?;
    check_results(body.results.as_ref())?;
    let end = VerificationEnd::Failed { check: body.failed_check, reason: body.reason };
    decided(app, || app.store.verification_end(actor.change.clone(), id, end.clone(), body.results.clone())).await
}
