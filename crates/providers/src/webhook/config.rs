//! A webhook's settings: `url`, `format`, `headers`.
//!
//! They are shown in answers, so headers that carry credentials are refused here: plain settings must never hold a
//! secret by design. Whether the address may be reached is the outbound guard's question, asked at every send.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use crate::{ConfigError, fields};

const MAX_URL_BYTES: usize = 2000;
const MAX_HEADERS: usize = 20;
const MAX_HEADER_VALUE_BYTES: usize = 1000;

/// Set by us or by the HTTP client, or meant for one hop only.
const RESERVED: [&str; 13] = [
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "user-agent",
    "expect",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
];
const RESERVED_PREFIX: &str = "webhook-";
/// Would be a credential in settings that anybody who may read the integration sees.
const CREDENTIAL: [&str; 2] = ["authorization", "cookie"];
const CREDENTIAL_PREFIX: &str = "proxy-";

/// What the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The notification.
    Notification,
    /// The journal event in it, as a structured CloudEvent.
    CloudEvent,
}

/// The settings, read.
pub(super) struct Config {
    pub(super) url: Url,
    pub(super) format: Format,
    pub(super) headers: HeaderMap,
}

impl Config {
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self, ConfigError> {
        fields::only(config, &["url", "format", "headers"])?;
        let url = read_url(fields::required(config, "url")?).map_err(|why| fields::refuse(&["url"], why))?;
        let format = match fields::optional(config, "format")? {
            None | Some("notification") => Format::Notification,
            Some("cloudevent") => Format::CloudEvent,
            Some(_) => {
                return Err(fields::refuse(&["format"], "must be notification or cloudevent"));
            }
        };
        let headers = match config.get("headers") {
            None => HeaderMap::new(),
            Some(Value::Object(headers)) => read_headers(headers)?,
            Some(_) => return Err(fields::refuse(&["headers"], "must be an object")),
        };
        Ok(Self { url, format, headers })
    }
}

fn read_url(text: &str) -> Result<Url, &'static str> {
    if text.len() > MAX_URL_BYTES {
        return Err("must have at most 2000 bytes");
    }
    // The parser drops some of these silently; what is shown must be what is called.
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("must not contain white space or control characters");
    }
    let url = Url::parse(text).map_err(|_| "must be an absolute URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password");
    }
    if url.fragment().is_some() {
        return Err("must not contain a fragment");
    }
    Ok(url)
}

fn read_headers(given: &Map<String, Value>) -> Result<HeaderMap, ConfigError> {
    if given.len() > MAX_HEADERS {
        return Err(fields::refuse(&["headers"], "must have at most 20 entries"));
    }
    let mut headers = HeaderMap::new();
    for (key, value) in given {
        let refuse = |why: &str| fields::refuse(&["headers", key], why);
        let name = HeaderName::from_bytes(key.as_bytes()).map_err(|_| refuse("is not a header name"))?;
        if RESERVED.contains(&name.as_str()) || name.as_str().starts_with(RESERVED_PREFIX) {
            return Err(refuse("is reserved"));
        }
        if CREDENTIAL.contains(&name.as_str()) || name.as_str().starts_with(CREDENTIAL_PREFIX) {
            return Err(refuse("carries credentials, and headers are not kept secret; check the signature instead"));
        }
        let text = value.as_str().ok_or_else(|| refuse("must be a string"))?;
        if text.len() > MAX_HEADER_VALUE_BYTES {
            return Err(refuse("must have at most 1000 bytes"));
        }
        let printable = text.bytes().all(|b| matches!(b, b' '..=b'~'));
        let mut value = HeaderValue::from_str(text)
            .ok()
            .filter(|_| printable)
            .ok_or_else(|| refuse("must be printable ASCII without line breaks"))?;
        // Not secret by design, but nothing keeps a tenant from putting a token here.
        value.set_sensitive(true);
        if headers.insert(name, value).is_some() {
            return Err(refuse("is given twice"));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::golden::object;

    fn refused(config: Value) -> String {
        Config::read(&object(config)).err().map_or_else(|| "accepted".into(), |e| e.pointer)
    }

    #[test]
    fn a_plain_http_or_https_url_is_enough() {
        for url in ["http://127.0.0.1:9000/in", "https://hooks.example.com/a?b=c", "HTTPS://münchen.example/"] {
            let config = Config::read(&object(json!({ "url": url }))).ok().unwrap();
            assert_eq!(config.format, Format::Notification);
            assert!(config.headers.is_empty());
        }
    }

    #[test]
    fn a_url_of_another_kind_is_refused() {
        let long = format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES));
        for url in [
            "",
            "/relative",
            "example.com",
            "ftp://example.com/",
            "file:///etc/passwd",
            "https://",
            "https://u@example.com/",
            "https://u:p@example.com/",
            "https://:p@example.com/",
            "https://example.com/#f",
            "https://example.com/#",
            " https://example.com/",
            "https://example.com/\n",
            "https://exa\tmple.com/",
            &long,
        ] {
            assert_eq!(refused(json!({ "url": url })), "/url", "{url:?}");
        }
        assert_eq!(refused(json!({})), "/url");
        assert_eq!(refused(json!({ "url": 1 })), "/url");
    }

    #[test]
    fn an_unknown_key_or_format_is_refused() {
        assert_eq!(refused(json!({ "url": "https://example.com", "Format": "x" })), "/Format");
        assert_eq!(refused(json!({ "url": "https://example.com", "format": "binary" })), "/format");
        assert_eq!(refused(json!({ "url": "https://example.com", "format": null })), "/format");
    }

    #[test]
    fn reserved_and_credential_headers_are_refused_in_any_case() {
        for name in RESERVED.iter().chain(&CREDENTIAL).chain(&["webhook-id", "webhook-anything", "proxy-authorization"])
        {
            for name in [name.to_string(), name.to_uppercase()] {
                let config = json!({ "url": "https://example.com", "headers": { &name: "x" } });
                assert_eq!(refused(config), format!("/headers/{name}"));
            }
        }
    }

    #[test]
    fn a_header_cannot_break_out_of_its_line() {
        for (name, value) in [
            ("X-A", "a\r\nX-I: 1"),
            ("X-A", "a\nb"),
            ("X-A", "\u{0}"),
            ("X-A", "é"),
            ("X A", "a"),
            ("X:A", "a"),
            ("X\r\n", "a"),
            ("", "a"),
        ] {
            let config = json!({ "url": "https://example.com", "headers": { name: value } });
            assert_eq!(refused(config), format!("/headers/{name}"), "{value:?}");
        }
        assert_eq!(refused(json!({ "url": "https://example.com", "headers": { "x-a": 1 } })), "/headers/x-a");
        assert_eq!(refused(json!({ "url": "https://example.com", "headers": [] })), "/headers");
    }

    #[test]
    fn one_header_in_two_cases_is_refused() {
        assert_eq!(
            refused(json!({ "url": "https://example.com", "headers": { "X-A": "1", "x-a": "2" } })),
            "/headers/x-a"
        );
    }

    #[test]
    fn twenty_headers_are_the_most() {
        let headers = |n: usize| object((0..n).map(|i| (format!("x-{i}"), json!("v"))).collect());
        assert_eq!(refused(json!({ "url": "https://example.com", "headers": headers(20) })), "accepted");
        assert_eq!(refused(json!({ "url": "https://example.com", "headers": headers(21) })), "/headers");
        let value = "v".repeat(MAX_HEADER_VALUE_BYTES + 1);
        assert_eq!(refused(json!({ "url": "https://example.com", "headers": { "x-a": value } })), "/headers/x-a");
    }

    #[test]
    fn an_error_does_not_quote_the_value() {
        let error = Config::read(&object(json!({ "url": "https://user:hunter2@example.com/" }))).err().unwrap();
        assert!(!error.to_string().contains("hunter2"));
    }
}
