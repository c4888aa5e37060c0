//! A route and all that is said about it, in one value.
//!
//! Made by one constructor from the handler itself: its types give the schemas, the builder gives the rest. What can
//! only be wrong by mistake in the code (no summary, a struct that lets unknown fields pass) stops the start.

use axum::response::Response;
use courant_api::{ErrorCode, Permission};
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};

use super::body::DEFAULT_BODY_LIMIT;
use super::error::ApiError;
use super::exchange::{Authenticate, Call, Handler};
use super::path;
use super::reply::Reply;
use super::shape::Shape;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody, without a credential.
    Public,
    /// Every authenticated caller.
    Caller,
    /// Callers that hold these permissions on what the text names.
    On(&'static [Permission], &'static str),
    /// Callers that hold one of these permissions on what the text names.
    OneOf(&'static [Permission], &'static str),
}

type Run<A> = Box<dyn Fn(Call<A>) -> BoxFuture<'static, Result<Response, ApiError>> + Send + Sync>;

/// One route: path, handler, access and documentation.
pub struct Endpoint<A> {
    pub(super) route: Route,
    pub(super) run: Run<A>,
}

/// What is said about a route, apart from its handler.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) shape: Shape,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) tag: &'static str,
    pub(super) access: Option<Access>,
    pub(super) statuses: Vec<StatusCode>,
    pub(super) extra_errors: &'static [ErrorCode],
    pub(super) body_limit_bytes: usize,
    pub(super) body_optional: bool,
    pub(super) payload_faults: fn(&str) -> Option<ErrorCode>,
    pub(super) idempotent: bool,
    pub(super) versioned: bool,
    pub(super) etag: bool,
    pub(super) missing: &'static str,
    pub(super) produces: &'static str,
    /// Its requests become sockets, which tell of refusals by close codes.
    pub(super) socket: bool,
}

impl<A: Authenticate> Endpoint<A> {
    /// A route with any method; `path` is the public form: `/api/v1/tasks/{id}:claim`.
    pub fn new<T, H: Handler<A, T>>(method: Method, path: &'static str, handler: H) -> Self {
        let shape = H::shape().0;
        let status = if shape.reply.is_none() { StatusCode::NO_CONTENT } else { StatusCode::OK };
        let route = Route::new(method, path, status, shape);
        Self { route, run: Box::new(move |call| handler.call(call)) }
    }

    /// A `GET` route.
    pub fn get<T, H: Handler<A, T>>(path: &'static str, handler: H) -> Self {
        Self::new(Method::GET, path, handler)
    }

    /// A `POST` route; it honours `Idempotency-Key` unless told otherwise.
    pub fn post<T, H: Handler<A, T>>(path: &'static str, handler: H) -> Self {
        Self::new(Method::POST, path, handler)
    }

    /// A `PUT` route.
    pub fn put<T, H: Handler<A, T>>(path: &'static str, handler: H) -> Self {
        Self::new(Method::PUT, path, handler)
    }

    /// A `PATCH` route; it honours `If-Match` unless told otherwise.
    pub fn patch<T, H: Handler<A, T>>(path: &'static str, handler: H) -> Self {
        Self::new(Method::PATCH, path, handler)
    }

    /// A `DELETE` route; it honours `If-Match` unless told otherwise.
    pub fn delete<T, H: Handler<A, T>>(path: &'static str, handler: H) -> Self {
        Self::new(Method::DELETE, path, handler)
    }
}

impl<A> Endpoint<A> {
    /// What it does, in one line.
    pub fn summary(mut self, text: &'static str) -> Self {
        self.route.summary = text;
        self
    }

    /// What a caller must know beyond the summary.
    pub fn description(mut self, text: &'static str) -> Self {
        self.route.description = text;
        self
    }

    /// The chapter of the reference that it stands in.
    pub fn tag(mut self, tag: &'static str) -> Self {
        self.route.tag = tag;
        self
    }

    /// Who may use it. Public routes are public by their handler's [`Gate`](super::Gate) and need not say so.
    pub fn access(mut self, access: Access) -> Self {
        self.route.access = Some(access);
        self
    }

    /// The codes that its handler refuses with, beyond those that every such route has.
    pub fn errors(mut self, codes: &'static [ErrorCode]) -> Self {
        self.route.extra_errors = codes;
        self
    }

    /// The statuses of its successes, when not just `200` (or `204` without a body).
    pub fn success(mut self, statuses: &[StatusCode]) -> Self {
        self.route.statuses = statuses.to_vec();
        self
    }

    /// It answers `201`.
    pub fn created(self) -> Self {
        self.success(&[StatusCode::CREATED])
    }

    /// The largest body that it takes.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.route.body_limit_bytes = bytes;
        self
    }

    /// An absent body is read as `{}`.
    pub fn body_optional(mut self) -> Self {
        self.route.body_optional = true;
        self
    }

    /// Whether an absent body is read as `{}`.
    pub fn is_body_optional(&self) -> bool {
        self.route.body_optional
    }

    /// Another code than `invalid_body` for JSON that cannot be kept, by the JSON pointer of the first fault.
    pub fn payload_faults(mut self, code: fn(&str) -> Option<ErrorCode>) -> Self {
        self.route.payload_faults = code;
        self
    }

    /// It does not look at `Idempotency-Key`.
    pub fn without_idempotency_key(mut self) -> Self {
        self.route.idempotent = false;
        self
    }

    /// Whether it honours `If-Match`.
    pub fn versioned(mut self, versioned: bool) -> Self {
        self.route.versioned = versioned;
        self
    }

    /// Its answers carry the resource's version as `ETag`; those of a `PATCH` do anyway.
    pub fn etag(mut self) -> Self {
        self.route.etag = true;
        self
    }

    /// What a path names that holds an impossible id: "`what` not found".
    pub fn missing(mut self, what: &'static str) -> Self {
        self.route.missing = what;
        self
    }

    /// The media type of its answers, when it is not JSON.
    pub fn produces(mut self, media_type: &'static str) -> Self {
        self.route.produces = media_type;
        self
    }

    /// Its method.
    pub fn method(&self) -> &Method {
        &self.route.method
    }

    /// Its path in the public form.
    pub fn path(&self) -> &'static str {
        self.route.path
    }

    /// Who may use it; none only when the code forgot to say, which [`router`](super::router()) refuses.
    pub fn required_access(&self) -> Option<Access> {
        self.route.access
    }

    /// Whether its requests become sockets.
    pub fn is_socket(&self) -> bool {
        self.route.socket
    }

    /// A name made from method and path, unique in the document.
    pub fn operation_id(&self) -> String {
        self.route.operation_id()
    }

    /// Every code that it may refuse with, in the order of the error table.
    pub fn error_codes(&self) -> Vec<ErrorCode> {
        self.route.error_codes()
    }
}

impl Route {
    pub(super) fn new(method: Method, path: &'static str, status: StatusCode, shape: Shape) -> Self {
        Self {
            summary: "",
            description: "",
            tag: "",
            access: shape.public.then_some(Access::Public),
            statuses: vec![status],
            extra_errors: &[],
            body_limit_bytes: DEFAULT_BODY_LIMIT,
            body_optional: false,
            payload_faults: |_| None,
            idempotent: method == Method::POST && !shape.public,
            versioned: method == Method::PATCH || method == Method::DELETE,
            etag: method == Method::PATCH,
            missing: "resource",
            produces: "application/json",
            socket: false,
            method,
            path,
            shape,
        }
    }

    pub(super) fn operation_id(&self) -> String {
        let path = self.path.strip_prefix("/api/v1").unwrap_or(self.path);
        let mut id = self.method.as_str().to_ascii_lowercase();
        for word in path.split(|c: char| !c.is_ascii_alphanumeric() && c != '{').filter(|w| !w.is_empty()) {
            let (by, word) = word.strip_prefix('{').map_or(("", word), |name| ("By", name));
            let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
            id.extend([by, &first.to_ascii_uppercase(), rest]);
        }
        id
    }

    /// Whether it asks who the caller is.
    fn admits_callers(&self) -> bool {
        self.is_guarded() || self.access == Some(Access::Caller)
    }

    /// Whether it asks for a permission.
    fn is_guarded(&self) -> bool {
        matches!(self.access, Some(Access::On(..) | Access::OneOf(..)))
    }

    pub(super) fn takes_body(&self) -> bool {
        self.shape.body.is_some()
    }

    /// Whether it answers `304` to those who have the current version.
    pub(super) fn conditional(&self) -> bool {
        self.etag && self.method == Method::GET
    }

    pub(super) fn error_codes(&self) -> Vec<ErrorCode> {
        use ErrorCode as E;
        let has = |code| match code {
            E::InvalidRequest | E::Internal | E::Unavailable => true,
            E::Unauthenticated | E::RateLimited => !self.shape.public,
            E::PermissionDenied => self.is_guarded() && !self.socket,
            E::PurposeRefRequired | E::OutsidePurpose => self.admits_callers() && !self.socket,
            E::AuthorizationUnavailable => self.is_guarded(),
            E::NotFound => path::parameters(self.path).next().is_some(),
            E::IdempotencyConflict | E::IdempotencyInFlight => self.idempotent,
            E::OutcomeUnknown => self.method != Method::GET,
            E::VersionConflict => self.versioned,
            E::RequestTimeout | E::PayloadTooLarge | E::UnsupportedMediaType | E::InvalidBody => self.takes_body(),
            _ => false,
        };
        E::ALL.iter().copied().filter(|code| has(*code) || self.extra_errors.contains(code)).collect()
    }

    /// What the code forgot, which no request should have to find out.
    pub(super) fn mistakes(&self) -> Vec<String> {
        let mut fields = self.shape.path_fields();
        fields.sort_unstable();
        let mut names: Vec<_> = path::parameters(self.path).collect();
        names.sort_unstable();
        let mut mistakes: Vec<_> =
            self.shape.leaks().into_iter().map(|part| format!("{part} lets unknown fields pass")).collect();
        let mut note = |wrong: bool, what: &str| mistakes.extend(wrong.then(|| what.to_owned()));
        note(self.summary.is_empty(), "it has no summary");
        note(self.tag.is_empty(), "it has no tag");
        note(self.access.is_none(), "it does not say who may use it");
        note((self.access == Some(Access::Public)) != self.shape.public, "its access and its handler's gate differ");
        note(fields != names, "its path and its handler's path fields differ");
        mistakes
    }

    /// In development an answer that the documentation lacks is a fault; in production it is only an answer.
    pub(super) fn assert_documented<R>(&self, reply: &Reply<R>) {
        let (status, has_etag) = (reply.status(), reply.version().is_some());
        debug_assert!(
            self.etag || !has_etag,
            "{} {} answered an ETag, which its documentation lacks",
            self.method,
            self.path
        );
        debug_assert!(
            self.statuses.contains(&status),
            "{} {} answered {status}, which its documentation lacks",
            self.method,
            self.path,
        );
    }

    pub(super) fn assert_documented_error(&self, code: ErrorCode) {
        debug_assert!(
            self.error_codes().contains(&code),
            "{} {} refused with {code:?}, which its documentation lacks",
            self.method,
            self.path,
        );
    }
}
