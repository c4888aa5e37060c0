//! The life of deployments: created, let go on, stopped, left out, promoted, ended.

use courant_api::deployments::{
    DeploymentCreate, DeploymentMode, DeploymentStatus, DeploymentView, Origin, PrPlanMode,
};
use courant_api::events::EventType;
use courant_api::events::deployments::{
    DEPENDENT_TRIGGER_FAILED, DEPLOYMENT_AUTO_SKIPPED, DEPLOYMENT_AWAITING, DEPLOYMENT_CANCELLED, DEPLOYMENT_CONFIRMED,
    DEPLOYMENT_CREATED, DEPLOYMENT_FAILED, DEPLOYMENT_SKIPPED, DEPLOYMENT_SUCCEEDED, DependentTriggerFailed,
    DeploymentConfirmed, DeploymentDetail, PREVIEW_AUTO_SKIPPED, PREVIEW_AWAITING, PREVIEW_CANCELLED,
    PREVIEW_CONFIRMED, PREVIEW_FAILED, PREVIEW_SKIPPED, PREVIEW_SUCCEEDED, PULL_REQUEST_PROMOTED,
};
use courant_api::{DeploymentId, Permission, StackId, TenantId, WorkspaceId};
use courant_core::deployment::{self, STACK_DELETED, SUPERSEDED, State, Told, Wish};
use courant_core::links;
use courant_core::place::Lies;
use uuid::Uuid;

use super::{Deployment, Stack, columns, runs};
use crate::access::{before, guard, place};
use crate::change::{Change, Changed, fresh_id, told};
use crate::db::{Tx, params, statements};
use crate::journal::texts::subtree;
use crate::{Error, Page, PageKey, Store};

statements! { "deployment_life":
    LIST = concat!(
        "WITH RECURSIVE ", subtree!("$5"), " SELECT ", columns!(), " JOIN stack s ON s.tenant_id = d.tenant_id AND s.id = d.stack_id
        WHERE d.tenant_id = $1 AND d.id < $2
            AND (NOT $4 OR s.workspace_id IN (SELECT w.id FROM subtree w))
            AND (NOT $6 OR d.status IN {texts $7})
            AND (NOT $8 OR d.stack_id = $9)
        ORDER BY d.id DESC LIMIT $3");
    ACTIVE = concat!(
        "SELECT ", columns!(), " WHERE d.tenant_id = $1 AND d.stack_id = $2
            AND d.status IN ('pending', 'running', 'awaiting_confirmation')
        ORDER BY d.id {for update of d}");
    // Previews of a pull request that a newer one retires.
    OLDER = concat!(
        "SELECT ", columns!(), " WHERE d.tenant_id = $1 AND d.stack_id = $2 AND d.mode = 'plan_unlocked'
            AND d.pull_request = $3 AND d.status IN ('pending', 'running', 'awaiting_confirmation')
        ORDER BY d.id {for update of d}");
}

/// Which deployments a list has.
#[derive(Clone, Debug, Default)]
pub struct DeploymentQuery {
    /// Only those of stacks of this workspace and all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Only those in one of these states; empty: in any.
    pub statuses: Vec<DeploymentStatus>,
    /// Only those of this stack.
    pub stack_id: Option<StackId>,
}

/// What somebody makes of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeploymentStep {
    /// It goes on.
    Confirm,
    /// It is stopped.
    Cancel,
    /// It is left out.
    Skip,
}

/// The types of events that tell of nothing but the deployment.
static DETAILED: &[&EventType<DeploymentDetail>] = &[
    &DEPLOYMENT_AWAITING,
    &DEPLOYMENT_SUCCEEDED,
    &DEPLOYMENT_FAILED,
    &DEPLOYMENT_CANCELLED,
    &DEPLOYMENT_AUTO_SKIPPED,
    &DEPLOYMENT_SKIPPED,
    &PREVIEW_AWAITING,
    &PREVIEW_SUCCEEDED,
    &PREVIEW_FAILED,
    &PREVIEW_CANCELLED,
    &PREVIEW_AUTO_SKIPPED,
    &PREVIEW_SKIPPED,
    &PULL_REQUEST_PROMOTED,
];

/// Tells of a deployment as it is now.
pub(super) fn tell(
    tx: &mut Tx,
    change: &Change,
    deployment: &Deployment,
    stack: &Stack,
    what: Told,
) -> Result<(), Error> {
    let lies = Lies::with(stack.view.workspace_id);
    let mode = deployment.state.mode;
    let event = if let (Told::Confirmed, Some(confirmed_by)) = (what, deployment.confirmed_by) {
        let kind = if mode == DeploymentMode::PlanUnlocked { &PREVIEW_CONFIRMED } else { &DEPLOYMENT_CONFIRMED };
        let payload = DeploymentConfirmed { deployment: deployment.detail(stack), confirmed_by };
        change.event(kind, deployment.id, lies, &payload)
    } else {
        let name = deployment::event_type(mode, what);
        let kind = DETAILED.iter().find(|kind| kind.name == name);
        let kind = kind.ok_or_else(|| Error::Corrupt(format!("{name} tells more than the deployment")))?;
        change.event(kind, deployment.id, lies, &deployment.detail(stack))
    };
    tx.append(event?);
    Ok(())
}

/// Takes a deployment on by a wish and tells what that tells. Its end is marked as told, ends its runs and, after an apply,
/// starts what depends on it.
pub(super) async fn advance(
    tx: &mut Tx,
    change: &Change,
    deployment: &mut Deployment,
    stack: &Stack,
    wish: &Wish,
) -> Result<Option<Told>, Error> {
    let (state, what) = deployment.state.after(wish)?;
    let ends = state.status.is_terminal() && !deployment.state.status.is_terminal();
    deployment.state = state;
    deployment.version += 1;
    if state.status == DeploymentStatus::Pending {
        deployment.pending_since = change.now;
    }
    if ends {
        deployment.finished_at = Some(change.now);
        deployment.end_told_at = Some(change.now);
        runs::cancel_all(tx, change, deployment.id).await?;
    }
    deployment.save(tx, change).await?;
    // What a submitted command tells is more than the deployment: its run tells it.
    if let Some(what) = what.filter(|what| *what != Told::CommandExecuted) {
        tell(tx, change, deployment, stack, what)?;
    }
    if *wish == Wish::Applied && deployment.state.mode == DeploymentMode::Plan {
        start_dependents(tx, change, deployment, stack).await?;
    }
    Ok(what)
}

/// Starts a deployment of each stack that an apply of this one starts, or tells why not.
async fn start_dependents(tx: &mut Tx, change: &Change, parent: &Deployment, stack: &Stack) -> Result<(), Error> {
    for dependent in Stack::dependents(tx, change.tenant_id, parent.stack_id).await? {
        let id = dependent.view.id;
        let has_active = Stack::has_active(tx, change.tenant_id, id).await?;
        match deployment::triggers(&parent.chain, &id, has_active) {
            Ok(()) => {
                let origin = Origin::Dependency { stack_id: parent.stack_id, deployment_id: parent.id };
                let (state, _) = State::new(DeploymentMode::Plan, false, false);
                let chain = parent.chain.iter().copied().chain([id]).collect();
                let child = Deployment { chain, ..fresh(change, id, state, origin) };
                child.save(tx, change).await?;
                let lies = Lies::with(dependent.view.workspace_id);
                tx.append(change.event(&DEPLOYMENT_CREATED, child.id, lies, &child.detail(&dependent))?);
            }
            Err(reason) => {
                let payload = DependentTriggerFailed {
                    deployment: parent.detail(stack),
                    dependent_stack_id: id,
                    dependent_stack_name: told(&dependent.view.name),
                    reason: reason.to_string(),
                };
                let lies = Lies::with(stack.view.workspace_id);
                tx.append(change.event(&DEPENDENT_TRIGGER_FAILED, parent.id, lies, &payload)?);
            }
        }
    }
    Ok(())
}

/// A deployment that has just begun; its page is ours, if people can find that.
fn fresh(change: &Change, stack_id: StackId, state: State, origin: Origin) -> Deployment {
    let id: DeploymentId = fresh_id().into();
    let page = |base: &std::sync::Arc<str>| links::of(base, change.tenant_id, "deployments", id);
    Deployment {
        id,
        stack_id,
        state,
        commit_sha: None,
        commit_message: None,
        origin,
        url: change.base_url.as_ref().map(page),
        skipped_reason: None,
        error: None,
        plan_run_id: None,
        confirmed_by: None,
        chain: vec![stack_id],
        pending_since: change.now,
        version: 1,
        created_at: change.now,
        finished_at: None,
        end_told_at: None,
        plan_summary: None,
    }
}

async fn create(tx: &mut Tx, change: &Change, body: &DeploymentCreate) -> Result<Deployment, Error> {
    let stack = Stack::lock(tx, change.tenant_id, body.stack_id).await?;
    guard(tx, change, Permission::DeploymentsRun, &place(stack.view.workspace_id)).await?;
    let origin: Origin = body.origin.clone().map_or(Origin::Manual {}, Into::into);
    let pull_request = origin.pull_request();
    let gated = pull_request.is_some() && stack.view.pr_plan_mode == PrPlanMode::Manual;
    let (state, what) = State::new(body.mode, body.read_only.unwrap_or(false), gated);
    let mut deployment = fresh(change, stack.view.id, state, origin);
    deployment.commit_sha.clone_from(&body.commit_sha);
    deployment.commit_message.clone_from(&body.commit_message);
    if body.url.is_some() {
        deployment.url.clone_from(&body.url);
    }
    deployment.save(tx, change).await?;
    let lies = Lies::with(stack.view.workspace_id);
    tx.append(change.event(&DEPLOYMENT_CREATED, deployment.id, lies, &deployment.detail(&stack))?);
    if let (DeploymentMode::PlanUnlocked, Some(number)) = (body.mode, pull_request) {
        retire(tx, change, &stack, number, deployment.id).await?;
    }
    if let Some(what) = what {
        tell(tx, change, &deployment, &stack, what)?;
    }
    Ok(deployment)
}

/// Leaves out the older previews of a pull request.
async fn retire(
    tx: &mut Tx,
    change: &Change,
    stack: &Stack,
    pull_request: i64,
    but: DeploymentId,
) -> Result<(), Error> {
    let older = tx.query(&OLDER, params![change.tenant_id, stack.view.id, pull_request]).await?;
    for row in &older {
        let mut older = Deployment::read(row)?;
        if older.id != but {
            older.skipped_reason = Some(SUPERSEDED.into());
            advance(tx, change, &mut older, stack, &Wish::LeaveOut).await?;
        }
    }
    Ok(())
}

/// Leaves out the deployments of a stack that is deleted; one whose run is under way holds it back.
pub(super) async fn leave_out_all(tx: &mut Tx, change: &Change, stack: &Stack) -> Result<(), Error> {
    let active = tx.query(&ACTIVE, params![change.tenant_id, stack.view.id]).await?;
    for row in &active {
        let mut deployment = Deployment::read(row)?;
        if runs::is_running(tx, change.tenant_id, deployment.id).await? {
            return Err(Error::Conflict(format!("a run of deployment {} has not ended", deployment.id)));
        }
        deployment.skipped_reason = Some(STACK_DELETED.into());
        advance(tx, change, &mut deployment, stack, &Wish::LeaveOut).await?;
    }
    Ok(())
}

/// The deployment, locked, and its stack, if the actor has the permission where it lies.
pub(super) async fn lock_for(
    tx: &mut Tx,
    change: &Change,
    id: DeploymentId,
    permission: Permission,
) -> Result<(Deployment, Stack), Error> {
    let deployment = Deployment::lock(tx, change.tenant_id, id).await?;
    let stack = Stack::get(tx, change.tenant_id, deployment.stack_id).await?;
    guard(tx, change, permission, &place(stack.view.workspace_id)).await?;
    Ok((deployment, stack))
}

async fn step(tx: &mut Tx, change: &Change, id: DeploymentId, step: DeploymentStep) -> Result<Deployment, Error> {
    let (mut deployment, stack) = lock_for(tx, change, id, Permission::DeploymentsConfirm).await?;
    let wish = match step {
        DeploymentStep::Confirm => Wish::Confirm,
        DeploymentStep::Cancel => Wish::Cancel,
        DeploymentStep::Skip => Wish::Skip,
    };
    deployment.state.after(&wish)?;
    if step == DeploymentStep::Confirm {
        if runs::is_running(tx, change.tenant_id, id).await? {
            return Err(Error::Conflict("a plan of the deployment has not ended".into()));
        }
        deployment.confirmed_by = change.actor_id;
    }
    advance(tx, change, &mut deployment, &stack, &wish).await?;
    Ok(deployment)
}

async fn promote(tx: &mut Tx, change: &Change, id: DeploymentId) -> Result<Deployment, Error> {
    // The stack first, as whoever makes a deployment of it does.
    let stack_id = Deployment::get(tx, change.tenant_id, id).await?.stack_id;
    Stack::lock(tx, change.tenant_id, stack_id).await?;
    let (mut preview, stack) = lock_for(tx, change, id, Permission::DeploymentsConfirm).await?;
    if preview.origin.pull_request().is_none() && preview.state.mode == DeploymentMode::PlanUnlocked {
        return Err(Error::Conflict("only the preview of a pull request can be promoted".into()));
    }
    advance(tx, change, &mut preview, &stack, &Wish::Promote).await?;
    let (state, _) = State::new(DeploymentMode::Plan, false, false);
    let mut promoted = fresh(change, preview.stack_id, state, preview.origin.clone());
    promoted.commit_sha.clone_from(&preview.commit_sha);
    promoted.commit_message.clone_from(&preview.commit_message);
    promoted.save(tx, change).await?;
    let lies = Lies::with(stack.view.workspace_id);
    tx.append(change.event(&DEPLOYMENT_CREATED, promoted.id, lies, &promoted.detail(&stack))?);
    Ok(promoted)
}

impl Store {
    /// Creates a deployment; needs `deployments.run` where its stack lies. A preview of a pull request retires the older ones.
    pub async fn deployment_create(
        &self,
        change: Change,
        new: DeploymentCreate,
    ) -> Result<Changed<DeploymentView>, Error> {
        self.db
            .change(change, new, |tx, (change, new)| Box::pin(async move { Ok(create(tx, change, new).await?.view()) }))
            .await
    }

    /// One deployment, and where its stack lies, for the right to read it.
    pub async fn deployment_get(
        &self,
        tenant: TenantId,
        id: DeploymentId,
    ) -> Result<(DeploymentView, Option<WorkspaceId>), Error> {
        self.db
            .read((tenant, id), |tx, (tenant, id)| {
                Box::pin(async move {
                    let deployment = Deployment::get(tx, *tenant, *id).await?;
                    let stack = Stack::get(tx, *tenant, deployment.stack_id).await?;
                    Ok((deployment.view(), stack.view.workspace_id))
                })
            })
            .await
    }

    /// Deployments, newest first.
    pub async fn deployment_list(
        &self,
        tenant: TenantId,
        query: DeploymentQuery,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<DeploymentView>, Error> {
        self.db
            .read((tenant, query, key, limit), |tx, (tenant, query, key, limit)| {
                Box::pin(async move {
                    let statuses: Vec<String> = query.statuses.iter().map(ToString::to_string).collect();
                    let row = params![
                        *tenant,
                        before(*key),
                        *limit + 1,
                        query.workspace_id.is_some(),
                        query.workspace_id.map_or(Uuid::nil(), WorkspaceId::uuid),
                        !statuses.is_empty(),
                        statuses,
                        query.stack_id.is_some(),
                        query.stack_id.map_or(Uuid::nil(), StackId::uuid)
                    ];
                    let view = |row: &_| Ok(Deployment::read(row)?.view());
                    Page::cut(&tx.query(&LIST, row).await?, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }

    /// Lets a deployment go on, stops it or leaves it out; needs `deployments.confirm` where its stack lies.
    pub async fn deployment_step(
        &self,
        change: Change,
        id: DeploymentId,
        step: DeploymentStep,
    ) -> Result<Changed<DeploymentView>, Error> {
        self.db
            .change(change, (id, step), |tx, (change, (id, step))| {
                Box::pin(async move { Ok(self::step(tx, change, *id, *step).await?.view()) })
            })
            .await
    }

    /// Makes a deployment of what the preview of a pull request has shown; needs `deployments.confirm` where its stack lies.
    pub async fn deployment_promote(&self, change: Change, id: DeploymentId) -> Result<Changed<DeploymentView>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| Box::pin(async move { Ok(promote(tx, change, *id).await?.view()) }))
            .await
    }
}
