//! Ends that nobody reports: of runs whose runner fell silent, of deployments that never started, and those that were written
//! without being told.

use courant_api::deployments::{DeploymentRunStatus, DeploymentStatus};
use courant_api::{DeploymentId, TenantId, Timestamp};
use courant_core::deployment::{PATIENCE_SECONDS, RUNNER_LOST, START_FAILED, Wish, terminal};

use super::life::{advance, tell};
use super::{Deployment, Stack, runs};
use crate::change::{Change, Changed};
use crate::db::{Tx, params, statements};
use crate::{Error, Store};

statements! { "deployment_ends":
    SILENT = "SELECT tenant_id, deployment_id FROM deployment_run WHERE status = 'running' AND heartbeat_at <= $1
        ORDER BY heartbeat_at LIMIT $2";
    STUCK = "SELECT tenant_id, id FROM deployment WHERE status = 'pending' AND pending_since <= $1
        ORDER BY pending_since LIMIT $2";
    UNTOLD = "SELECT tenant_id, id FROM deployment WHERE end_told_at IS NULL
        AND status IN ('finished', 'failed', 'cancelled', 'skipped') ORDER BY tenant_id, id LIMIT $1";
}

fn patience_ends(now: Timestamp) -> Timestamp {
    now.plus_micros(-PATIENCE_SECONDS * 1_000_000)
}

async fn expire(tx: &mut Tx, change: &Change, id: DeploymentId) -> Result<(), Error> {
    let since = patience_ends(change.now);
    let mut deployment = Deployment::lock(tx, change.tenant_id, id).await?;
    let stack = Stack::get(tx, change.tenant_id, deployment.stack_id).await?;
    let silent = runs::running(tx, change.tenant_id, id).await?.filter(|run| run.heartbeat_at <= since);
    if let Some(mut run) = silent {
        run.status = DeploymentRunStatus::Failed;
        run.error = Some(RUNNER_LOST.into());
        run.finished_at = Some(change.now);
        runs::save(tx, change, &run).await?;
        deployment.error = Some(RUNNER_LOST.into());
        advance(tx, change, &mut deployment, &stack, &Wish::RunFailed).await?;
    } else if deployment.state.status == DeploymentStatus::Pending && deployment.pending_since <= since {
        deployment.error = Some(START_FAILED.into());
        advance(tx, change, &mut deployment, &stack, &Wish::StartFailed).await?;
    }
    Ok(())
}

async fn reconcile(tx: &mut Tx, change: &Change, id: DeploymentId) -> Result<(), Error> {
    let mut deployment = Deployment::lock(tx, change.tenant_id, id).await?;
    let end = terminal(deployment.state.status, deployment.skipped_reason.is_some());
    let Some(what) = end.filter(|_| deployment.end_told_at.is_none()) else { return Ok(()) };
    deployment.end_told_at = Some(change.now);
    deployment.save(tx, change).await?;
    let stack = Stack::get(tx, change.tenant_id, deployment.stack_id).await?;
    tell(tx, change, &deployment, &stack, what)
}

impl Store {
    /// Deployments whose runner has been silent, or whose next run has not started, for too long at `now`.
    pub async fn deployments_due(&self, now: Timestamp, limit: i64) -> Result<Vec<(TenantId, DeploymentId)>, Error> {
        self.db
            .read((now, limit), |tx, (now, limit)| {
                Box::pin(async move {
                    let since = patience_ends(*now);
                    let mut rows = tx.query(&SILENT, params![since, *limit]).await?;
                    rows.extend(tx.query(&STUCK, params![since, *limit]).await?);
                    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
                })
            })
            .await
    }

    /// Fails a deployment if it is one of those by the change's time.
    pub async fn deployment_expire(&self, change: Change, id: DeploymentId) -> Result<Changed<()>, Error> {
        self.db.change(change, id, |tx, (change, id)| Box::pin(expire(tx, change, *id))).await
    }

    /// Deployments that have ended without that being told.
    pub async fn deployments_untold(&self, limit: i64) -> Result<Vec<(TenantId, DeploymentId)>, Error> {
        self.db
            .read(limit, |tx, limit| {
                Box::pin(async move {
                    let rows = tx.query(&UNTOLD, params![*limit]).await?;
                    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
                })
            })
            .await
    }

    /// Tells the end of a deployment if it has ended and nobody has told.
    pub async fn deployment_tell_end(&self, change: Change, id: DeploymentId) -> Result<Changed<()>, Error> {
        self.db.change(change, id, |tx, (change, id)| Box::pin(reconcile(tx, change, *id))).await
    }
}
