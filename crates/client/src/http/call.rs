//! One call: a request, its repeats, and the reading of its answer.
//!
//! A call is repeated only when a second run cannot do anything twice: it reads, or it carries an idempotency key or
//! event ids. It must never put a query, a body or a credential into an error.

use std::time::Duration;

use courant_api::ErrorCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, IF_MATCH, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::sleep;
use tracing::debug;
use uuid::Uuid;

use super::{Client, Credential};
use crate::backoff::Backoff;
use crate::error::{ApiError, ClientError, TransportError, chain};

/// Most bytes of a refusal that are read.
const REFUSAL_BYTES: usize = 64 * 1024;
/// A server that asks for a longer pause gets its refusal handed to the caller instead.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);

/// Query parameters, in order and repeatable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn add(&mut self, name: &str, value: &(impl ToString + ?Sized)) {
        self.0.push((name.to_owned(), value.to_string()));
    }

    pub(crate) fn add_some(&mut self, name: &str, value: Option<&impl ToString>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}

/// A request that is ready to be sent, more than once if need be.
pub(crate) struct Call {
    method: Method,
    path: String,
    pub(crate) query: Query,
    body: Option<Vec<u8>>,
    credential: Option<Credential>,
    if_match: Option<i64>,
    idempotency_key: Option<Uuid>,
    repeatable: bool,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        let repeatable = method == Method::GET;
        Self {
            method,
            path: path.into(),
            query: Query::default(),
            body: None,
            credential: None,
            if_match: None,
            idempotency_key: None,
            repeatable,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// A `POST` under an idempotency key.
    pub(crate) fn post(path: impl Into<String>) -> Self {
        let mut call = Self::new(Method::POST, path).repeatable();
        call.idempotency_key = Some(new_id());
        call
    }

    pub(crate) fn body<B: Serialize + ?Sized>(mut self, body: &B) -> Result<Self, ClientError> {
        let bytes =
            serde_json::to_vec(body).map_err(|e| ClientError::Invalid(format!("cannot write the body: {e}")))?;
        self.body = Some(bytes);
        Ok(self)
    }

    pub(crate) fn credential(mut self, credential: Credential) -> Self {
        self.credential = Some(credential);
        self
    }

    /// Only if the resource still has this version.
    pub(crate) fn if_version(mut self, version: Option<i64>) -> Self {
        self.if_match = version;
        self
    }

    pub(crate) fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }
}

/// A new id: for idempotency keys, and for events whose producer named none.
#[expect(clippy::disallowed_methods, reason = "the client's one maker of ids; a client has no clock to be handed")]
pub(crate) fn new_id() -> Uuid {
    Uuid::now_v7()
}

impl Client {
    /// Sends a call whose answer's body does not matter.
    pub(crate) async fn send_only(&self, call: Call) -> Result<(), ClientError> {
        self.send::<IgnoredAny>(call).await.map(|_| ())
    }

    /// Sends a call, again while that is safe and may help, and reads its answer.
    pub(crate) async fn send<T: DeserializeOwned>(&self, call: Call) -> Result<T, ClientError> {
        let request = format!("{} {}", call.method, call.path);
        let retry = self.retry();
        let mut backoff = Backoff::new(retry.initial, retry.max);
        let mut left = if call.repeatable { retry.times } else { 0 };
        let mut repeated = false;
        loop {
            let failure = match self.send_once(&call, &request).await {
                Ok(bytes) => return decode(&bytes, request),
                Err(failure) => failure,
            };
            let asked = failure.retry_after().unwrap_or_default();
            if left == 0 || !may_pass(&failure, repeated) || asked > LONGEST_RETRY_AFTER {
                return Err(failure);
            }
            (left, repeated) = (left - 1, true);
            let pause = backoff.pause().max(asked);
            debug!(error = %failure, ?pause, "the request failed and is sent again");
            sleep(pause).await;
        }
    }

    async fn send_once(&self, call: &Call, request: &str) -> Result<Vec<u8>, ClientError> {
        let failed = |e: reqwest::Error| transport(request, e);
        let credential = call.credential.as_ref().or(self.inner.credential.as_ref());
        let mut builder = self.inner.http.request(call.method.clone(), self.inner.url.join(&call.path, &call.query));
        if let Some(credential) = credential {
            builder = builder.header(AUTHORIZATION, credential.header.clone());
        }
        if let Some(version) = call.if_match {
            builder = builder.header(IF_MATCH, format!("\"{version}\""));
        }
        if let Some(key) = call.idempotency_key {
            builder = builder.header("Idempotency-Key", key.to_string());
        }
        if let Some(body) = &call.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let response = builder.send().await.map_err(failed)?;
        if response.status().is_success() {
            return Ok(response.bytes().await.map_err(failed)?.into());
        }
        let mut error = refusal(request, response).await;
        if let Some(Credential { secret, .. }) = credential {
            error.message = error.message.replace(secret.as_str(), "[credential]");
        }
        Err(ClientError::Api(Box::new(error)))
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8], request: String) -> Result<T, ClientError> {
    let bytes = if bytes.is_empty() { b"null" } else { bytes };
    serde_json::from_slice(bytes).map_err(|e| {
        // The parser's own text may quote the body, which may hold a secret.
        let what = if e.is_data() { "it has another shape" } else { "it is not JSON" };
        ClientError::Decode { request, reason: format!("{what} (line {}, column {})", e.line(), e.column()) }
    })
}

fn transport(request: &str, error: reqwest::Error) -> ClientError {
    let error = error.without_url();
    ClientError::Transport(TransportError {
        request: request.to_owned(),
        reason: chain(&error),
        timeout: error.is_timeout(),
        connect: error.is_connect(),
    })
}

/// Whether the same request may succeed a moment later.
fn may_pass(failure: &ClientError, repeated: bool) -> bool {
    match failure {
        ClientError::Transport(_) => true,
        // A repeat can overtake the attempt whose answer was lost.
        ClientError::Api(e) if e.code == Some(ErrorCode::IdempotencyInFlight) => repeated,
        ClientError::Api(e) => matches!(e.status, 502..=504),
        _ => false,
    }
}

/// The error envelope, read leniently: a code that this version does not know is still a refusal.
#[derive(Deserialize)]
struct Envelope {
    error: Detail,
}

#[derive(Deserialize)]
struct Detail {
    code: String,
    message: String,
    #[serde(default)]
    details: Map<String, Value>,
}

async fn refusal(request: &str, response: Response) -> ApiError {
    let status = response.status();
    let header = |headers: &HeaderMap, name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let request_id = header(response.headers(), "x-request-id");
    let retry_after = header(response.headers(), RETRY_AFTER.as_str())
        .and_then(|text| text.trim().parse().ok())
        .map(Duration::from_secs);
    let envelope = serde_json::from_slice::<Envelope>(&beginning(response).await);
    let (raw_code, message, details) = match envelope {
        Ok(Envelope { error: Detail { code, message, details } }) => (code, message, details),
        Err(_) => (String::new(), foreign(status), Map::new()),
    };
    ApiError {
        request: request.to_owned(),
        status: status.as_u16(),
        code: serde_json::from_value(Value::from(raw_code.as_str())).ok(),
        raw_code,
        message,
        details,
        request_id,
        retry_after,
    }
}

/// What to say of an answer that is not the API's.
fn foreign(status: StatusCode) -> String {
    if status.is_redirection() {
        return "the answer leads to another address; give the client that one".to_owned();
    }
    let reason = status.canonical_reason().unwrap_or("refused");
    format!("{reason}; the answer is not one of the API's, is this the server's address?")
}

/// As much of a refusal's body as matters; a body that breaks off is as good as none.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > REFUSAL_BYTES {
            break;
        }
    }
    bytes
}
