//! What happens around every request: its log span, its metrics, the net under a panic, and the headers that every
//! response has.
//!
//! Routes are named in the public form, and what matched none shares one name, so that callers cannot grow the metrics.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use http::{HeaderValue, Method, header};
use tracing::Instrument as _;

use super::error::ApiError;
use super::request_id::RequestMeta;

/// The route label of requests that matched none.
pub(super) const UNMATCHED: &str = "unmatched";

/// The policy of answers that are no pages: a browser that shows one loads and runs nothing.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// Answers a request: whatever comes of it becomes one response, one log line and one count.
pub(super) async fn observe(
    meta: RequestMeta,
    method: &'static str,
    route: &'static str,
    answer: impl Future<Output = Result<Response, ApiError>>,
) -> Response {
    let span = tracing::info_span!(
        "request",
        request_id = meta.request_id,
        method,
        route,
        client = meta.client.map(tracing::field::display),
        status = tracing::field::Empty,
        latency_ms = tracing::field::Empty,
    );
    let started = Instant::now();
    // A handler owns its input, so nothing half-changed outlives a panic but what its own locks would tell.
    let outcome = AssertUnwindSafe(answer).catch_unwind().instrument(span.clone()).await;

    let entered = span.enter();
    let mut response = match outcome {
        Ok(answer) => answer.into_response(),
        Err(panic) => ApiError::internal(format!("a handler panicked: {}", words(panic.as_ref()))).into_response(),
    };
    let status = response.status().as_u16();
    let elapsed = started.elapsed();
    span.record("status", status).record("latency_ms", elapsed.as_secs_f64() * 1000.0);
    tracing::info!("request answered");
    drop(entered);

    let status = status.to_string();
    metrics::counter!("courant_http_requests_total", "method" => method, "route" => route, "status" => status)
        .increment(1);
    metrics::histogram!("courant_http_request_seconds", "method" => method, "route" => route).record(elapsed);

    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NOTHING));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    meta.echo(headers);
    response
}

/// A method as a label: one of a closed list, since a request may invent its own.
pub(super) fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}
