//! Refusals: the one error type of the HTTP layer and its one way to a response.
//!
//! The body holds nothing but code, message and details, so that two equal refusals are equal byte for byte. A cause is
//! logged once, here, under the request id of the enclosing span, and never sent.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use courant_api::ErrorCode;
use courant_api::error::{ErrorBody, ErrorDetail};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};

use super::throttle::whole_seconds;

type Cause = Box<dyn Error + Send + Sync>;

/// A request that was refused or failed.
pub struct ApiError(Box<Inner>);

struct Inner {
    code: ErrorCode,
    message: Cow<'static, str>,
    details: Map<String, Value>,
    retry_after_seconds: Option<u32>,
    cause: Option<Cause>,
}

impl ApiError {
    /// A refusal with this code, and a message for people.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let retry_after_seconds = matches!(code.status(), 429 | 503).then_some(1);
        let message = message.into();
        Self(Box::new(Inner { code, message, details: Map::new(), retry_after_seconds, cause: None }))
    }

    /// `400 invalid_request`: a parameter, field or header that the message names.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// `400 invalid_request` about a part of the body: `/events/3/type: …`.
    pub fn invalid_field(pointer: &str, problem: &str) -> Self {
        let place = if pointer.is_empty() { "the body" } else { pointer };
        Self::invalid(format!("{place}: {problem}")).detail("pointer", pointer)
    }

    /// `400 invalid_request` about a query parameter.
    pub fn invalid_parameter(name: &str, problem: &str) -> Self {
        Self::invalid(format!("query parameter {name:?} {problem}")).detail("parameter", name)
    }

    /// `401 unauthenticated`, the same for every reason.
    pub fn unauthenticated() -> Self {
        Self::new(ErrorCode::Unauthenticated, "a valid bearer credential is required")
    }

    /// `503 authorization_unavailable`: nobody has decided, so nobody passes.
    pub fn authorization_unavailable(cause: impl Into<Cause>) -> Self {
        Self::new(ErrorCode::AuthorizationUnavailable, "the policy service has not decided; it is safe to repeat")
            .cause(cause)
    }

    /// `429 rate_limited`; a repeat before `wait` is over is refused again.
    pub fn rate_limited(wait: Duration) -> Self {
        Self::new(ErrorCode::RateLimited, "too many requests; Retry-After says when to come back")
            .retry_after(whole_seconds(wait))
    }

    /// `404 not_found`: "`what` not found".
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("{what} not found"))
    }

    /// `500 internal`; the cause goes to the log only.
    pub fn internal(cause: impl Into<Cause>) -> Self {
        Self::new(ErrorCode::Internal, "the server failed; X-Request-ID finds the cause in its log").cause(cause)
    }

    /// `503 unavailable`; the cause goes to the log only.
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::new(ErrorCode::Unavailable, "the server cannot take the request now; it is safe to repeat").cause(cause)
    }

    /// Adds a fact to the details.
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.details.insert(key.to_owned(), value.into());
        self
    }

    /// Says when to come back.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after_seconds = Some(seconds);
        self
    }

    /// Notes what lies behind it, for the log.
    pub fn cause(mut self, cause: impl Into<Cause>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The text for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The facts sent along.
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }

    pub(super) fn log(&self) {
        let Some(cause) = &self.0.cause else { return };
        let code = self.0.code.as_str();
        let cause = chain(cause.as_ref());
        if self.0.code.status() >= 500 {
            tracing::error!(code, cause, "request failed");
        } else {
            tracing::debug!(code, cause, "request refused");
        }
    }
}

/// A cause with everything that it names as its own source.
fn chain(cause: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(cause), |&e| e.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let Inner { code, message, details, retry_after_seconds, .. } = *self.0;
        let body = ErrorBody { error: ErrorDetail { code, message: message.into_owned(), details } };
        // Strings and a map of values always serialise; an empty body would still carry the status.
        let mut response = Response::new(Body::from(serde_json::to_vec(&body).unwrap_or_default()));
        *response.status_mut() = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if code == ErrorCode::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl fmt::Debug for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiError")
            .field("code", &self.0.code)
            .field("message", &self.0.message)
            .field("details", &self.0.details)
            .field("cause", &self.0.cause)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for ApiError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.cause.as_ref().map(|c| c.as_ref() as &(dyn Error + 'static))
    }
}
