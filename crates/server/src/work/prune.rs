//! Retention on a schedule: ends prunes that were cut off, and prunes every tenant as far as its consumers allow.
//!
//! A consumer that has yet to read is no failure: it is waited for and shown. Of several servers that do this at once,
//! the lock on the tenant's row lets one delete each batch.

use std::sync::Arc;
use std::time::Duration;

use courant_api::TenantId;
use courant_store::{Change, Changed, PruneRequest, WhenBlocked};

use super::Workers;
use crate::app::App;
use crate::clock;
use crate::export::Export;
use crate::ops::retention::{PruneError, finish, micros, prune};

const INTERVAL: Duration = Duration::from_mins(1);
const TENANTS: i64 = 500;
/// Events of one prune, and so of one `event_journal.pruned`.
const AT_ONCE: i64 = 50_000;

pub(super) fn start(workers: &mut Workers) {
    workers.every("retention", INTERVAL, |app| async move {
        tokio::select! {
            // A batch that has begun runs to its end; the next server goes on behind it.
            () = app.stop.cancelled() => Ok(()),
            done = run(&app) => done,
        }
    });
}

/// Prunes all tenants; a fault of one does not keep the others from it.
async fn run(app: &Arc<App>) -> Result<(), PruneError> {
    let mut first_fault = Ok(());
    let mut note = |tenant: TenantId, outcome: Result<(), PruneError>| {
        if let Err(error) = outcome {
            tracing::warn!(%tenant, %error, "retention failed; it is repeated");
            if first_fault.is_ok() {
                first_fault = Err(error);
            }
        }
    };
    for tenant in app.store.prunes_pending().await? {
        let mut export = Export::to_dir(app.journal.export_dir.as_deref());
        let done = finish(&app.store, &Change::by_server(tenant, clock::now()), &mut export).await;
        note(tenant, done.map(|_| ()));
    }
    let Some(retention) = app.journal.retention else { return first_fault };
    let (mut after, mut by_announcer, mut by_lease) = (None, 0_u32, 0_u32);
    loop {
        let tenants = app.store.tenant_ids(after, TENANTS).await?;
        for tenant in &tenants {
            note(*tenant, one(app, *tenant, micros(retention)).await);
            let now = clock::now();
            match app.store.retention_held(*tenant, now, now.plus_micros(-micros(retention))).await {
                Ok(held) => {
                    by_announcer += u32::from(held.by_announcer);
                    by_lease += u32::from(held.by_lease);
                }
                Err(error) => note(*tenant, Err(error.into())),
            }
        }
        after = tenants.last().copied();
        if after.is_none() {
            break;
        }
    }
    for (by, tenants) in [("announcer", by_announcer), ("lease", by_lease)] {
        metrics::gauge!("courant_journal_retention_blocked_tenants", "by" => by).set(f64::from(tenants));
    }
    first_fault
}

async fn one(app: &App, tenant: TenantId, retention_us: i64) -> Result<(), PruneError> {
    loop {
        let change = Change::by_server(tenant, clock::now());
        let request = PruneRequest {
            before: change.now.plus_micros(-retention_us),
            max_events: AT_ONCE,
            dry_run: false,
            blocked: WhenBlocked::StopThere,
        };
        let mut export = Export::to_dir(app.journal.export_dir.as_deref());
        match prune(&app.store, &change, request, &mut export).await? {
            Changed::Now(pruned) if pruned.deleted > 0 => {
                tracing::info!(%tenant, events = pruned.deleted, "retention deleted old events");
                if !pruned.has_more {
                    return Ok(());
                }
            }
            _ => return Ok(()),
        }
    }
}
