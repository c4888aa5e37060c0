//! What routes, workers and commands share: the store, the key ring, and short-lived caches.
//!
//! Nothing here is a truth of its own: whatever is cached may be forgotten at any time, and is after seconds.

use std::sync::Arc;
use std::time::Duration;

use courant_api::TenantId;
use courant_core::access::Question;
use courant_core::catalogue::PayloadValidator;
use courant_providers::Settings;
use courant_store::{Caller, Credential, Store};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::cache::Cache;
use crate::clock;
use crate::config::Journal;
use crate::decision::DecisionPoint;
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
    /// Who decides, when that is not the grants.
    pub decision_point: Option<Arc<DecisionPoint>>,
    callers: Cache<Credential, Caller>,
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
            decision_point: None,
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
        self.caller(Credential::ApiKey(api_key::hash(key))).await
    }
}

impl HasSockets for App {
    fn sockets(&self) -> &Arc<Sockets> {
        &self.sockets
    }
}

impl App {
    /// Whose credential it is now; a revocation counts within two seconds.
    pub async fn caller(&self, credential: Credential) -> Result<Caller, ApiError> {
        if let Some(caller) = self.callers.get(&credential) {
            return Ok(caller);
        }
        let Credential::ApiKey(hash) = credential;
        let found = self.store.caller_by_key(hash, clock::now()).await?;
        let caller = found.ok_or_else(ApiError::unauthenticated)?;
        self.callers.put(credential, caller.clone());
        Ok(caller)
    }

    /// Has questions decided by the external decision point; without a decision on each, nobody passes.
    pub async fn decide(&self, questions: Vec<Question>) -> Result<(), ApiError> {
        match &self.decision_point {
            Some(point) => point.decide(questions).await.map_err(ApiError::authorization_unavailable),
            None => Err(ApiError::authorization_unavailable("no decision point is configured")),
        }
    }
}
