//! What time ends by itself: the leases of claims, and approvals that nobody decided. Of several servers that do this at once, the lock on the task's row lets one
//! end each; whoever meets an ended one before counts it as ended, so that nothing waits for this.

use std::sync::Arc;
use std::time::Duration;

use courant_store::{Change, Error};

use super::Workers;
use crate::app::App;
use crate::clock;

const INTERVAL: Duration = Duration::from_secs(1);
const AT_ONCE: i64 = 100;

pub(super) fn start(workers: &mut Workers) {
    workers.every("due", INTERVAL, |app| async move { run(&app).await });
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
        if due.is_empty() && approvals.is_empty() {
            break;
        }
    }
    app.store.decision_tokens_forget(clock::now()).await
}
