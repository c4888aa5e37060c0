//! The opening handshake: whether a request is one, its answer, and the credential that it carries.
//!
//! Browsers cannot set `Authorization` here; they offer the credential as a subprotocol, which is never chosen and so
//! never sent back.

use axum::extract::Request;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

use crate::http::header as headers;

/// The subprotocol that is chosen when it is offered.
pub const PROTOCOL: &str = "courant.events.v1";
/// A subprotocol that begins so carries a credential; it counts only beside [`PROTOCOL`].
pub const BEARER: &str = "courant.bearer.";

const PROTOCOLS: HeaderName = header::SEC_WEBSOCKET_PROTOCOL;

/// A good handshake.
pub(super) struct Handshake {
    /// Its answer.
    pub(super) response: Response<()>,
}

impl Handshake {
    pub(super) fn of(request: &Request) -> Option<Self> {
        let mut response = create_response_with_body(request, || ()).ok()?;
        if offered(request.headers()).any(|name| name == PROTOCOL) {
            response.headers_mut().insert(PROTOCOLS, HeaderValue::from_static(PROTOCOL));
        }
        Some(Self { response })
    }
}

/// The credential of `Authorization`; without that header, of the subprotocols.
pub(super) fn credential(all: &HeaderMap) -> Option<String> {
    if all.contains_key(header::AUTHORIZATION) {
        return headers::bearer(all).map(str::to_owned);
    }
    if !offered(all).any(|name| name == PROTOCOL) {
        return None;
    }
    let mut credentials = offered(all).filter_map(|name| name.strip_prefix(BEARER));
    // Two are none, as with the header.
    credentials.next().filter(|_| credentials.next().is_none()).map(str::to_owned)
}

fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(PROTOCOLS).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(values: &[(HeaderName, &str)]) -> Option<String> {
        let headers: HeaderMap = values.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        credential(&headers)
    }

    #[test]
    fn a_credential_comes_by_header_or_by_subprotocol() {
        let (auth, protocol) = (header::AUTHORIZATION, PROTOCOLS);
        let cak = |text: &str| Some(text.to_owned());
        assert_eq!(with(&[(auth.clone(), "Bearer cak_1")]), cak("cak_1"));
        assert_eq!(with(&[(protocol.clone(), "courant.events.v1, courant.bearer.cak_1")]), cak("cak_1"));
        assert_eq!(
            with(&[(protocol.clone(), "courant.bearer.cak_1"), (protocol.clone(), "courant.events.v1")]),
            cak("cak_1")
        );
        let both = [(auth.clone(), "Bearer cak_1"), (protocol.clone(), "courant.events.v1,courant.bearer.cak_2")];
        assert_eq!(with(&both), cak("cak_1"));
    }

    #[test]
    fn what_is_not_said_plainly_is_no_credential() {
        let (auth, protocol) = (header::AUTHORIZATION, PROTOCOLS);
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[(protocol.clone(), "courant.bearer.cak_1")]), None);
        assert_eq!(with(&[(protocol.clone(), "courant.events.v1,courant.bearer.a,courant.bearer.b")]), None);
        let bad_header = [(auth, "Basic YTpi"), (protocol, "courant.events.v1,courant.bearer.cak_1")];
        assert_eq!(with(&bad_header), None);
    }
}
