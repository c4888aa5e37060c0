//! Who a bearer token says its bearer is: tokens of configured issuers, verified by the issuers' own published keys.
//!
//! It must never look at what the bearer may do, and never tell a client why a token is refused: that goes to the log.

mod jwks;
pub mod purpose;
mod token;

use std::sync::Arc;
use std::time::Duration;

use courant_api::{TenantId, Timestamp};
use courant_store::Token;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::cache::Cache;
use crate::outbound::Outbound;
pub use jwks::is_safe;
use jwks::{KeySource, NoKeys};
pub use token::{LEEWAY_SECONDS, Refused};

/// Longest token that is looked at.
const MAX_TOKEN_BYTES: usize = 8 * 1024;
/// How long a verified token is not verified again; a key that its issuer withdrew counts no longer than this beyond the
/// age of the keys.
const VERIFIED: Duration = Duration::from_secs(30);

/// An issuer as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerSettings {
    /// Its name: the `iss` of its tokens, letter by letter.
    pub issuer: String,
    /// What the `aud` of its tokens must hold.
    pub audience: String,
    /// Where its keys are; none: where its discovery document says.
    pub jwks: Option<Url>,
    /// The only tenant that may bind its subjects; none: every tenant.
    pub tenant: Option<TenantId>,
}

/// Why a token is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Unverified {
    /// It is not good.
    #[error("token refused: {0}")]
    Refused(#[from] Refused),
    /// Its issuer's keys cannot be had, so that nobody can say.
    #[error("keys of the issuer: {0}")]
    NoKeys(#[from] NoKeys),
}

struct Issuer {
    settings: IssuerSettings,
    keys: KeySource,
}

/// The configured issuers.
pub struct Issuers {
    all: Vec<Issuer>,
    verified: Cache<[u8; 32], Arc<Token>>,
}

impl Issuers {
    /// These issuers; their keys are fetched through `outbound` when they are first needed.
    pub fn new(settings: Vec<IssuerSettings>, outbound: &Outbound) -> Self {
        let issuer = |settings: IssuerSettings| {
            let keys = KeySource::new(outbound.clone(), settings.issuer.clone(), settings.jwks.clone());
            Issuer { settings, keys }
        };
        Self { all: settings.into_iter().map(issuer).collect(), verified: Cache::new(VERIFIED) }
    }

    /// The settings of an issuer by its exact name.
    pub fn settings(&self, issuer: &str) -> Option<&IssuerSettings> {
        self.all.iter().map(|issuer| &issuer.settings).find(|settings| settings.issuer == issuer)
    }

    /// Whether an issuer's subjects may stand for principals of this tenant.
    pub fn may_speak_for(&self, issuer: &str, tenant: TenantId) -> bool {
        self.settings(issuer).is_some_and(|settings| settings.tenant.is_none_or(|only| only == tenant))
    }

    /// What a token says, if it is good at this time.
    pub async fn verify(&self, text: &str, now: Timestamp) -> Result<Arc<Token>, Unverified> {
        if text.len() > MAX_TOKEN_BYTES || self.all.is_empty() {
            return Err(Refused::NoToken.into());
        }
        let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        if let Some(token) = self.verified.get(&hash).filter(|token| now < token.expires_at) {
            return Ok(token);
        }
        let outline = token::outline(text)?;
        let issuer = self.all.iter().find(|issuer| issuer.settings.issuer == outline.issuer);
        let issuer = issuer.ok_or(Refused::UnknownIssuer)?;
        let key = issuer.keys.key(outline.key_id.as_deref(), outline.algorithm).await?.ok_or(Refused::UnknownKey)?;
        let token = token::verify(text, &outline, &key, &issuer.settings, now)?;
        let token = Arc::new(token);
        self.verified.put(hash, Arc::clone(&token));
        Ok(token)
    }
}

#[cfg(test)]
mod tests;
