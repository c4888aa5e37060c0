//! Stacks, their deployments, and what their runners report.

use std::collections::BTreeMap;

use courant_api::access::MAX_NAME_CHARS;
use courant_api::deployments::{
    Dependency, DeploymentCreate, DeploymentRunComplete, DeploymentRunStart, DeploymentRunView, DeploymentView,
    FindingsView, MAX_COMMAND_BYTES, MAX_COMMIT_CHARS, MAX_COUNT, MAX_DEPENDENCIES, MAX_GAP_REASONS,
    MAX_LABEL_VALUE_CHARS, MAX_LABELS, MAX_MESSAGE_CHARS, MAX_PATH_CHARS, OriginGiven, PlanSummary, RunKind,
    RunOutcome, StackCreate, StackPatch, StackView, is_label_key,
};
use courant_api::resources::MAX_URI_CHARS;
use courant_api::{DeploymentId, DeploymentRunId, Permission, Resource, StackId, TenantId};
use courant_core::findings;
use courant_store::{Caller, Changed, DeploymentQuery, DeploymentStep, Page, PageKey, RunNew, StackQuery};

use super::{Actor, decided, place, require, text};
use crate::app::App;
use crate::http::ApiError;

type Checked = Result<(), ApiError>;

fn optional<T>(value: Option<&T>, check: impl FnOnce(&T) -> Checked) -> Checked {
    value.map_or(Ok(()), check)
}

/// Labels in the field at this pointer.
pub(super) fn labels(field: &str, labels: &BTreeMap<String, String>) -> Checked {
    if labels.len() > MAX_LABELS {
        return Err(ApiError::invalid_field(field, &format!("must have at most {MAX_LABELS} labels")));
    }
    for (key, value) in labels {
        if !is_label_key(key) {
            let problem =
                "a key has 1 to 63 letters, digits, '.', '_', '-' and '/', the first and last a letter or digit";
            return Err(ApiError::invalid_field(field, problem));
        }
        text::line(&format!("{field}/{}", key.replace('/', "~1")), value, MAX_LABEL_VALUE_CHARS)?;
    }
    Ok(())
}

fn needs(needs: &[Dependency]) -> Checked {
    if needs.len() > MAX_DEPENDENCIES {
        let problem = format!("must have at most {MAX_DEPENDENCIES} stacks");
        return Err(ApiError::invalid_field("/dependsOn", &problem));
    }
    let mut seen = std::collections::HashSet::new();
    match needs.iter().position(|need| !seen.insert(need.stack_id)) {
        Some(n) => Err(ApiError::invalid_field(&format!("/dependsOn/{n}/stackId"), "is named twice")),
        None => Ok(()),
    }
}

fn uri(pointer: &str, uri: &str) -> Checked {
    text::name(pointer, uri, MAX_URI_CHARS)?;
    if uri.chars().any(char::is_whitespace) {
        return Err(ApiError::invalid_field(pointer, "must not hold white space"));
    }
    Ok(())
}

/// Creates a stack.
pub async fn stack_create(app: &App, actor: Actor, body: StackCreate) -> Result<Changed<StackView>, ApiError> {
    text::name("/name", &body.name, MAX_NAME_CHARS)?;
    labels("/labels", &body.labels)?;
    optional(body.repository.as_ref(), |value| text::name("/repository", value, MAX_PATH_CHARS))?;
    optional(body.path.as_ref(), |value| text::name("/path", value, MAX_PATH_CHARS))?;
    needs(&body.depends_on)?;
    decided(app, || app.store.stack_create(actor.change.clone(), body.clone())).await
}

/// One stack.
pub async fn stack_get(app: &App, caller: &Caller, id: StackId) -> Result<StackView, ApiError> {
    let stack = app.store.stack_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::StacksRead, &place(stack.workspace_id)).await?;
    Ok(stack)
}

/// Stacks, newest first: of a workspace and all below it, or of the whole tenant.
pub async fn stack_list(
    app: &App,
    caller: &Caller,
    query: StackQuery,
    key: PageKey,
    limit: i64,
) -> Result<Page<StackView>, ApiError> {
    if let Some(workspace) = query.workspace_id {
        app.store.workspace_get(caller.tenant_id, workspace).await?;
    }
    require(app, caller, Permission::StacksRead, &place(query.workspace_id)).await?;
    Ok(app.store.stack_list(caller.tenant_id, query, key, limit).await?)
}

/// Changes or moves a stack.
pub async fn stack_update(
    app: &App,
    actor: Actor,
    id: StackId,
    patch: StackPatch,
) -> Result<Changed<StackView>, ApiError> {
    optional(patch.name.as_ref(), |name| text::name("/name", name, MAX_NAME_CHARS))?;
    optional(patch.labels.as_ref(), |all| labels("/labels", all))?;
    let repository = patch.repository.as_ref().and_then(Option::as_ref);
    optional(repository, |value| text::name("/repository", value, MAX_PATH_CHARS))?;
    let path = patch.path.as_ref().and_then(Option::as_ref);
    optional(path, |value| text::name("/path", value, MAX_PATH_CHARS))?;
    optional(patch.depends_on.as_ref(), |value| needs(value))?;
    decided(app, || app.store.stack_update(actor.change.clone(), id, patch.clone())).await
}

/// Deletes a stack.
pub async fn stack_delete(app: &App, actor: Actor, id: StackId) -> Result<Changed<()>, ApiError> {
    decided(app, || app.store.stack_delete(actor.change.clone(), id)).await
}

/// What is wrong with the org's stacks as they depend on one another.
pub async fn findings(app: &App, caller: &Caller) -> Result<FindingsView, ApiError> {
    require(app, caller, Permission::StacksRead, &Resource::Tenant).await?;
    findings_of(app, caller.tenant_id).await
}

/// The same for the server itself.
pub async fn findings_of(app: &App, tenant: TenantId) -> Result<FindingsView, ApiError> {
    // More dependencies than there are steps cannot be looked at: it is enough to see that there are.
    let most = i64::try_from(findings::BUDGET).unwrap_or(i64::MAX).saturating_add(1);
    let stacks = app.store.stack_graph(tenant, most).await?;
    let found = tokio::task::spawn_blocking(move || findings::find(&stacks, findings::BUDGET)).await;
    found.map_err(|error| ApiError::internal(error.to_string()))
}

fn origin(origin: &OriginGiven) -> Checked {
    let branch_of = |branch: &Option<String>| {
        optional(branch.as_ref(), |value| text::line("/origin/branch", value, MAX_PATH_CHARS))
    };
    match origin {
        OriginGiven::Manual {} => Ok(()),
        OriginGiven::Push { branch } => branch_of(branch),
        OriginGiven::PullRequest { number, title, branch, url } => {
            if !(1..=MAX_COUNT).contains(number) {
                return Err(ApiError::invalid_field("/origin/number", &format!("must lie between 1 and {MAX_COUNT}")));
            }
            optional(title.as_ref(), |value| text::line("/origin/title", value, MAX_NAME_CHARS))?;
            branch_of(branch)?;
            optional(url.as_ref(), |value| uri("/origin/url", value))
        }
    }
}

/// Creates a deployment.
pub async fn deployment_create(
    app: &App,
    actor: Actor,
    body: DeploymentCreate,
) -> Result<Changed<DeploymentView>, ApiError> {
    optional(body.commit_sha.as_ref(), |value| text::name("/commitSha", value, MAX_COMMIT_CHARS))?;
    optional(body.commit_message.as_ref(), |value| text::prose("/commitMessage", value, MAX_MESSAGE_CHARS))?;
    optional(body.origin.as_ref(), origin)?;
    optional(body.url.as_ref(), |value| uri("/url", value))?;
    decided(app, || app.store.deployment_create(actor.change.clone(), body.clone())).await
}

/// One deployment.
pub async fn deployment_get(app: &App, caller: &Caller, id: DeploymentId) -> Result<DeploymentView, ApiError> {
    let (deployment, workspace) = app.store.deployment_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::DeploymentsRead, &place(workspace)).await?;
    Ok(deployment)
}

/// Deployments, newest first: of stacks of a workspace and all below it, or of the whole tenant.
pub async fn deployment_list(
    app: &App,
    caller: &Caller,
    query: DeploymentQuery,
    key: PageKey,
    limit: i64,
) -> Result<Page<DeploymentView>, ApiError> {
    if let Some(workspace) = query.workspace_id {
        app.store.workspace_get(caller.tenant_id, workspace).await?;
    }
    if let Some(stack) = query.stack_id {
        app.store.stack_get(caller.tenant_id, stack).await?;
    }
    require(app, caller, Permission::DeploymentsRead, &place(query.workspace_id)).await?;
    Ok(app.store.deployment_list(caller.tenant_id, query, key, limit).await?)
}

/// Lets a deployment go on, stops it or leaves it out.
pub async fn deployment_step(
    app: &App,
    actor: Actor,
    id: DeploymentId,
    step: DeploymentStep,
) -> Result<Changed<DeploymentView>, ApiError> {
    decided(app, || app.store.deployment_step(actor.change.clone(), id, step)).await
}

/// Makes a deployment of what the preview of a pull request has shown.
pub async fn deployment_promote(
    app: &App,
    actor: Actor,
    id: DeploymentId,
) -> Result<Changed<DeploymentView>, ApiError> {
    decided(app, || app.store.deployment_promote(actor.change.clone(), id)).await
}

/// Begins a run. Of a command nothing goes further than its length.
pub async fn run_start(
    app: &App,
    actor: Actor,
    id: DeploymentId,
    body: DeploymentRunStart,
) -> Result<Changed<DeploymentRunView>, ApiError> {
    if body.plan_run_id.is_some() && body.kind != RunKind::Apply {
        return Err(ApiError::invalid_field("/planRunId", "is for an apply"));
    }
    let command_bytes = match (body.kind, &body.command) {
        (RunKind::Command, Some(command)) if command.0.is_empty() || command.0.len() > MAX_COMMAND_BYTES => {
            let problem = format!("must have 1 to {MAX_COMMAND_BYTES} bytes");
            return Err(ApiError::invalid_field("/command", &problem));
        }
        (RunKind::Command, Some(command)) => Some(i64::try_from(command.0.len()).unwrap_or(i64::MAX)),
        (RunKind::Command, None) => return Err(ApiError::invalid_field("/command", "is missing")),
        (_, Some(_)) => return Err(ApiError::invalid_field("/command", "is for a run of kind command")),
        (_, None) => None,
    };
    let new = RunNew { kind: body.kind, plan_run_id: body.plan_run_id, command_bytes };
    decided(app, || app.store.deployment_run_start(actor.change.clone(), id, new)).await
}

/// Hears of a run's runner.
pub async fn run_heartbeat(
    app: &App,
    actor: Actor,
    id: DeploymentRunId,
) -> Result<Changed<DeploymentRunView>, ApiError> {
    decided(app, || app.store.deployment_run_heartbeat(actor.change.clone(), id)).await
}

fn plan_summary(plan: &PlanSummary) -> Checked {
    for (name, count) in [("add", plan.add), ("change", plan.change), ("destroy", plan.destroy)] {
        if !(0..=MAX_COUNT).contains(&count) {
            let problem = format!("must lie between 0 and {MAX_COUNT}");
            return Err(ApiError::invalid_field(&format!("/planSummary/{name}"), &problem));
        }
    }
    if plan.gap_reasons.len() > MAX_GAP_REASONS {
        let problem = format!("must have at most {MAX_GAP_REASONS} reasons");
        return Err(ApiError::invalid_field("/planSummary/gapReasons", &problem));
    }
    for (n, reason) in plan.gap_reasons.iter().enumerate() {
        text::name(&format!("/planSummary/gapReasons/{n}"), reason, MAX_NAME_CHARS)?;
    }
    Ok(())
}

/// Ends a run.
pub async fn run_complete(
    app: &App,
    actor: Actor,
    id: DeploymentRunId,
    body: DeploymentRunComplete,
) -> Result<Changed<DeploymentRunView>, ApiError> {
    optional(body.plan_summary.as_ref(), plan_summary)?;
    optional(body.error.as_ref(), |error| text::prose("/error", error, MAX_MESSAGE_CHARS))?;
    if body.error.is_some() && body.status == RunOutcome::Succeeded {
        return Err(ApiError::invalid_field("/error", "is for a run that failed"));
    }
    decided(app, || app.store.deployment_run_complete(actor.change.clone(), id, body.clone())).await
}

/// The runs of a deployment, newest first.
pub async fn run_list(
    app: &App,
    caller: &Caller,
    id: DeploymentId,
    key: PageKey,
    limit: i64,
) -> Result<Page<DeploymentRunView>, ApiError> {
    deployment_get(app, caller, id).await?;
    Ok(app.store.deployment_run_list(caller.tenant_id, id, key, limit).await?)
}
