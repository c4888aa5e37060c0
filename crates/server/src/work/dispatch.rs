//! One delivery in hand: its attempt, and what follows from it.

use std::time::Duration;

use courant_api::Timestamp;
use courant_api::notify::Notification;
use courant_core::delivery::{Failure, FailureClass, RetryPolicy, Transition, Verdict, after_attempt};
use courant_store::{Claimed, Mark, Outcome};

use crate::app::App;
use crate::attempt::attempt;
use crate::{clock, secrets};

/// Makes one attempt and says how it ended.
pub(super) async fn dispatch(app: &App, delivery: Claimed, max_attempts: u32) -> Mark {
    let verdict = verdict(app, &delivery).await;
    let now = clock::now();
    let policy = RetryPolicy { max_attempts, ..RetryPolicy::default() };
    let chance = f64::from(u32::from_be_bytes(secrets::random())) / f64::from(u32::MAX);
    let outcome = match after_attempt(&policy, delivery.attempt.attempt_count, verdict, chance) {
        Transition::Sent => Outcome::Sent,
        Transition::Retry { delay, error } => Outcome::Retry { run_at: later(now, delay), error },
        Transition::Dead { error, disable_integration } => Outcome::Dead { error, disable_integration },
    };
    Mark { attempt: delivery.attempt, outcome }
}

fn later(now: Timestamp, delay: Duration) -> Timestamp {
    now.plus_micros(i64::try_from(delay.as_micros()).unwrap_or(i64::MAX))
}

async fn verdict(app: &App, delivery: &Claimed) -> Verdict {
    let permanent = |class, text| Verdict::Permanent { error: Failure::new(class, text) };
    if !delivery.integration.enabled {
        return permanent(FailureClass::Disabled, "notification integration is disabled");
    }
    let Ok(notification) = serde_json::from_str::<Notification>(&delivery.payload) else {
        return permanent(FailureClass::Payload, "the stored notification cannot be read");
    };
    attempt(app, delivery.attempt.tenant_id, &delivery.integration, &notification).await.verdict
}
