//! How often somebody may ask: a bucket of requests for each, which fills at a steady rate. In memory, and of one server.
//!
//! It must never hold more than a bounded number of buckets, whoever asks, and never name a wait that is not enough.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Most buckets. A full one is not kept, so this many must have been used within the time that one takes to fill.
const BUCKETS: usize = 100_000;

/// Buckets by whom they are of.
pub struct Throttle<K> {
    /// Between two requests at the steady rate.
    interval: Duration,
    /// How far a burst may run ahead of the steady rate.
    slack: Duration,
    /// When each bucket is full again.
    full_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Eq + Hash> Throttle<K> {
    /// Buckets that take `burst` requests at once, and fill with `rate` a second.
    pub fn new(rate: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / rate.max(1);
        Self { interval, slack: interval * burst.saturating_sub(1), full_at: Mutex::default() }
    }

    /// Takes one request out of a bucket; when it is empty, how long until it is not.
    pub fn take(&self, whose: K) -> Result<(), Duration> {
        let now = Instant::now();
        let mut all = self.lock();
        let full_at = all.get(&whose).map_or(now, |at| (*at).max(now));
        Self::wait(full_at, now, self.slack)?;
        if all.len() >= BUCKETS && !all.contains_key(&whose) {
            all.retain(|_, at| *at > now);
            // Rather all begin anew than every request looks through all of them.
            if all.len() > BUCKETS / 2 {
                all.clear();
            }
        }
        all.insert(whose, full_at + self.interval);
        Ok(())
    }

    /// How long until a bucket is not empty, without taking anything.
    pub fn look(&self, whose: &K) -> Result<(), Duration> {
        let now = Instant::now();
        let full_at = self.lock().get(whose).map_or(now, |at| (*at).max(now));
        Self::wait(full_at, now, self.slack)
    }

    fn wait(full_at: Instant, now: Instant, slack: Duration) -> Result<(), Duration> {
        match full_at.duration_since(now).saturating_sub(slack) {
            Duration::ZERO => Ok(()),
            wait => Err(wait),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Instant>> {
        self.full_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wait in whole seconds that is never too short.
pub fn whole_seconds(wait: Duration) -> u32 {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_once(throttle: &Throttle<u32>, whose: u32) -> usize {
        (0..1000).take_while(|_| throttle.take(whose).is_ok()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_takes_its_burst_and_then_the_rate() {
        let throttle = Throttle::new(5, 10);
        assert_eq!(at_once(&throttle, 1), 10);
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(at_once(&throttle, 1), 5);
        }
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(at_once(&throttle, 1), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_that_is_named_is_enough_and_no_more_than_needed() {
        let throttle = Throttle::new(3, 2);
        while throttle.take(1).is_ok() {}
        let wait = throttle.take(1).unwrap_err();
        tokio::time::advance(wait.checked_sub(Duration::from_millis(1)).unwrap()).await;
        assert!(throttle.look(&1).is_err());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(throttle.look(&1), Ok(()));
        assert_eq!(at_once(&throttle, 1), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn one_bucket_knows_nothing_of_another() {
        let throttle = Throttle::new(1, 2);
        assert_eq!(at_once(&throttle, 1), 2);
        assert_eq!(at_once(&throttle, 2), 2);
        assert!(throttle.look(&1).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_buckets_is_bounded() {
        let throttle = Throttle::new(1, 2);
        for whose in 0..u32::try_from(BUCKETS * 2).unwrap() {
            throttle.take(whose).unwrap();
            assert!(throttle.lock().len() <= BUCKETS);
        }
    }

    #[test]
    fn a_wait_is_rounded_up() {
        for (wait, seconds) in [(1, 1), (1000, 1), (1001, 2), (2500, 3)] {
            assert_eq!(whole_seconds(Duration::from_millis(wait)), seconds);
        }
    }
}
