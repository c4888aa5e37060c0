//! What time ends by itself: the leases of claims, approvals that nobody decided, and deployments whose runner is silent or
//! never came. Of several servers that do this at once, a row's lock lets one end each; whoever meets an ended claim or approval
//! before counts it as ended, so that nothing waits for this.

use std::sync::Arc;
use std::time::Duration;

use courant_store::{Change, Error};

use super::Workers;
use crate::app::App;
use crate::clock;

const INTERVAL: Duration = Duration::from_secs(1);
/// How often ends are looked for that nobody has told.
const RECONCILE: Duration = Duration::from_mins(1);
const AT_ONCE: i64 = 100;

pub(super) fn start(workers: &mut Workers) {
    workers.every("due", INTERVAL, |app| async move { run(&app).await });
    workers.every("ends", RECONCILE, |app| async move { tell_ends(&app).await });
}

async fn run(app: &Arc<App>) -> Result<(), Error> {
    while !app.stop.is_cancelled() {
        let due = app.store.claims_due(clock::now(), AT_ONCE).await?;
        for (tenant, task) in &due {
            app.store.claim_expire(Change::by_server(*tenant, clock::now()), *task).await?;
        }
        let approvals = app.store.approvals_due(clock::now(), AT_ONCE).await?;
        for (tenant, approval) in &approvals {
            app.store.approval_expire(Change::by_server(*tenant, clock::now()), *approval).await?;
        }
        let deployments = app.store.deployments_due(clock::now(), AT_ONCE).await?;
        for (tenant, deployment) in &deployments {
            app.store.deployment_expire(Change::by_server(*tenant, clock::now()), *deployment).await?;
        }
        if due.is_empty() && approvals.is_empty() && deployments.is_empty() {
            break;
        }
    }
    app.store.decision_tokens_forget(clock::now()).await
}

/// Tells the ends of deployments that were written without being told.
async fn tell_ends(app: &Arc<App>) -> Result<(), Error> {
    while !app.stop.is_cancelled() {
        let untold = app.store.deployments_untold(AT_ONCE).await?;
        for (tenant, deployment) in &untold {
            app.store.deployment_tell_end(Change::by_server(*tenant, clock::now()), *deployment).await?;
        }
        if untold.is_empty() {
            break;
        }
    }
    Ok(())
}
