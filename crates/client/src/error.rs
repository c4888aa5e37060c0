//! What a call can fail with.
//!
//! Every text here may be logged or shown: it names method, path and cause, and must never hold a credential, a query
//! or a body.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use courant_api::ErrorCode;
use serde_json::{Map, Value};

/// Why a call gave no answer, or not the one that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server, or something before it, refused.
    #[error(transparent)]
    Api(Box<ApiError>),
    /// No answer came: the network failed, or time ran out.
    #[error(transparent)]
    Transport(TransportError),
    /// An answer came that this version does not understand.
    #[error("{request}: cannot read the answer: {reason}")]
    Decode {
        /// Method and path.
        request: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The call cannot be made: a bad address, key or argument.
    #[error("{0}")]
    Invalid(String),
}

/// A refusal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApiError {
    /// Method and path.
    pub request: String,
    /// The HTTP status.
    pub status: u16,
    /// The code, when this version knows it.
    pub code: Option<ErrorCode>,
    /// The code as it was sent; empty when the answer was not one of the API's.
    pub raw_code: String,
    /// For people.
    pub message: String,
    /// Facts of this refusal, by code.
    pub details: Map<String, Value>,
    /// Finds the request in the server's log.
    pub request_id: Option<String>,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, status, raw_code, message, .. } = self;
        write!(f, "{request}: {status}")?;
        if !raw_code.is_empty() {
            write!(f, " {raw_code}")?;
        }
        write!(f, ": {message}")?;
        match &self.request_id {
            Some(id) => write!(f, " (request {id})"),
            None => Ok(()),
        }
    }
}

impl Error for ApiError {}

/// A request that got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportError {
    /// Method and path.
    pub request: String,
    /// What happened, with its causes.
    pub reason: String,
    /// Whether time ran out.
    pub timeout: bool,
    /// Whether no connection was made, so that the server cannot have acted.
    pub connect: bool,
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.request, self.reason)
    }
}

impl Error for TransportError {}

impl ClientError {
    /// The refusal, if it is one.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }

    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        self.api().map(|error| error.status)
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<ErrorCode> {
        self.api().and_then(|error| error.code)
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.api().and_then(|error| error.retry_after)
    }

    /// 401: no credential, or one that no longer works.
    pub fn is_unauthenticated(&self) -> bool {
        self.status() == Some(401)
    }

    /// 403: the caller lacks the permission.
    pub fn is_permission_denied(&self) -> bool {
        self.status() == Some(403)
    }

    /// 404: no such thing in the caller's tenant.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// 409 or 412: the state of things does not allow it.
    pub fn is_conflict(&self) -> bool {
        matches!(self.status(), Some(409 | 412))
    }

    /// 400 or 422: the request itself is wrong.
    pub fn is_invalid(&self) -> bool {
        matches!(self.status(), Some(400 | 422))
    }

    /// 429: too many requests.
    pub fn is_rate_limited(&self) -> bool {
        self.status() == Some(429)
    }

    /// Whether asking again cannot help, so that a reader should end: 400, 401, 403, 404, 422, or a call that cannot be
    /// made at all.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Invalid(_)) || matches!(self.status(), Some(400 | 401 | 403 | 404 | 422))
    }
}

/// An error with its causes in one line; a cause whose text is already there is left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
