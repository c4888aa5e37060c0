//! One request through one endpoint: credential, path, query, body, idempotency key, handler, answer.
//!
//! The order is part of the contract: nothing of a request is parsed before its credential is known to be good. It
//! must never decide what a caller may do; that is the handler's, through `ops`.

use std::future::Future;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::endpoint::Route;
use super::error::ApiError;
use super::reply::Reply;
use super::request_id::RequestMeta;
use super::shape::Shape;
use super::{body, header, path, query};

/// The application behind the routes: what handlers get, and what knows its callers.
pub trait Authenticate: Send + Sync + 'static {
    /// Who makes a request.
    type Caller: Clone + Send + Sync + 'static;

    /// Finds the caller of a bearer credential; none when the request has no usable one.
    fn authenticate(&self, credential: Option<&str>) -> impl Future<Output = Result<Self::Caller, ApiError>> + Send;

    /// Counts a request of this caller, or refuses it for being one too many.
    fn count(&self, caller: &Self::Caller) -> Result<(), ApiError>;

    /// Refuses a caller whose credential is not for this request, whatever they may do.
    fn confine(&self, caller: &Self::Caller, entry: &Entry<'_>) -> Result<(), ApiError>;
}

/// What is known of a request before anything of it is parsed.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its bearer credential.
    pub credential: Option<&'a str>,
    /// Its ids and its client.
    pub request: &'a RequestMeta,
    /// The route's path in the public form.
    pub template: &'static str,
    /// The request's own path, in the router's form.
    pub path: &'a str,
    /// Whether it has an `Idempotency-Key`.
    pub is_keyed: bool,
}

impl<'a> Entry<'a> {
    pub(super) fn of(
        credential: Option<&'a str>,
        request: &'a RequestMeta,
        route: &Route,
        path: &'a str,
        headers: &http::HeaderMap,
    ) -> Self {
        let is_keyed = headers.contains_key(header::IDEMPOTENCY_KEY);
        Self { credential, request, template: route.path, path, is_keyed }
    }
}

/// Who gets in: [`Signed`] or [`Open`].
pub trait Gate<A: Authenticate>: Send + 'static {
    /// What the handler learns of the caller.
    type Caller: Send + 'static;
    /// Whether a request without a credential gets in.
    const PUBLIC: bool;

    /// Lets the request in or refuses it.
    fn admit(app: &A, entry: &Entry<'_>) -> impl Future<Output = Result<Self::Caller, ApiError>> + Send;
}

/// Only authenticated callers get in, and only as often as they may.
#[derive(Debug)]
pub struct Signed;

impl<A: Authenticate> Gate<A> for Signed {
    type Caller = A::Caller;
    const PUBLIC: bool = false;

    async fn admit(app: &A, entry: &Entry<'_>) -> Result<A::Caller, ApiError> {
        let caller = app.authenticate(entry.credential).await?;
        app.count(&caller)?;
        app.confine(&caller, entry)?;
        Ok(caller)
    }
}

/// Everybody gets in, and nobody asks who it is.
#[derive(Debug)]
pub struct Open;

impl<A: Authenticate> Gate<A> for Open {
    type Caller = ();
    const PUBLIC: bool = true;

    async fn admit(_: &A, _: &Entry<'_>) -> Result<(), ApiError> {
        Ok(())
    }
}

/// What surrounds the input of a request.
pub struct Cx<A: Authenticate, G: Gate<A> = Signed> {
    /// The application.
    pub app: Arc<A>,
    /// Who asks.
    pub caller: G::Caller,
    /// Request id, correlation id and trace context.
    pub request: RequestMeta,
    /// The idempotency key, on routes that honour one and when one was sent.
    pub idempotency: Option<IdempotencyRequest>,
    /// The versions that `If-Match` names, on routes of versioned resources.
    pub if_match: Option<Vec<i64>>,
}

/// An idempotency key and what it was sent with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRequest {
    /// The caller's key: 1 to 200 visible ASCII characters.
    pub key: String,
    /// SHA-256 over method, path, query and body.
    pub fingerprint: [u8; 32],
}

/// The parsed parts of a request; `()` where a route has none.
#[derive(Debug)]
pub struct Input<P, Q, B> {
    /// Parameters of the path.
    pub path: P,
    /// Parameters of the query.
    pub query: Q,
    /// The body.
    pub body: B,
}

/// A request on its way to its handler.
pub struct Call<A> {
    pub(super) app: Arc<A>,
    pub(super) route: Arc<Route>,
    pub(super) meta: RequestMeta,
    pub(super) request: Request,
}

/// An `async fn(Cx, Input<P, Q, B>) -> Result<Reply<R>, ApiError>`. `T` only tells apart the types of its arguments.
pub trait Handler<A, T>: Send + Sync + 'static {
    #[doc(hidden)]
    fn shape() -> ShapeOf;
    #[doc(hidden)]
    fn call(&self, call: Call<A>) -> BoxFuture<'static, Result<Response, ApiError>>;
}

/// The schemas of a handler's types.
#[doc(hidden)]
pub struct ShapeOf(pub(super) Shape);

impl<A, H, F, G, P, Q, B, R> Handler<A, (G, P, Q, B, R)> for H
where
    A: Authenticate,
    H: Fn(Cx<A, G>, Input<P, Q, B>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Reply<R>, ApiError>> + Send + 'static,
    G: Gate<A>,
    P: DeserializeOwned + JsonSchema + Send + 'static,
    Q: DeserializeOwned + JsonSchema + Send + 'static,
    B: DeserializeOwned + JsonSchema + Send + 'static,
    R: Serialize + JsonSchema + Send + 'static,
{
    fn shape() -> ShapeOf {
        ShapeOf(Shape::of::<P, Q, B, R>(G::PUBLIC))
    }

    fn call(&self, call: Call<A>) -> BoxFuture<'static, Result<Response, ApiError>> {
        let handler = self.clone();
        Box::pin(async move {
            let Call { app, route, meta, request } = call;
            let (mut parts, stream) = request.into_parts();
            let credential = header::bearer(&parts.headers);
            let entry = Entry::of(credential, &meta, &route, parts.uri.path(), &parts.headers);
            let caller = G::admit(&app, &entry).await?;

            let path: P = path::read(&mut parts, route.missing).await?;
            let raw_query = parts.uri.query().unwrap_or_default();
            let pairs = query::pairs(raw_query)?;
            let query: Q = query::read(&route.shape.parameters, raw_query, &pairs)?;
            let text = body::read(&route, &parts.headers, stream).await?;
            let body: B = body::parse(&route, &text)?;

            let key = if route.idempotent { header::idempotency_key(&parts.headers)? } else { None };
            let idempotency = key.map(|key| IdempotencyRequest {
                key,
                fingerprint: fingerprint(&parts.method, parts.uri.path(), pairs, text.as_bytes()),
            });
            let if_match = if route.versioned { header::if_match(&parts.headers)? } else { None };

            let conditional = route.conditional().then(|| parts.headers.clone());
            let cx = Cx { app, caller, request: meta, idempotency, if_match };
            let reply = handler(cx, Input { path, query, body }).await?;
            route.assert_documented(&reply);
            let known = |version| conditional.is_some_and(|headers| header::knows(&headers, version));
            let reply = if reply.version().is_some_and(known) { reply.not_modified() } else { reply };
            reply.into_response(route.produces)
        })
    }
}

/// Equal for two requests that ask for the same: the order of unlike query parameters does not count.
fn fingerprint(method: &Method, path: &str, mut pairs: query::Pairs, body: &[u8]) -> [u8; 32] {
    pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut hash = Sha256::new();
    let texts = pairs.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    // Each part goes with its length, so that no two lists of parts run into the same bytes.
    for part in [method.as_str().as_bytes(), path.as_bytes()].into_iter().chain(texts).chain([body]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &Method, target: &str, body: &str) -> [u8; 32] {
        let (path, raw) = target.split_once('?').unwrap_or((target, ""));
        fingerprint(method, path, query::pairs(raw).unwrap(), body.as_bytes())
    }

    #[test]
    fn a_fingerprint_ignores_how_a_query_is_written() {
        let one = of(&Method::POST, "/a?x=1&y=%62&y=c", "{}");
        assert_eq!(one, of(&Method::POST, "/a?y=b&x=1&y=c", "{}"));
    }

    #[test]
    fn a_fingerprint_differs_with_what_is_asked() {
        let one = of(&Method::POST, "/a?x=1&y=2&y=3", "{}");
        for other in [
            of(&Method::PUT, "/a?x=1&y=2&y=3", "{}"),
            of(&Method::POST, "/b?x=1&y=2&y=3", "{}"),
            of(&Method::POST, "/a?x=1&y=3&y=2", "{}"),
            of(&Method::POST, "/a?x=1&y=2", "{}"),
            of(&Method::POST, "/a?x=1&y=2&y=3", "{} "),
        ] {
            assert_ne!(one, other);
        }
    }
}
