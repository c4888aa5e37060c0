//! The runs of deployments, as runners report them. Of a command only its length ever gets here.

use courant_api::deployments::{
    DeploymentRunComplete, DeploymentRunStatus, DeploymentRunView, PlanSummary, RunKind, RunOutcome,
};
use courant_api::events::deployments::{RUN_COMMAND_EXECUTED, RunCommandExecuted};
use courant_api::{DeploymentId, DeploymentRunId, Permission, TenantId};
use courant_core::deployment::{Told, Wish};
use courant_core::lifecycle::Illegal;
use courant_core::place::Lies;

use super::life::{advance, lock_for};
use super::{Deployment, from_json};
use crate::access::{before, parsed};
use crate::change::{Change, Changed, fresh_id, to_json};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Page, PageKey, Store};

macro_rules! columns {
    () => {
        "id, deployment_id, kind, status, plan_run_id, command_bytes, plan_summary, error, started_at, heartbeat_at, finished_at
        FROM deployment_run"
    };
}

statements! { "deployment_runs":
    GET = concat!("SELECT ", columns!(), " WHERE tenant_id = $1 AND id = $2");
    RUNNING = concat!("SELECT ", columns!(), " WHERE tenant_id = $1 AND deployment_id = $2 AND status = 'running'");
    LIST = concat!("SELECT ", columns!(), " WHERE tenant_id = $1 AND deployment_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4");
    SAVE = "INSERT INTO deployment_run (tenant_id, id, deployment_id, kind, status, plan_run_id, command_bytes, plan_summary,
            error, started_at, heartbeat_at, finished_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT (id) DO UPDATE SET status = excluded.status, plan_summary = excluded.plan_summary,
            error = excluded.error, heartbeat_at = excluded.heartbeat_at, finished_at = excluded.finished_at";
    CANCEL = "UPDATE deployment_run SET status = 'cancelled', finished_at = $3
        WHERE tenant_id = $1 AND deployment_id = $2 AND status = 'running'";
}

/// A run to be started.
#[derive(Clone, Copy, Debug)]
pub struct RunNew {
    /// What it does.
    pub kind: RunKind,
    /// Of an apply: the plan that it executes, when that is said.
    pub plan_run_id: Option<DeploymentRunId>,
    /// Of a command: how many bytes it has.
    pub command_bytes: Option<i64>,
}

pub(super) fn view(row: &Row) -> Result<DeploymentRunView, Error> {
    let summary: Option<String> = row.get(6)?;
    let plan_summary: Option<PlanSummary> =
        summary.map(|text| from_json(&text, "deployment_run.plan_summary")).transpose()?;
    Ok(DeploymentRunView {
        id: row.get(0)?,
        deployment_id: row.get(1)?,
        kind: parsed(row.get(2)?, "deployment_run.kind")?,
        status: parsed(row.get(3)?, "deployment_run.status")?,
        plan_run_id: row.get(4)?,
        command_bytes: row.get(5)?,
        plan_summary,
        error: row.get(7)?,
        started_at: row.get(8)?,
        heartbeat_at: row.get(9)?,
        finished_at: row.get(10)?,
    })
}

pub(super) async fn get(tx: &mut Tx, tenant: TenantId, id: DeploymentRunId) -> Result<DeploymentRunView, Error> {
    view(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(Error::NotFound("run"))?)
}

/// The run of a deployment that is under way.
pub(super) async fn running(
    tx: &mut Tx,
    tenant: TenantId,
    deployment: DeploymentId,
) -> Result<Option<DeploymentRunView>, Error> {
    tx.query_opt(&RUNNING, params![tenant, deployment]).await?.as_ref().map(view).transpose()
}

pub(super) async fn is_running(tx: &mut Tx, tenant: TenantId, deployment: DeploymentId) -> Result<bool, Error> {
    Ok(running(tx, tenant, deployment).await?.is_some())
}

/// Ends the run of a deployment that has ended itself.
pub(super) async fn cancel_all(tx: &mut Tx, change: &Change, deployment: DeploymentId) -> Result<(), Error> {
    tx.execute(&CANCEL, params![change.tenant_id, deployment, change.now]).await.map(|_| ())
}

pub(super) async fn save(tx: &mut Tx, change: &Change, run: &DeploymentRunView) -> Result<(), Error> {
    let row = params![
        change.tenant_id,
        run.id,
        run.deployment_id,
        run.kind.as_str(),
        run.status.as_str(),
        run.plan_run_id,
        run.command_bytes,
        run.plan_summary.as_ref().map(to_json).transpose()?,
        run.error.as_deref(),
        run.started_at,
        run.heartbeat_at,
        run.finished_at
    ];
    tx.execute(&SAVE, row).await.map(|_| ())
}

/// The plan that an apply executes: the one that it names, or else the latest that had succeeded at the confirmation.
async fn plan_of_apply(
    tx: &mut Tx,
    change: &Change,
    deployment: &mut Deployment,
    named: DeploymentRunId,
) -> Result<(), Error> {
    let plan = get(tx, change.tenant_id, named).await?;
    if plan.deployment_id != deployment.id
        || plan.kind != RunKind::Plan
        || plan.status != DeploymentRunStatus::Succeeded
    {
        return Err(Error::Conflict("planRunId names no plan of the deployment that has succeeded".into()));
    }
    deployment.plan_run_id = Some(plan.id);
    deployment.plan_summary = plan.plan_summary;
    Ok(())
}

async fn start(tx: &mut Tx, change: &Change, id: DeploymentId, new: RunNew) -> Result<DeploymentRunView, Error> {
    let (mut deployment, stack) = lock_for(tx, change, id, Permission::DeploymentsRun).await?;
    let wish = Wish::Start(new.kind);
    deployment.state.after(&wish)?;
    if is_running(tx, change.tenant_id, id).await? {
        return Err(Error::Conflict("a run of the deployment has not ended".into()));
    }
    if let Some(plan) = new.plan_run_id {
        plan_of_apply(tx, change, &mut deployment, plan).await?;
    }
    let run = DeploymentRunView {
        id: fresh_id().into(),
        deployment_id: id,
        kind: new.kind,
        status: DeploymentRunStatus::Running,
        plan_run_id: deployment.plan_run_id.filter(|_| new.kind == RunKind::Apply),
        command_bytes: new.command_bytes,
        plan_summary: None,
        error: None,
        started_at: change.now,
        heartbeat_at: change.now,
        finished_at: None,
    };
    save(tx, change, &run).await?;
    let what = advance(tx, change, &mut deployment, &stack, &wish).await?;
    if let (Some(Told::CommandExecuted), Some(command_bytes)) = (what, run.command_bytes) {
        let payload = RunCommandExecuted { deployment: deployment.detail(&stack), command_bytes };
        let lies = Lies::with(stack.view.workspace_id);
        tx.append(change.event(&RUN_COMMAND_EXECUTED, deployment.id, lies, &payload)?);
    }
    Ok(run)
}

/// That a run is under way, for what is wished of it.
fn check_running(run: &DeploymentRunView, wish: &'static str) -> Result<(), Error> {
    if run.status == DeploymentRunStatus::Running {
        return Ok(());
    }
    Err(Illegal { entity: "run", state: run.status.as_str(), wish }.into())
}

async fn heartbeat(tx: &mut Tx, change: &Change, id: DeploymentRunId) -> Result<DeploymentRunView, Error> {
    let deployment = get(tx, change.tenant_id, id).await?.deployment_id;
    lock_for(tx, change, deployment, Permission::DeploymentsRun).await?;
    let mut run = get(tx, change.tenant_id, id).await?;
    check_running(&run, "heartbeat")?;
    run.heartbeat_at = run.heartbeat_at.max(change.now);
    save(tx, change, &run).await?;
    Ok(run)
}

async fn complete(
    tx: &mut Tx,
    change: &Change,
    id: DeploymentRunId,
    end: &DeploymentRunComplete,
) -> Result<DeploymentRunView, Error> {
    let known = get(tx, change.tenant_id, id).await?.deployment_id;
    let (mut deployment, stack) = lock_for(tx, change, known, Permission::DeploymentsRun).await?;
    let mut run = get(tx, change.tenant_id, id).await?;
    check_running(&run, "complete")?;
    if end.plan_summary.is_some() && run.kind != RunKind::Plan {
        let message = "is reported by plan runs alone".into();
        return Err(Error::Invalid { field: "/planSummary".into(), message });
    }
    run.finished_at = Some(change.now);
    run.plan_summary.clone_from(&end.plan_summary);
    run.error.clone_from(&end.error);
    let wish = match (end.status, run.kind) {
        (RunOutcome::Succeeded, RunKind::Plan) => {
            deployment.plan_run_id = Some(run.id);
            deployment.plan_summary.clone_from(&run.plan_summary);
            Wish::Planned(run.plan_summary.as_ref().and_then(|plan| plan.has_changes))
        }
        (RunOutcome::Succeeded, RunKind::Apply | RunKind::Command) => Wish::Applied,
        (RunOutcome::Failed, _) => {
            deployment.error.clone_from(&end.error);
            Wish::RunFailed
        }
    };
    run.status = match end.status {
        RunOutcome::Succeeded => DeploymentRunStatus::Succeeded,
        RunOutcome::Failed => DeploymentRunStatus::Failed,
    };
    save(tx, change, &run).await?;
    advance(tx, change, &mut deployment, &stack, &wish).await?;
    Ok(run)
}

impl Store {
    /// Begins a run of a deployment; needs `deployments.run` where its stack lies.
    pub async fn deployment_run_start(
        &self,
        change: Change,
        id: DeploymentId,
        new: RunNew,
    ) -> Result<Changed<DeploymentRunView>, Error> {
        self.db.change(change, (id, new), |tx, (change, (id, new))| Box::pin(start(tx, change, *id, *new))).await
    }

    /// Hears of a run's runner; needs `deployments.run` where its stack lies.
    pub async fn deployment_run_heartbeat(
        &self,
        change: Change,
        id: DeploymentRunId,
    ) -> Result<Changed<DeploymentRunView>, Error> {
        self.db.change(change, id, |tx, (change, id)| Box::pin(heartbeat(tx, change, *id))).await
    }

    /// Ends a run; needs `deployments.run` where its stack lies.
    pub async fn deployment_run_complete(
        &self,
        change: Change,
        id: DeploymentRunId,
        end: DeploymentRunComplete,
    ) -> Result<Changed<DeploymentRunView>, Error> {
        self.db.change(change, (id, end), |tx, (change, (id, end))| Box::pin(complete(tx, change, *id, end))).await
    }

    /// The runs of a deployment, newest first.
    pub async fn deployment_run_list(
        &self,
        tenant: TenantId,
        id: DeploymentId,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<DeploymentRunView>, Error> {
        self.db
            .read((tenant, id, key, limit), |tx, (tenant, id, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, *id, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }
}
