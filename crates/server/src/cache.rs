//! Short memory: answers that may be used again for some seconds. Nothing in it is a truth of its own.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const CACHED: usize = 10_000;

/// Values that are forgotten after a while, and bounded in number.
pub struct Cache<K, V> {
    ttl: Duration,
    entries: Mutex<HashMap<K, (Instant, V)>>,
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// A cache that forgets after `ttl`.
    pub fn new(ttl: Duration) -> Self {
        Self { ttl, entries: Mutex::default() }
    }

    /// The value, unless it is forgotten.
    pub fn get(&self, key: &K) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(key).filter(|(at, _)| at.elapsed() < self.ttl).map(|(_, value)| value.clone())
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps a value; in a full cache it may be forgotten at once.
    pub fn put(&self, key: K, value: V) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= CACHED {
            entries.retain(|_, (at, _)| at.elapsed() < self.ttl);
        }
        if entries.len() < CACHED {
            entries.insert(key, (Instant::now(), value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cached_value_is_forgotten_in_time() {
        let cache = Cache::new(Duration::from_secs(2));
        cache.put(1, "caller");
        assert_eq!(cache.get(&1), Some("caller"));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(cache.get(&1), None);
    }
}
