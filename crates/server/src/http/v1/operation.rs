//! `/openapi.json`, `/docs`, `/healthz`, `/readyz`, `/metrics`

use std::sync::OnceLock;

use courant_api::ErrorCode;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::http::{ApiError, Cx, Endpoint, Input, Open, Reply, openapi, reference};
use crate::metrics;

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    vec![
        Endpoint::get("/api/v1/openapi.json", document)
            .tag("operation")
            .summary("This description of the API, as OpenAPI 3.1"),
        Endpoint::get("/docs", read_reference)
            .tag("operation")
            .summary("This description of the API, as a page to read")
            .produces("text/html; charset=utf-8"),
        Endpoint::get("/healthz", healthy).tag("operation").summary("Whether the process runs"),
        Endpoint::get("/readyz", ready)
            .tag("operation")
            .summary("Whether the database answers and the workers work")
            .errors(&[ErrorCode::Unavailable]),
        Endpoint::get("/metrics", measures)
            .tag("operation")
            .summary("Metrics in the Prometheus text format")
            .produces("text/plain; version=0.0.4; charset=utf-8"),
    ]
}

/// The text of the OpenAPI document.
pub fn document_text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| format!("{:#}\n", openapi::document(&super::endpoints())))
}

async fn document(_: Cx<App, Open>, _: Input<(), (), ()>) -> Result<Reply<serde_json::Value>, ApiError> {
    Ok(Reply::text(StatusCode::OK, document_text().to_owned()))
}

/// The page is made when it is first asked for, and kept.
async fn read_reference(_: Cx<App, Open>, _: Input<(), (), ()>) -> Result<Reply<String>, ApiError> {
    static PAGE: OnceLock<Result<String, String>> = OnceLock::new();
    let made = || reference::page(&openapi::document(&super::endpoints())).map_err(|error| error.to_string());
    let page = PAGE.get_or_init(made).as_ref().map_err(|error| ApiError::internal(error.as_str()))?;
    Ok(Reply::text(StatusCode::OK, page.clone()).policy(reference::policy()))
}

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
}

async fn healthy(_: Cx<App, Open>, _: Input<(), (), ()>) -> Result<Reply<Health>, ApiError> {
    Ok(Reply::ok(Health { status: "ok" }))
}

async fn ready(cx: Cx<App, Open>, _: Input<(), (), ()>) -> Result<Reply<Health>, ApiError> {
    if cx.app.stop.is_cancelled() {
        return Err(ApiError::new(ErrorCode::Unavailable, "the server is stopping"));
    }
    cx.app
        .store
        .ping()
        .await
        .map_err(|e| ApiError::new(ErrorCode::Unavailable, "the database does not answer").cause(e))?;
    let failing = cx.app.health.failing();
    if !failing.is_empty() {
        return Err(ApiError::new(ErrorCode::Unavailable, format!("not working: {}", failing.join(", "))));
    }
    Ok(Reply::ok(Health { status: "ok" }))
}

async fn measures(_: Cx<App, Open>, _: Input<(), (), ()>) -> Result<Reply<String>, ApiError> {
    Ok(Reply::text(StatusCode::OK, metrics::render()))
}
