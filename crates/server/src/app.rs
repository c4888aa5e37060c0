//! What routes, workers and commands share: the store, the key ring, and short-lived caches.
//!
//! Nothing here is a truth of its own: whatever is cached may be forgotten at any time, and is after seconds.

use std::net::IpAddr;
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
use crate::http::{ApiError, Authenticate, Entry, Throttle};
use crate::identity::{Issuers, Unverified, purpose};
use crate::live::Live;
use crate::outbound::Outbound;
use crate::secrets::{KeyRing, Secret, api_key};
use crate::work::Health;

/// A revoked key or grant stops working within this time.
const CALLER_TTL: Duration = Duration::from_secs(2);
/// A custom type is looked up again after this time; the schema of a version never changes.
const TYPE_TTL: Duration = Duration::from_secs(1);

/// Wrong bootstrap secrets that a client may send a second, and at once.
const WRONG_SECRETS: (u32, u32) = (5, 10);

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
    /// Where people find this server, for links.
    pub base_url: Option<Arc<str>>,
    /// How long events are kept, and where they go before they are deleted.
    pub journal: Journal,
    /// Who signs tokens that are accepted.
    pub issuers: Issuers,
    /// Who decides, when that is not the grants.
    pub decision_point: Option<Arc<DecisionPoint>>,
    /// How many wrong bootstrap secrets each client has sent.
    pub wrong_secrets: Throttle<Option<IpAddr>>,
    requests: Option<Throttle<[u8; 32]>>,
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
        let issuers = Issuers::new(Vec::new(), &outbound);
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
            base_url: None,
            journal: Journal::default(),
            issuers,
            decision_point: None,
            wrong_secrets: Throttle::new(WRONG_SECRETS.0, WRONG_SECRETS.1),
            requests: None,
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

    /// The same with so many requests a second for each credential, and bursts of twice as many.
    pub fn with_rate_limit(self, rate: Option<u32>) -> Self {
        Self { requests: rate.map(|rate| Throttle::new(rate, rate.saturating_mul(2))), ..self }
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
        let text = credential.ok_or_else(ApiError::unauthenticated)?;
        let credential = if text.starts_with(api_key::MARK) {
            Credential::ApiKey(api_key::hash(text))
        } else if text.starts_with(api_key::DECISION_MARK) {
            Credential::DecisionToken(api_key::hash(text))
        } else {
            Credential::Token(self.issuers.verify(text, clock::now()).await?)
        };
        self.caller(&credential).await
    }

    fn confine(&self, caller: &Caller, entry: &Entry<'_>) -> Result<(), ApiError> {
        let Some(purpose) = caller.purpose else { return Ok(()) };
        match purpose::refusal(purpose, entry.template, entry.path, entry.is_keyed) {
            Some(code) => Err(ApiError::new(code, code.meaning())),
            None => Ok(()),
        }
    }

    fn count(&self, caller: &Caller) -> Result<(), ApiError> {
        let Some(requests) = &self.requests else { return Ok(()) };
        requests.take(caller.throttle_key()).map_err(ApiError::rate_limited)
    }
}

impl From<Unverified> for ApiError {
    fn from(error: Unverified) -> Self {
        match error {
            Unverified::Refused(_) => Self::unauthenticated().cause(error),
            // Nobody can say whether the token is good: to call it bad would have its bearer throw it away.
            Unverified::NoKeys(_) => Self::unavailable(error),
        }
    }
}

impl HasSockets for App {
    fn sockets(&self) -> &Arc<Sockets> {
        &self.sockets
    }
}

impl App {
    /// Whose credential it is now; a revocation counts within two seconds.
    pub async fn caller(&self, credential: &Credential) -> Result<Caller, ApiError> {
        let now = clock::now();
        if let Some(caller) = self.callers.get(credential).filter(|caller| caller.is_good(now)) {
            return Ok(caller);
        }
        let found = match credential {
            Credential::ApiKey(hash) => self.store.caller_by_key(*hash, now).await?,
            Credential::DecisionToken(hash) => self.store.caller_by_decision_token(*hash, now).await?,
            Credential::Token(token) => {
                let found = self.store.caller_by_token(Arc::clone(token)).await?;
                found.filter(|caller| self.issuers.may_speak_for(&token.issuer, caller.tenant_id))
            }
        };
        let caller = found.filter(|caller| caller.is_good(now)).ok_or_else(ApiError::unauthenticated)?;
        self.callers.put(credential.clone(), caller.clone());
        Ok(caller)
    }

    /// Looks at everybody's rights anew: after a change of who may do what, which counts here at once.
    pub fn forget_callers(&self) {
        self.callers.clear();
    }

    /// Has questions decided by the external decision point; without a decision on each, nobody passes.
    pub async fn decide(&self, questions: Vec<Question>) -> Result<(), ApiError> {
        match &self.decision_point {
            Some(point) => point.decide(questions).await.map_err(ApiError::authorization_unavailable),
            None => Err(ApiError::authorization_unavailable("no decision point is configured")),
        }
    }
}
