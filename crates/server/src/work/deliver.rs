//! Sends deliveries: claims what is due, dispatches it concurrently, and marks the ends of attempts in batches.
//!
//! A worker starts no send half the stale window after its claim, nor once its heartbeat has been in doubt since: then others
//! may have claimed it. What it leaves unstarted is recovered, not failed.

use std::sync::Arc;
use std::time::Duration;

use courant_store::{Claimed, Mark, Outcome};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::lanes::Lanes;
use super::server_row::Alive;
use super::{Limits, STALE, Workers, dispatch};
use crate::app::App;
use crate::clock;

const NAME: &str = "deliver";
/// Sends under way at once.
const IN_FLIGHT: usize = 256;
/// Deliveries of one claim.
const CLAIM: usize = 64;
/// Other servers queue, too; their rows are noticed in this time when nothing is known to be due.
const IDLE: Duration = Duration::from_secs(5);
/// How soon a claim is repeated that got nothing although something is due.
const BUSY: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_secs(1);

/// The end of an attempt, and the slot that it holds until it is marked.
struct Done {
    mark: Mark,
    _slot: OwnedSemaphorePermit,
}

pub(super) fn start(workers: &mut Workers, app: &Arc<App>, server: Uuid, alive: Alive, limits: Limits) {
    let app = Arc::clone(app);
    workers.spawn(NAME, move || run(Arc::clone(&app), server, alive.clone(), limits));
}

async fn run(app: Arc<App>, server: Uuid, alive: Alive, limits: Limits) {
    let slots = Arc::new(Semaphore::new(IN_FLIGHT));
    let (done, ends) = mpsc::unbounded_channel();
    let sends = TaskTracker::new();
    let lanes = Arc::new(Lanes::default());
    let marker = sends.spawn(mark(Arc::clone(&app), ends));
    let mut outbox = app.outbox.subscribe();
    while !app.stop.is_cancelled() {
        let free = tokio::select! {
            slot = slots.acquire() => { drop(slot); slots.available_permits() }
            () = app.stop.cancelled() => break,
        };
        outbox.mark_unchanged();
        if free == 0 {
            continue;
        }
        if !alive.is_certain() {
            tokio::select! { () = sleep(PAUSE) => {}, () = app.stop.cancelled() => {} }
            continue;
        }
        let claimed_at = Instant::now();
        let wanted = i64::try_from(free.min(CLAIM)).unwrap_or(1);
        let claim = app.store.delivery_claim(server, clock::now(), wanted, lanes.bounds()).await;
        let claim = match claim {
            Ok(claim) => claim,
            Err(error) => {
                tracing::warn!(%error, "claiming deliveries failed; it is repeated");
                app.health.failed(NAME);
                tokio::select! { () = sleep(PAUSE) => {}, () = app.stop.cancelled() => {} }
                continue;
            }
        };
        app.health.succeeded(NAME);
        let claimed_any = !claim.deliveries.is_empty();
        for delivery in claim.deliveries {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { break };
            let lane = lanes.enter(delivery.integration.id);
            let attempt = attempt(Arc::clone(&app), delivery, claimed_at, alive.clone(), limits);
            let (done, app) = (done.clone(), Arc::clone(&app));
            sends.spawn(async move {
                let mark = attempt.await;
                if lane.leave(mark.as_ref().map(|m| &m.outcome)) {
                    app.wake_outbox();
                }
                if let Some(mark) = mark {
                    // The marker outlives all sends.
                    let _ = done.send(Done { mark, _slot: slot });
                }
            });
        }
        // As long as claims give something, more may be due than the bounds of one let through.
        if !claimed_any {
            let due = claim.next_due.map_or(IDLE, |at| {
                // What is due already waits for its lane, whose leaving wakes this loop, or is in another server's
                // hands just now.
                let us = at.micros() - clock::now().micros();
                if us <= 0 { BUSY } else { Duration::from_micros(us.unsigned_abs()) }
            });
            tokio::select! {
                _ = outbox.changed() => {}
                () = sleep(due.clamp(Duration::from_millis(10), IDLE)) => {}
                () = app.stop.cancelled() => {}
            }
        }
    }
    drop(done);
    sends.close();
    sends.wait().await;
    let _ = marker.await;
}

/// One attempt; none when it was not to be started any more.
async fn attempt(app: Arc<App>, delivery: Claimed, claimed_at: Instant, alive: Alive, limits: Limits) -> Option<Mark> {
    if claimed_at.elapsed() > STALE / 2 || !alive.has_been_certain_since(claimed_at) {
        return None;
    }
    Some(dispatch::dispatch(&app, delivery, limits.max_attempts).await)
}

/// Marks ends as they come, as many at once as have come; repeats a batch while the database does not answer, as long
/// as the claims can be its own.
async fn mark(app: Arc<App>, mut ends: mpsc::UnboundedReceiver<Done>) {
    let mut batch = Vec::new();
    while ends.recv_many(&mut batch, 256).await > 0 {
        let marks: Vec<Mark> = batch.iter().map(|d: &Done| d.mark.clone()).collect();
        let since = Instant::now();
        loop {
            match app.store.delivery_finish(marks.clone(), clock::now()).await {
                Ok(landed) => {
                    count(&marks, &landed);
                    if marks.iter().any(|m| matches!(m.outcome, Outcome::Retry { .. })) {
                        // The claiming loop learns when the next attempt is due.
                        app.wake_outbox();
                    }
                    break;
                }
                Err(error) if since.elapsed() < STALE / 2 => {
                    tracing::warn!(%error, "marking deliveries failed; it is repeated");
                    app.health.failed(NAME);
                    sleep(PAUSE).await;
                }
                Err(_) => {
                    tracing::error!(deliveries = marks.len(), "deliveries could not be marked; they are recovered");
                    break;
                }
            }
        }
        batch.clear();
    }
}

fn count(marks: &[Mark], landed: &[bool]) {
    for (mark, landed) in marks.iter().zip(landed) {
        let outcome = match mark.outcome {
            Outcome::Sent => "sent",
            Outcome::Retry { .. } => "failed",
            Outcome::Dead { .. } => "dead",
        };
        if *landed {
            metrics::counter!("courant_notification_deliveries_total", "outcome" => outcome).increment(1);
        } else {
            tracing::info!(delivery.id = %mark.attempt.id, outcome, "another claim owns this delivery by now; the mark is dropped");
        }
    }
}
