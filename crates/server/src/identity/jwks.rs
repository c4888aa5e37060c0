//! An issuer's keys: fetched when they are needed, kept, and looked for again when a token names one that is not there.
//!
//! An issuer that is slow, away or wrong costs a request at most one bounded wait, and is not asked again for a while;
//! the keys that it had go on counting meanwhile.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use courant_providers::{HttpRequest, Target};
use http::{HeaderValue, Method, header};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use url::{Host, Url};

use crate::outbound::Outbound;

const TIMEOUT: Duration = Duration::from_secs(5);
/// Keys are looked for again after this time.
const FRESH: Duration = Duration::from_mins(10);
/// Keys of an issuer that cannot be reached count no longer than this.
const LAST: Duration = Duration::from_hours(24);
/// An issuer is asked no more often than this, whatever tokens name.
const PAUSE: Duration = Duration::from_secs(10);
const MAX_BYTES: usize = 256 * 1024;
const MAX_KEYS: usize = 100;

/// Why there are no keys; for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKeys {
    /// The issuer cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// It answers with another status than 200.
    #[error("it answered {0}")]
    Status(u16),
    /// It answers something else.
    #[error("{0}")]
    Garbage(&'static str),
    /// It was asked a moment ago, in vain.
    #[error("it was asked a moment ago, in vain")]
    Resting,
}

/// A key that signatures are checked with.
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    decoding: Arc<DecodingKey>,
}

#[derive(Default)]
struct Known {
    keys: Vec<Key>,
    fetched: Option<Instant>,
    asked: Option<Instant>,
}

/// The keys of one issuer.
pub(super) struct KeySource {
    outbound: Outbound,
    issuer: String,
    jwks: Option<Url>,
    known: Mutex<Known>,
    flight: tokio::sync::Mutex<()>,
}

impl KeySource {
    pub(super) fn new(outbound: Outbound, issuer: String, jwks: Option<Url>) -> Self {
        Self { outbound, issuer, jwks, known: Mutex::default(), flight: tokio::sync::Mutex::default() }
    }

    /// The key of this id, or the only one there is for the algorithm; none when the issuer has none such.
    pub(super) async fn key(&self, id: Option<&str>, alg: Algorithm) -> Result<Option<Arc<DecodingKey>>, NoKeys> {
        if let (Some(key), true) = (self.find(id, alg), self.is_fresh()) {
            return Ok(Some(key));
        }
        let Ok(_flight) = self.flight.try_lock() else {
            // Somebody asks already: what is known counts as long as it lasts, else their answer is waited for.
            if let Some(key) = self.find(id, alg) {
                return Ok(Some(key));
            }
            drop(self.flight.lock().await);
            return self.found(id, alg);
        };
        if self.may_ask() {
            match self.fetch().await {
                Ok(keys) => self.update(|known| (known.keys, known.fetched) = (keys, Some(Instant::now()))),
                Err(error) => {
                    tracing::warn!(issuer = self.issuer, %error, "the issuer's keys could not be fetched");
                    return self.find(id, alg).map(Some).ok_or(error);
                }
            }
        }
        self.found(id, alg)
    }

    fn update<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_fresh(&self) -> bool {
        self.update(|known| known.fetched.is_some_and(|at| at.elapsed() < FRESH))
    }

    /// Whether it is time to ask; then it is noted as done.
    fn may_ask(&self) -> bool {
        self.update(|known| {
            let may = known.asked.is_none_or(|at| at.elapsed() >= PAUSE);
            if may {
                known.asked = Some(Instant::now());
            }
            may
        })
    }

    /// What is known, or that nothing is.
    fn found(&self, id: Option<&str>, alg: Algorithm) -> Result<Option<Arc<DecodingKey>>, NoKeys> {
        let lasts = self.update(|known| known.fetched.is_some_and(|at| at.elapsed() < LAST));
        if lasts { Ok(self.find(id, alg)) } else { Err(NoKeys::Resting) }
    }

    fn find(&self, id: Option<&str>, alg: Algorithm) -> Option<Arc<DecodingKey>> {
        self.update(|known| {
            known.fetched.filter(|at| at.elapsed() < LAST)?;
            let mut suiting = known.keys.iter().filter(|key| key.algorithms.contains(&alg));
            let key = match id {
                Some(id) => suiting.find(|key| key.id.as_deref() == Some(id)),
                // Without a name a key must be the only one.
                None => suiting.next().filter(|_| suiting.next().is_none()),
            };
            key.map(|key| Arc::clone(&key.decoding))
        })
    }

    async fn fetch(&self) -> Result<Vec<Key>, NoKeys> {
        let all = async {
            let at = match &self.jwks {
                Some(url) => url.clone(),
                None => self.discover().await?,
            };
            parse(&self.get(at).await?)
        };
        let late = || NoKeys::Unreachable("it did not answer in time".to_owned());
        tokio::time::timeout(TIMEOUT, all).await.unwrap_or_else(|_| Err(late()))
    }

    /// Where the discovery document says that the keys are; OpenID Connect Discovery 1.0, section 4.
    async fn discover(&self) -> Result<Url, NoKeys> {
        #[derive(Deserialize)]
        struct Discovery {
            issuer: String,
            jwks_uri: String,
        }
        let at = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let at = Url::parse(&at).map_err(|_| NoKeys::Garbage("its name is no URL"))?;
        let found: Discovery = serde_json::from_slice(&self.get(at).await?)
            .map_err(|_| NoKeys::Garbage("its discovery document is none"))?;
        if found.issuer != self.issuer {
            return Err(NoKeys::Garbage("its discovery document is another issuer's"));
        }
        let url = Url::parse(&found.jwks_uri).map_err(|_| NoKeys::Garbage("its jwks_uri is no URL"))?;
        if is_safe(&url) { Ok(url) } else { Err(NoKeys::Garbage("its jwks_uri is not https")) }
    }

    async fn get(&self, url: Url) -> Result<Vec<u8>, NoKeys> {
        let mut headers = http::HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let request = HttpRequest { method: Method::GET, url, headers, body: Vec::new(), target: Target::Operator };
        // One byte more than may be, so that a longer document is not taken for a whole one.
        let answer = self.outbound.fetch(request, TIMEOUT, MAX_BYTES + 1).await;
        let answer = answer.map_err(|failure| NoKeys::Unreachable(failure.text))?;
        match answer.status {
            200 if answer.body.len() > MAX_BYTES => Err(NoKeys::Garbage("its document is too long")),
            200 => Ok(answer.body),
            status => Err(NoKeys::Status(status)),
        }
    }
}

/// Whether what is read there can be trusted: over TLS, or from this machine.
pub fn is_safe(url: &Url) -> bool {
    let local = match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && local)
}

/// The keys of a document that can be used; those that cannot are left out.
fn parse(document: &[u8]) -> Result<Vec<Key>, NoKeys> {
    #[derive(Deserialize)]
    struct Document {
        keys: Vec<Value>,
    }
    let document: Document =
        serde_json::from_slice(document).map_err(|_| NoKeys::Garbage("its document is no set of keys"))?;
    let keys = document.keys.into_iter().filter_map(|value| usable(&serde_json::from_value(value).ok()?));
    Ok(keys.take(MAX_KEYS).collect())
}

fn usable(jwk: &Jwk) -> Option<Key> {
    let common = &jwk.common;
    let for_signatures = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature))
        && common.key_operations.as_ref().is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let mut algorithms = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => vec![
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            EllipticCurve::P521 | EllipticCurve::Ed25519 => return None,
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => vec![Algorithm::EdDSA],
        AlgorithmParameters::OctetKeyPair(_) | AlgorithmParameters::OctetKey(_) => return None,
    };
    if let Some(only) = common.key_algorithm {
        algorithms.retain(|algorithm| named(*algorithm) == only);
    }
    let decoding = DecodingKey::from_jwk(jwk).ok().filter(|_| for_signatures && !algorithms.is_empty())?;
    Some(Key { id: common.key_id.clone(), algorithms, decoding: Arc::new(decoding) })
}

/// The name of an algorithm in a key.
fn named(algorithm: Algorithm) -> KeyAlgorithm {
    match algorithm {
        Algorithm::HS256 => KeyAlgorithm::HS256,
        Algorithm::HS384 => KeyAlgorithm::HS384,
        Algorithm::HS512 => KeyAlgorithm::HS512,
        Algorithm::ES256 => KeyAlgorithm::ES256,
        Algorithm::ES384 => KeyAlgorithm::ES384,
        Algorithm::RS256 => KeyAlgorithm::RS256,
        Algorithm::RS384 => KeyAlgorithm::RS384,
        Algorithm::RS512 => KeyAlgorithm::RS512,
        Algorithm::PS256 => KeyAlgorithm::PS256,
        Algorithm::PS384 => KeyAlgorithm::PS384,
        Algorithm::PS512 => KeyAlgorithm::PS512,
        Algorithm::EdDSA => KeyAlgorithm::EdDSA,
    }
}
