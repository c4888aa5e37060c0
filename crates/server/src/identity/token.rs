//! A token by itself: its outline before any key is known, and its verification with one. No I/O, no clock.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courant_api::access::MAX_SUBJECT_CHARS;
use courant_api::approvals::is_channel;
use courant_api::{Scope, Timestamp};
use courant_core::access::{Ceiling, Purpose};
use courant_store::Token;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Number;

use super::IssuerSettings;

/// How far the clocks of issuers may differ from ours, in seconds; RFC 7519, sections 4.1.4 and 4.1.5.
pub const LEEWAY_SECONDS: i64 = 30;
const SECOND_US: i64 = 1_000_000;

/// The algorithms that count: all with a public key, so that no issuer's published key can be used as a secret.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Why a token is not good; for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is none, or too long.
    #[error("it is no token")]
    NoToken,
    /// Its algorithm is not one of those that count.
    #[error("its algorithm does not count")]
    Algorithm,
    /// It demands extensions.
    #[error("it has critical headers")]
    Critical,
    /// Its issuer is not configured.
    #[error("its issuer is not configured")]
    UnknownIssuer,
    /// Its issuer has published no such key.
    #[error("its issuer has no such key for its algorithm")]
    UnknownKey,
    /// Its signature is wrong.
    #[error("its signature is wrong")]
    Signature,
    /// A claim is missing, of the wrong type or out of range.
    #[error("its claim {0} is missing or malformed")]
    Claim(&'static str),
    /// It is for somebody else.
    #[error("its audience is another")]
    Audience,
    /// It is over.
    #[error("it has expired")]
    Expired,
    /// It has not begun.
    #[error("it is not valid yet")]
    NotYet,
}

/// What a token says before it is believed.
pub(super) struct Outline {
    pub issuer: String,
    pub key_id: Option<String>,
    pub algorithm: Algorithm,
}

#[derive(Deserialize)]
struct IssuerClaim {
    iss: String,
}

/// Reads what is needed to find the key.
pub(super) fn outline(text: &str) -> Result<Outline, Refused> {
    let mut parts = text.split('.');
    let (Some(_), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(Refused::NoToken);
    };
    let header = decode_header(text).map_err(|_| Refused::NoToken)?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(Refused::Algorithm);
    }
    if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
        return Err(Refused::Critical);
    }
    let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| Refused::NoToken)?;
    let IssuerClaim { iss } = serde_json::from_slice(&claims).map_err(|_| Refused::Claim("iss"))?;
    Ok(Outline { issuer: iss, key_id: header.kid, algorithm: header.alg })
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn iter(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many.as_slice(),
        }
        .iter()
        .map(String::as_str)
    }
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: OneOrMany,
    exp: Number,
    nbf: Option<Number>,
    iat: Option<Number>,
    scope: Option<String>,
    scp: Option<OneOrMany>,
    purpose_ref: Option<String>,
    acr: Option<String>,
}

/// What a token says, once its signature and its claims are good.
pub(super) fn verify(
    text: &str,
    outline: &Outline,
    key: &DecodingKey,
    settings: &IssuerSettings,
    now: Timestamp,
) -> Result<Token, Refused> {
    // The library checks the signature; the claims are checked here, by the server's own clock.
    let mut signature_only = Validation::new(outline.algorithm);
    signature_only.required_spec_claims.clear();
    signature_only.validate_exp = false;
    signature_only.validate_aud = false;
    let claims = decode::<Claims>(text, key, &signature_only).map_err(|error| match error.kind() {
        jsonwebtoken::errors::ErrorKind::Json(_) => Refused::Claim("set"),
        _ => Refused::Signature,
    })?;
    judge(claims.claims, settings, now)
}

fn judge(claims: Claims, settings: &IssuerSettings, now: Timestamp) -> Result<Token, Refused> {
    if claims.iss != settings.issuer {
        return Err(Refused::UnknownIssuer);
    }
    if !claims.aud.iter().any(|audience| audience == settings.audience) {
        return Err(Refused::Audience);
    }
    if claims.sub.is_empty() || claims.sub.chars().count() > MAX_SUBJECT_CHARS || claims.sub.contains('\0') {
        return Err(Refused::Claim("sub"));
    }
    let leeway = LEEWAY_SECONDS * SECOND_US;
    let expires_at = time(&claims.exp, "exp")?.plus_micros(leeway);
    if expires_at <= now {
        return Err(Refused::Expired);
    }
    for (begin, name) in [(&claims.nbf, "nbf"), (&claims.iat, "iat")] {
        if let Some(begin) = begin
            && time(begin, name)? > now.plus_micros(leeway)
        {
            return Err(Refused::NotYet);
        }
    }
    let scope_words = claims.scope.iter().flat_map(|words| words.split(' '));
    let scopes: Vec<&str> = scope_words.chain(claims.scp.iter().flat_map(OneOrMany::iter)).collect();
    let purpose = scopes.contains(&Scope::DECIDE).then(|| purpose(claims.purpose_ref.as_deref()));
    // A token for one decision wins over its other scopes: it may do nothing else.
    let ceiling = if purpose.is_some() { Ceiling::Decision } else { Ceiling::of(scopes) };
    let channel = claims.acr.as_deref().and_then(|acr| acr.strip_prefix("channel:"));
    let channel = channel.filter(|name| is_channel(name)).map(str::to_owned);
    Ok(Token { issuer: claims.iss, subject: claims.sub, expires_at, ceiling, purpose, channel })
}

/// `approval:<id>`
fn purpose(reference: Option<&str>) -> Purpose {
    let id = reference.and_then(|text| text.strip_prefix("approval:")).and_then(|id| id.parse().ok());
    id.map_or(Purpose::Unnamed, Purpose::Approval)
}

/// Seconds since 1970, with a fraction perhaps; RFC 7519, section 2.
fn time(seconds: &Number, name: &'static str) -> Result<Timestamp, Refused> {
    let malformed = Refused::Claim(name);
    let whole = match (seconds.as_i64(), seconds.as_f64()) {
        (Some(whole), _) => whole,
        // The year 9999 is far below where a float loses its whole seconds.
        (None, Some(float)) if (0.0..=1e12).contains(&float) => {
            #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
            let whole = float as i64;
            whole
        }
        _ => return Err(malformed),
    };
    // The year 9999.
    if !(0..=253_402_300_799).contains(&whole) {
        return Err(malformed);
    }
    Ok(Timestamp::from_micros(whole * SECOND_US))
}
