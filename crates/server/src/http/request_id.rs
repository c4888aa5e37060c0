//! What ties a request to logs, events and other services: request id, correlation id, trace context, and the client.
//!
//! Values from outside are kept only when they are short and plain, because they end in headers, logs and the journal.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(super) const X_CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Where a request comes from, as far as tracing goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMeta {
    /// Identifies this request: the caller's `X-Request-ID` when it is acceptable, else made here.
    pub request_id: String,
    /// Ties together what one undertaking caused: `X-Correlation-ID` when acceptable, else the request id.
    pub correlation_id: String,
    /// The caller's W3C trace context, when it has the form of one.
    pub traceparent: Option<String>,
    /// The client's address, where the server knows it.
    pub client: Option<IpAddr>,
}

impl RequestMeta {
    /// Reads the headers and fills in what they lack.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let accepted = |name| text(headers, &name).filter(|id| is_id(id)).map(str::to_owned);
        let request_id = accepted(X_REQUEST_ID).unwrap_or_else(|| crate::ids::new_id().to_string());
        Self {
            correlation_id: accepted(X_CORRELATION_ID).unwrap_or_else(|| request_id.clone()),
            traceparent: text(headers, &TRACEPARENT).filter(|t| is_traceparent(t)).map(str::to_owned),
            request_id,
            client: None,
        }
    }

    /// Echoes the ids in a response.
    pub(super) fn echo(&self, headers: &mut HeaderMap) {
        for (name, id) in [(X_REQUEST_ID, &self.request_id), (X_CORRELATION_ID, &self.correlation_id)] {
            if let Ok(value) = HeaderValue::from_str(id) {
                headers.insert(name, value);
            }
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// `^[A-Za-z0-9._:-]{1,128}$`
fn is_id(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
}

/// `version-traceid-parentid-flags`, in lower-case hexadecimal.
fn is_traceparent(text: &str) -> bool {
    let fields: Vec<_> = text.split('-').collect();
    fields.iter().map(|f| f.len()).eq([2, 32, 16, 2])
        && fields.iter().all(|f| f.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(headers: &[(HeaderName, &str)]) -> RequestMeta {
        RequestMeta::from_headers(&headers.iter().map(|(n, v)| (n.clone(), v.parse().unwrap())).collect())
    }

    #[test]
    fn acceptable_ids_are_kept() {
        let longest = "a".repeat(128);
        let kept = meta(&[(X_REQUEST_ID, &longest), (X_CORRELATION_ID, "deploy:7.b_c-D".replace('_', ".").as_str())]);
        assert_eq!((kept.request_id, kept.correlation_id), (longest, "deploy:7.b.c-D".to_owned()));
    }

    #[test]
    fn other_ids_are_replaced() {
        for bad in ["", "a b", "a/b", &"a".repeat(129)] {
            let made = meta(&[(X_REQUEST_ID, bad), (X_CORRELATION_ID, bad)]);
            assert_ne!(made.request_id, bad);
            assert!(made.request_id.parse::<uuid::Uuid>().is_ok());
            assert_eq!(made.correlation_id, made.request_id);
        }
    }

    #[test]
    fn only_a_well_formed_traceparent_is_kept() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(meta(&[(TRACEPARENT, good)]).traceparent.as_deref(), Some(good));
        assert_eq!(meta(&[(TRACEPARENT, &good.to_uppercase())]).traceparent, None);
        assert_eq!(meta(&[(TRACEPARENT, "00-0af7")]).traceparent, None);
    }
}
