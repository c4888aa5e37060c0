//! The report of findings. Findings are a standing backlog, so they are reported by a schedule and not when they change.
//!
//! An org that was looked at wholly and has none is neither sent a report nor stamped, so it is told at the next tick after
//! something appears. What was not looked at is unknown, never zero, and is told.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use courant_api::announced::AnnouncedFindings;
use courant_api::deployments::FindingsView;
use courant_api::{TenantId, Timestamp};
use courant_core::announce::{Told, report};
use courant_cronspec::Schedule;
use courant_store::{Digest, DigestWanted};

use super::Workers;
use crate::app::App;
use crate::http::ApiError;
use crate::ids::new_id;
use crate::{clock, ops};

/// How late a report may be.
const INTERVAL: Duration = Duration::from_mins(15);
const AT_ONCE: i64 = 500;
const SECOND_US: i64 = 1_000_000;

pub(super) fn start(workers: &mut Workers) {
    workers.every("digest", INTERVAL, |app| async move { run(&app).await });
}

/// Sends every report that is due.
async fn run(app: &Arc<App>) -> Result<(), ApiError> {
    let mut found: HashMap<TenantId, FindingsView> = HashMap::new();
    let (mut after, mut sent) = (None, 0_u64);
    loop {
        let page = app.store.digests_wanted(after, AT_ONCE).await?;
        after = page.last().map(|wanted| wanted.integration_id);
        for wanted in page {
            let now = clock::now();
            let Some(occurrence) = due(&wanted, now) else { continue };
            let view = match found.entry(wanted.tenant_id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(entry) => entry.insert(ops::deployments::findings_of(app, wanted.tenant_id).await?),
            };
            if is_clean(view) {
                continue;
            }
            let digest = digest(app, wanted, view, occurrence, now);
            sent += u64::from(app.store.digest_send(digest, now).await?);
        }
        if after.is_none() || app.stop.is_cancelled() {
            break;
        }
    }
    if sent > 0 {
        app.wake_outbox();
    }
    Ok(())
}

/// The occurrence of its schedule that has come round since it was last reported to.
fn due(wanted: &DigestWanted, now: Timestamp) -> Option<Timestamp> {
    let Ok(schedule) = wanted.schedule.parse::<Schedule>() else {
        tracing::error!(integration.id = %wanted.integration_id, "the schedule of its report cannot be read; save it again");
        return None;
    };
    let occurrence = Timestamp::from_micros(schedule.previous_fire(now.unix_seconds()) * SECOND_US);
    (occurrence > wanted.since).then_some(occurrence)
}

/// Whether everything was looked at and nothing found.
fn is_clean(view: &FindingsView) -> bool {
    (view.counts.cycles, view.counts.orphans, view.counts.duplicates) == (Some(0), Some(0), 0)
}

fn digest(app: &App, wanted: DigestWanted, view: &FindingsView, occurrence: Timestamp, now: Timestamp) -> Digest {
    let checks = [("cycles", view.cycles_complete), ("orphans", view.orphans_complete)];
    let unchecked = checks.iter().filter(|(_, complete)| !complete).map(|(check, _)| (*check).to_owned()).collect();
    let findings = AnnouncedFindings { counts: view.counts, previous: wanted.previous, unchecked };
    let told = Told { id: new_id().into(), org_id: wanted.tenant_id, at: now, base_url: app.base_url.as_deref() };
    Digest { occurrence, counts: view.counts, notification: report(told, findings), to: wanted }
}
