//! What leaves and what comes back, as values.
//!
//! None of it may show a secret when it is printed: no header value, no body, and of a URL only scheme, host and port.

use std::fmt;

use url::Url;

/// What the engine is to send.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// One HTTP request; redirects are not followed.
    Http(HttpRequest),
}

/// An HTTP request, complete but for what the client adds: `host`, `content-length`.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: http::Method,
    /// Where to; its path may be a secret.
    pub url: Url,
    /// Headers; values that are secret are marked sensitive.
    pub headers: http::HeaderMap,
    /// The body.
    pub body: Vec<u8>,
    /// Whose word the address is.
    pub target: Target,
}

/// Whose word an address is, and so whether the outbound guard judges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The operator's, from the configuration: it passes the guard.
    Operator,
    /// A tenant's: the guard judges it.
    Tenant,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("body_bytes", &self.body.len())
            .field("target", &self.target)
            .finish()
    }
}

/// What came back, as far as providers look at it.
#[derive(Clone)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The `Retry-After` header.
    pub retry_after: Option<String>,
    /// The `Location` header.
    pub location: Option<String>,
    /// The start of the body; for providers at most 4 KiB.
    pub body: Vec<u8>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("retry_after", &self.retry_after)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_request_shows_no_secret() {
        let mut headers = http::HeaderMap::new();
        headers.insert("x-plain", "secret-in-header".parse().unwrap());
        let request = Outgoing::Http(HttpRequest {
            method: http::Method::POST,
            url: "https://user:secret-in-userinfo@hooks.example.com:8443/secret-in-path?q=secret-in-query"
                .parse()
                .unwrap(),
            headers,
            body: b"secret-in-body".to_vec(),
            target: Target::Tenant,
        });
        let printed = format!("{request:?}");
        assert!(!printed.contains("secret"), "{printed}");
        assert!(printed.contains("https://hooks.example.com:8443"), "{printed}");
        assert!(printed.contains("x-plain"), "{printed}");
    }

    #[test]
    fn a_printed_response_shows_neither_body_nor_location() {
        let response = Response {
            status: 302,
            retry_after: None,
            location: Some("https://example.com/secret".into()),
            body: b"secret".to_vec(),
        };
        assert!(!format!("{response:?}").contains("secret"));
    }
}
