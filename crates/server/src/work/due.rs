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

/// Ends all that is due; a fault of one does not keep the others from it.
async fn run(app: &Arc<App>) -> Result<(), Error> {
    let mut first_fault = Ok(());
    while first_fault.is_ok() && !app.stop.is_cancelled() {
        let due = app.store.claims_due(clock::now(), AT_ONCE).await?;
        for (tenant, task) in &due {
            let ended = app.store.claim_expire(Change::by_server(*tenant, clock::now()), *task).await;
            note(&mut first_fault, "a claim", task, ended);
        }
        let approvals = app.store.approvals_due(clock::now(), AT_ONCE).await?;
        for (tenant, approval) in &approvals {
            let ended = app.store.approval_expire(Change::by_server(*tenant, clock::now()), *approval).await;
            note(&mut first_fault, "an approval", approval, ended);
        }
        let deployments = app.store.deployments_due(clock::now(), AT_ONCE).await?;
        for (tenant, deployment) in &deployments {
            let ended = app.store.deployment_expire(Change::by_server(*tenant, clock::now()), *deployment).await;
            note(&mut first_fault, "a deployment", deployment, ended);
        }
        if due.is_empty() && approvals.is_empty() && deployments.is_empty() {
            break;
        }
    }
    app.store.decision_tokens_forget(clock::now()).await?;
    first_fault
}

/// Tells the ends of deployments that were written without being told.
async fn tell_ends(app: &Arc<App>) -> Result<(), Error> {
    let mut first_fault = Ok(());
    while first_fault.is_ok() && !app.stop.is_cancelled() {
        let untold = app.store.deployments_untold(AT_ONCE).await?;
        for (tenant, deployment) in &untold {
            let told = app.store.deployment_tell_end(Change::by_server(*tenant, clock::now()), *deployment).await;
            note(&mut first_fault, "a deployment", deployment, told);
        }
        if untold.is_empty() {
            break;
        }
    }
    first_fault
}

/// Keeps the first fault, and says in the log what could not be ended.
fn note<T>(first: &mut Result<(), Error>, what: &str, id: &impl std::fmt::Display, outcome: Result<T, Error>) {
    if let Err(error) = outcome {
        tracing::warn!(%id, %error, "{what} could not be ended; it is repeated");
        if first.is_ok() {
            *first = Err(error);
        }
    }
}
