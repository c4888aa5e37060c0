//! Pauses that double between failures and fall back on success.
//!
//! The one rule for every repeat in this crate. It must never grow past its maximum, and never be so regular that
//! many clients of one server come back together.

use std::time::Duration;

/// Counts failures in a row and says how long to pause after each.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    initial: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(initial: Duration, max: Duration) -> Self {
        Self { initial: initial.min(max), max, failures: 0 }
    }

    /// The pause after one more failure: between half and all of `initial · 2^(failures before)`, capped at `max`.
    pub(crate) fn pause(&mut self) -> Duration {
        let doubled = self.initial.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        doubled.min(self.max).mul_f64(rand::random_range(0.5..=1.0))
    }

    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_and_fall_back() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        for ceiling in [1, 2, 4, 5, 5].map(Duration::from_secs) {
            let pause = backoff.pause();
            assert!(pause >= ceiling / 2 && pause <= ceiling, "{pause:?} against {ceiling:?}");
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_secs(1));
    }

    #[test]
    fn a_thousand_failures_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1));
        let last = (0..1_000).map(|_| backoff.pause()).last();
        assert!(last <= Some(Duration::from_mins(1)) && last >= Some(Duration::from_secs(30)), "{last:?}");
    }
}
