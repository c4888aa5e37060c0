//! What becomes of a delivery: one state machine for workers, operators and tests. It must never wait, send or
//! draw chance itself.

use std::time::Duration;

use courant_api::notify::{DeliveryStatus, RetryOutcome};

mod retry_after;

pub use retry_after::parse_retry_after;

/// What a provider makes of the answer to one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It arrived.
    Sent,
    /// It may work later; `after` is the receiver's own wish.
    Retry {
        /// How long the receiver asks to be left alone.
        after: Option<Duration>,
        /// Why, in a few words without secrets.
        error: Failure,
    },
    /// It cannot work as it is.
    Permanent {
        /// Why.
        error: Failure,
    },
    /// The target is gone for good: nothing more is to be sent there.
    DisableIntegration {
        /// Why.
        error: Failure,
    },
}

/// Why an attempt failed: a class that can be counted and a text that can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of fault it is, and so who can mend it.
    pub class: FailureClass,
    /// Short, without secrets: `HTTP 503 from hooks.example.com`.
    pub text: String,
}

/// What kind of fault an attempt met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// Time-outs, refused connections, overload: passes by itself.
    Transient,
    /// The target does not exist or does not accept us.
    Destination,
    /// The secret is wrong, expired or lacks rights.
    Credential,
    /// The receiver does not accept what we say.
    Payload,
    /// The integration is disabled.
    Disabled,
    /// The outbound guard does not allow the target.
    Blocked,
}

impl FailureClass {
    /// As it is written in events and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Destination => "destination",
            Self::Credential => "credential",
            Self::Payload => "payload",
            Self::Disabled => "disabled",
            Self::Blocked => "blocked",
        }
    }
}

impl Failure {
    /// Longest text, in characters.
    pub const MAX_TEXT: usize = 500;

    /// A failure whose text fits on one bounded line: control characters become spaces and what is too long is cut.
    pub fn new(class: FailureClass, text: impl AsRef<str>) -> Self {
        let text = text.as_ref().chars().map(|c| if c.is_control() { ' ' } else { c }).take(Self::MAX_TEXT).collect();
        Self { class, text }
    }
}

/// How often and how soon a delivery is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first one included.
    pub max_attempts: u32,
    /// Longest delay after the first attempt; it doubles with each further one.
    pub base: Duration,
    /// Longest delay of all, whatever the receiver asks for.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 8, base: Duration::from_secs(5), cap: Duration::from_hours(1) }
    }
}

impl RetryPolicy {
    fn is_spent(&self, attempt_count: i64) -> bool {
        attempt_count >= i64::from(self.max_attempts)
    }

    /// The longest delay after this attempt, before chance shortens it.
    fn ceiling(&self, attempt_count: i64) -> Duration {
        let doublings = u32::try_from(attempt_count.saturating_sub(1).clamp(0, 127)).unwrap_or(127);
        let nanos = self.base.as_nanos().saturating_mul(1 << doublings);
        Duration::from_nanos_u128(nanos.min(self.cap.as_nanos()))
    }

    fn jittered(&self, attempt_count: i64, chance: f64) -> Duration {
        let ceiling = self.ceiling(attempt_count);
        let chance = if chance.is_nan() { 1.0 } else { chance.clamp(0.0, 1.0) };
        Duration::try_from_secs_f64(ceiling.as_secs_f64() * chance).unwrap_or(ceiling).min(ceiling)
    }
}

/// What is to be done with a delivery after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It arrived: delete it.
    Sent,
    /// Try again.
    Retry {
        /// How long from now.
        delay: Duration,
        /// Why this attempt failed.
        error: Failure,
    },
    /// Give it up and keep it in sight.
    Dead {
        /// Why the last attempt failed.
        error: Failure,
        /// Whether the integration is to be disabled too.
        disable_integration: bool,
    },
}

/// What follows from an attempt. `attempt_count` counts this attempt (1: the first); `chance` is between 0 and 1.
pub fn after_attempt(policy: &RetryPolicy, attempt_count: i64, verdict: Verdict, chance: f64) -> Transition {
    match verdict {
        Verdict::Sent => Transition::Sent,
        Verdict::Permanent { error } => Transition::Dead { error, disable_integration: false },
        Verdict::DisableIntegration { error } => Transition::Dead { error, disable_integration: true },
        Verdict::Retry { error, .. } if policy.is_spent(attempt_count) => {
            Transition::Dead { error, disable_integration: false }
        }
        Verdict::Retry { after, error } => {
            let own = policy.jittered(attempt_count, chance);
            Transition::Retry { delay: own.max(after.unwrap_or_default()).min(policy.cap), error }
        }
    }
}

/// What is to be done with a delivery whose worker never reported back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Try again.
    Pending,
    /// Give it up: that was its last attempt.
    Dead(Failure),
}

/// What follows when a delivery is found in the hands of a worker that is gone. `attempt_count` counts the attempt
/// that was lost.
pub fn recover(policy: &RetryPolicy, attempt_count: i64) -> Recovery {
    if policy.is_spent(attempt_count) {
        Recovery::Dead(Failure::new(
            FailureClass::Transient,
            "the server stopped during the last attempt; it may have arrived",
        ))
    } else {
        Recovery::Pending
    }
}

/// What a retry asked for by a person does: only what is dead is queued again.
pub fn requeue(status: DeliveryStatus) -> RetryOutcome {
    match status {
        DeliveryStatus::Dead => RetryOutcome::Requeued,
        DeliveryStatus::Pending | DeliveryStatus::Processing | DeliveryStatus::Failed => RetryOutcome::AlreadyQueued,
    }
}

#[cfg(test)]
mod tests;
