//! What must happen now and then: recovery of deliveries in dead hands, pruning, gauges.

use std::sync::Arc;
use std::time::Duration;

use courant_store::Error;

use super::{Limits, STALE, Workers};
use crate::app::App;
use crate::{clock, metrics as recorder};

const RECOVER: Duration = Duration::from_secs(2);
const PRUNE: Duration = Duration::from_mins(10);
/// Most attempts of which it is kept what became of them.
const MOST_ATTEMPTS: i64 = 1_000_000;
const GAUGES: Duration = Duration::from_secs(5);

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn start(workers: &mut Workers, _: &Arc<App>, limits: Limits) {
    workers.every("recover", RECOVER, move |app| async move {
        let recovered = app.store.delivery_recover(clock::now(), micros(STALE), limits.max_attempts).await?;
        if recovered > 0 {
            tracing::warn!(deliveries = recovered, "recovered deliveries whose worker is gone");
            app.wake_outbox();
        }
        Ok::<_, Error>(())
    });
    workers.every("prune", PRUNE, move |app| async move {
        let now = clock::now();
        app.store.delivery_prune(now.plus_micros(-micros(limits.delivery_retention))).await?;
        app.store.attempts_prune(now.plus_micros(-micros(limits.history_retention)), MOST_ATTEMPTS).await?;
        app.store.idempotency_prune(now).await?;
        Ok::<_, Error>(())
    });
    workers.every("gauges", GAUGES, |app| async move {
        let mut counts = app.store.delivery_backlog().await?;
        for status in courant_api::notify::DeliveryStatus::ALL {
            if !counts.iter().any(|(name, _)| name == status.as_str()) {
                counts.push((status.as_str().to_owned(), 0));
            }
        }
        for (status, count) in counts {
            #[expect(clippy::cast_precision_loss, reason = "a gauge")]
            metrics::gauge!("courant_notification_deliveries", "status" => status).set(count as f64);
        }
        let (horizon, announced) = (app.store.journal_horizon().await?, app.store.announcer_position().await?);
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        {
            metrics::gauge!("courant_journal_horizon").set(horizon as f64);
            metrics::gauge!("courant_announcer_lag_positions").set((horizon - announced).max(0) as f64);
        }
        recorder::upkeep();
        Ok::<_, Error>(())
    });
}
