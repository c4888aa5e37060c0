//! What routes, workers and commands share: the store, the key ring, and short-lived caches.
//!
//! Nothing here is a truth of its own: whatever is cached may be forgotten at any time, and is after seconds.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use courant_api::TenantId;
use courant_core::catalogue::PayloadValidator;
use courant_providers::Settings;
use courant_store::{Caller, Store};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::config::Journal;
use crate::http::socket::{HasSockets, Limits, Sockets};
use crate::http::{ApiError, Authenticate};
use crate::live::Live;
use crate::outbound::Outbound;
use crate::secrets::{KeyRing, Secret, api_key};
use crate::work::Health;

/// A revoked key or grant stops working within this time.
const CALLER_TTL: Duration = Duration::from_secs(2);
/// A custom type is looked up again after this time; the schema of a version never changes.
const TYPE_TTL: Duration = Duration::from_secs(1);
const CACHED: usize = 10_000;

/// A custom type with its payload check.
pub struct KnownType {
    /// The entity its events are about.
    pub entity_type: String,
    /// The version that is appended.
    pub version: u32,
    /// Checks payloads of that version.
    pub validator: PayloadValidator,
}

/// The application.
pub struct App {
    /// The database.
    pub store: Store,
    /// Seals and opens what integrations keep secret.
    pub ring: Arc<KeyRing>,
    /// What makes tenants over HTTP, if anything does.
    pub bootstrap_secret: Option<Secret>,
    /// The operator's addresses of providers.
    pub settings: Settings,
    /// The way out.
    pub outbound: Outbound,
    /// How the background work stands.
    pub health: Health,
    /// Raised when deliveries may be due.
    pub outbox: watch::Sender<u64>,
    /// What waiting readers listen to.
    pub live: Live,
    /// Its open sockets.
    pub sockets: Arc<Sockets>,
    /// Cancelled when the server is to end.
    pub stop: CancellationToken,
    /// How long events are kept, and where they go before they are deleted.
    pub journal: Journal,
    callers: Cache<[u8; 32], Caller>,
    types: Cache<(TenantId, String), Arc<KnownType>>,
}

impl App {
    /// An application over these parts.
    pub fn new(
        store: Store,
        ring: Arc<KeyRing>,
        bootstrap_secret: Option<Secret>,
        settings: Settings,
        outbound: Outbound,
    ) -> Self {
        let stop = CancellationToken::new();
        Self {
            store,
            ring,
            bootstrap_secret,
            settings,
            outbound,
            health: Health::default(),
            outbox: watch::Sender::new(0),
            live: Live::default(),
            sockets: Arc::new(Sockets::new(Limits::default(), stop.clone())),
            stop,
            journal: Journal::default(),
            callers: Cache::new(CALLER_TTL),
            types: Cache::new(TYPE_TTL),
        }
    }

    /// The same with these settings of the journal.
    pub fn with_journal(self, journal: Journal) -> Self {
        Self { journal, ..self }
    }

    /// The same application with other limits of sockets; to be set before it has any.
    pub fn with_sockets(self, limits: Limits) -> Self {
        Self { sockets: Arc::new(Sockets::new(limits, self.stop.clone())), ..self }
    }

    /// Says that deliveries may be due.
    pub fn wake_outbox(&self) {
        self.outbox.send_modify(|n| *n += 1);
    }

    /// A custom type of the tenant as it is used now.
    pub async fn known_type(&self, tenant: TenantId, name: &str) -> Result<Option<Arc<KnownType>>, ApiError> {
        let key = (tenant, name.to_owned());
        if let Some(known) = self.types.get(&key) {
            return Ok(Some(known));
        }
        let Some(found) = self.store.event_type_current(tenant, vec![name.to_owned()]).await?.pop() else {
            return Ok(None);
        };
        let validator = PayloadValidator::compile(&found.schema)
            .map_err(|faults| ApiError::internal(format!("stored schema of {name}: {faults:?}")))?;
        let known = Arc::new(KnownType { entity_type: found.entity_type, version: found.version, validator });
        self.types.put(key, Arc::clone(&known));
        Ok(Some(known))
    }
}

impl Authenticate for App {
    type Caller = Caller;

    async fn authenticate(&self, credential: Option<&str>) -> Result<Caller, ApiError> {
        let key = credential.filter(|c| c.starts_with(api_key::MARK)).ok_or_else(ApiError::unauthenticated)?;
        self.caller(api_key::hash(key)).await
    }
}

impl HasSockets for App {
    fn sockets(&self) -> &Arc<Sockets> {
        &self.sockets
    }
}

impl App {
    /// Who holds the key of this hash now; a revocation counts within two seconds.
    pub async fn caller(&self, hash: [u8; 32]) -> Result<Caller, ApiError> {
        if let Some(caller) = self.callers.get(&hash) {
            return Ok(caller);
        }
        let found = self.store.caller_by_key(hash, clock::now()).await?;
        let caller = found.ok_or_else(ApiError::unauthenticated)?;
        self.callers.put(hash, caller.clone());
        Ok(caller)
    }
}

/// Values that are forgotten after a while, and bounded in number.
struct Cache<K, V> {
    ttl: Duration,
    entries: Mutex<HashMap<K, (Instant, V)>>,
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    fn new(ttl: Duration) -> Self {
        Self { ttl, entries: Mutex::default() }
    }

    fn get(&self, key: &K) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(key).filter(|(at, _)| at.elapsed() < self.ttl).map(|(_, value)| value.clone())
    }

    fn put(&self, key: K, value: V) {
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
