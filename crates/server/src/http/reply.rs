//! What a handler answers when all went well.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;

use super::error::ApiError;

pub(super) const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A successful answer with a body of type `R`.
#[derive(Debug)]
pub struct Reply<R> {
    status: StatusCode,
    version: Option<i64>,
    replayed: bool,
    policy: Option<&'static str>,
    content: Content<R>,
}

#[derive(Debug)]
enum Content<R> {
    Value(R),
    Text(String),
    Empty,
}

impl<R> Reply<R> {
    fn new(status: StatusCode, content: Content<R>) -> Self {
        Self { status, version: None, replayed: false, policy: None, content }
    }

    /// `200` with this body.
    pub fn ok(body: R) -> Self {
        Self::new(StatusCode::OK, Content::Value(body))
    }

    /// `201` with this body.
    pub fn created(body: R) -> Self {
        Self::new(StatusCode::CREATED, Content::Value(body))
    }

    /// A body that is text already: JSON of an `R`, or what the endpoint says it produces.
    /// A `204` has none, whatever the text.
    pub fn text(status: StatusCode, text: String) -> Self {
        let content = if status == StatusCode::NO_CONTENT { Content::Empty } else { Content::Text(text) };
        Self::new(status, content)
    }

    /// The version of the resource in the body, sent as its `ETag`.
    pub fn etag(mut self, version: i64) -> Self {
        self.version = Some(version);
        self
    }

    /// What a browser may do with it, when that is more than nothing: its `Content-Security-Policy`.
    pub fn policy(mut self, policy: &'static str) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Marks it as the replay of an earlier answer under the same idempotency key.
    pub fn replayed(mut self) -> Self {
        self.replayed = true;
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn version(&self) -> Option<i64> {
        self.version
    }

    /// The same as `304` without a body, for a client that has this version.
    pub(super) fn not_modified(self) -> Self {
        Self { status: StatusCode::NOT_MODIFIED, content: Content::Empty, ..self }
    }
}

impl Reply<()> {
    /// `204` without a body.
    pub fn no_content() -> Self {
        Self::new(StatusCode::NO_CONTENT, Content::Empty)
    }
}

impl<R: Serialize> Reply<R> {
    pub(super) fn into_response(self, media_type: &'static str) -> Result<Response, ApiError> {
        let body = match self.content {
            Content::Value(value) => Some(Body::from(serde_json::to_vec(&value).map_err(ApiError::internal)?)),
            Content::Text(text) => Some(Body::from(text)),
            Content::Empty => None,
        };
        let has_body = body.is_some();
        let mut response = Response::new(body.unwrap_or_default());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if has_body {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        if let Some(version) = self.version {
            let tag = HeaderValue::from_str(&format!("\"{version}\"")).map_err(ApiError::internal)?;
            headers.insert(header::ETAG, tag);
        }
        if let Some(policy) = self.policy {
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        }
        if self.replayed {
            headers.insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
        }
        Ok(response)
    }
}
