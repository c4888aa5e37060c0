//! The HTTP client: who it speaks for, how it sends, when it repeats.
//!
//! It must never send the key anywhere but to the configured address (so it follows no redirect), and never repeat a
//! request that the server could carry out twice.

mod call;
mod url;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{ClientError, chain};
use crate::{EventsQuery, Follow};

pub(crate) use call::{Call, Query, new_id};
pub use url::ClientUrl;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A long poll is held up to 30 seconds.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(40);

/// A client of one server. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    url: ClientUrl,
    credential: Option<Credential>,
    retry: Retry,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    pub(crate) times: u32,
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
}

/// A bearer credential: its header is marked as sensitive, and it has no `Debug`.
pub(crate) struct Credential {
    secret: String,
    header: HeaderValue,
}

impl Credential {
    pub(crate) fn new(secret: &str) -> Result<Self, ClientError> {
        let secret = secret.trim();
        let mut header = HeaderValue::from_str(&format!("Bearer {secret}"))
            .ok()
            .filter(|_| !secret.is_empty())
            .ok_or_else(|| ClientError::Invalid("the API key is empty or holds characters that no key has".into()))?;
        header.set_sensitive(true);
        Ok(Self { secret: secret.to_owned(), header })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.inner.url.to_string()).finish_non_exhaustive()
    }
}

impl Client {
    /// Starts a client of the server at `url`: its root, with or without `/api/v1`.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            key: None,
            retry: Retry { times: 3, initial: Duration::from_millis(250), max: Duration::from_secs(30) },
        }
    }

    /// The server's address.
    pub fn url(&self) -> &ClientUrl {
        &self.inner.url
    }

    /// Any request: for routes that have no method here. `path` is relative to `/api/v1` and starts with a slash; what
    /// is not plain in it must be percent-encoded. `T` may be [`Value`], or `()` for an answer without a body.
    ///
    /// A `GET` is repeated on failures that may pass; so is a `POST`, under an idempotency key, except to `/events`.
    pub async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<T, ClientError> {
        if !path.starts_with('/') || path.contains(['?', '#']) {
            return Err(ClientError::Invalid(format!("not a path that starts with a slash: {path:?}")));
        }
        let mut call = match method {
            Method::POST if path != "/events" => Call::post(path),
            method => Call::new(method, path),
        };
        for (name, value) in query {
            call.query.add(name, value);
        }
        if let Some(body) = body {
            call = call.body(body)?;
        }
        self.send(call).await
    }

    /// Follows the journal live: reads on from `query.cursor` (absent: from the first event, or the newest
    /// `query.tail`), for as long as it is asked.
    pub fn follow(&self, query: EventsQuery) -> Follow {
        Follow::new(self.clone(), query)
    }

    pub(crate) fn retry(&self) -> Retry {
        self.inner.retry
    }
}

/// Sets up a [`Client`].
pub struct ClientBuilder {
    url: String,
    key: Option<String>,
    retry: Retry,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the key nor an address that nobody has checked for credentials yet.
        f.debug_struct("ClientBuilder").field("retry", &self.retry).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// The API key, or a JWT.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How often a request that may be repeated is: 3 times when this is not called. 0: never.
    pub fn retries(mut self, times: u32) -> Self {
        self.retry.times = times;
        self
    }

    /// The pause before the first repeat, which doubles with each further one, and the longest pause. 250 ms and 30 s
    /// when this is not called.
    pub fn retry_pause(mut self, initial: Duration, max: Duration) -> Self {
        (self.retry.initial, self.retry.max) = (initial, max);
        self
    }

    /// The client. Nothing is sent yet.
    pub fn build(self) -> Result<Client, ClientError> {
        let url: ClientUrl = self.url.parse()?;
        let credential = self.key.as_deref().map(Credential::new).transpose()?;
        #[expect(clippy::disallowed_methods, reason = "the SDK's own client; the server's requests leave elsewhere")]
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("courant-client/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TOTAL_TIMEOUT);
        if !url.is_https() {
            // No redirect is followed, so TLS is never used: a machine without root certificates is good enough.
            http = http.tls_certs_only([]);
        }
        if url.is_loopback() {
            // A proxy's loopback is another machine.
            http = http.no_proxy();
        }
        let http = http
            .build()
            .map_err(|e| ClientError::Invalid(format!("cannot set up HTTP: {}", chain(&e.without_url()))))?;
        Ok(Client { inner: Arc::new(Inner { http, url, credential, retry: self.retry }) })
    }
}

/// Which page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// Most rows: 1 to 200; 50 when absent.
    pub limit: Option<u32>,
    /// The `nextCursor` of the page before; absent: the first page.
    pub cursor: Option<String>,
}

impl PageQuery {
    pub(crate) fn add_to(&self, query: &mut Query) {
        query.add_some("limit", self.limit.as_ref());
        query.add_some("cursor", self.cursor.as_ref());
    }
}
