//! Requests as a client of any language would send them, and answers as bytes.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

/// Everything that the server has answered in a test.
pub type Heard = Arc<Mutex<Vec<String>>>;

/// One server, as one caller.
#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    base: String,
    credential: Option<String>,
    heard: Heard,
}

impl Api {
    /// Nobody, at the server with this address.
    pub fn new(address: std::net::SocketAddr, heard: Heard) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the test's own client")]
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        Self { http, base: format!("http://{address}"), credential: None, heard }
    }

    /// The same server with another credential.
    pub fn with(&self, credential: &str) -> Self {
        Self { credential: Some(credential.to_owned()), ..self.clone() }
    }

    /// The same server with no credential.
    pub fn anonymous(&self) -> Self {
        Self { credential: None, ..self.clone() }
    }

    /// The same caller at another server.
    pub fn at(&self, address: std::net::SocketAddr) -> Self {
        Self { base: format!("http://{address}"), ..self.clone() }
    }

    /// Host and port of the server.
    pub fn host(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// What it says who it is with.
    pub fn credential(&self) -> Option<&str> {
        self.credential.as_deref()
    }

    /// A request. A path that does not start with `/api` or name an operational route is one of version 1.
    pub fn call(&self, method: Method, path: &str) -> Call {
        let whole = ["/api/", "/healthz", "/readyz", "/metrics", "/docs"].iter().any(|start| path.starts_with(start));
        let prefix = if whole { "" } else { "/api/v1" };
        let request = self.http.request(method, format!("{}{prefix}{path}", self.base));
        let request = match &self.credential {
            Some(credential) => request.bearer_auth(credential),
            None => request,
        };
        Call { request, heard: Arc::clone(&self.heard) }
    }

    pub fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    pub fn post(&self, path: &str, body: &Value) -> Call {
        self.call(Method::POST, path).json(body)
    }

    /// A `POST` to a route that takes no body.
    pub fn act(&self, path: &str) -> Call {
        self.call(Method::POST, path)
    }

    pub fn put(&self, path: &str, body: &Value) -> Call {
        self.call(Method::PUT, path).json(body)
    }

    pub fn patch(&self, path: &str, body: &Value) -> Call {
        self.call(Method::PATCH, path).json(body)
    }

    pub fn delete(&self, path: &str) -> Call {
        self.call(Method::DELETE, path)
    }
}

/// A request that is sent when it is awaited.
pub struct Call {
    request: reqwest::RequestBuilder,
    heard: Heard,
}

impl Call {
    pub fn header(self, name: &str, value: &str) -> Self {
        Self { request: self.request.header(name, value), ..self }
    }

    pub fn json(self, body: &Value) -> Self {
        self.text("application/json", body.to_string())
    }

    pub fn text(self, media_type: &str, body: impl Into<reqwest::Body>) -> Self {
        self.header("content-type", media_type).bytes(body)
    }

    /// A body without a media type.
    pub fn bytes(self, body: impl Into<reqwest::Body>) -> Self {
        Self { request: self.request.body(body), ..self }
    }
}

impl Call {
    /// The same request once more.
    pub fn again(&self) -> Self {
        Self { request: self.request.try_clone().expect("a body in memory"), heard: Arc::clone(&self.heard) }
    }
}

impl IntoFuture for Call {
    type Output = Reply;
    type IntoFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let response = self.request.send().await.expect("an answer");
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let bytes = response.bytes().await.expect("a whole answer");
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert_ne!(status, 500, "the server failed: {text}");
            self.heard.lock().unwrap().push(format!("{headers:?}\n{text}"));
            Reply { status, headers, bytes }
        })
    }
}

/// What the server answered.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn etag(&self) -> &str {
        self.header("etag").expect("an ETag")
    }

    /// The body of an answer with this status; null when it has none.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.bytes.is_empty() { Value::Null } else { serde_json::from_slice(&self.bytes).unwrap() }
    }

    /// The error of a refusal with this status and code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let mut body = self.expect(status);
        assert_eq!(body["error"]["code"], code, "{}", self.text());
        assert_eq!(body.as_object().unwrap().len(), 1, "an error body holds nothing but the error");
        body["error"].take()
    }

    /// Everything that two equal refusals have in common: all but the request's own ids and the time.
    pub fn comparable(&self) -> (u16, Vec<(String, String)>, Bytes) {
        let own = ["x-request-id", "x-correlation-id", "date"];
        let mut headers: Vec<_> = self
            .headers
            .iter()
            .filter(|(name, _)| !own.contains(&name.as_str()))
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        headers.sort();
        (self.status, headers, self.bytes.clone())
    }
}
