//! The routes: for each its line, its handler and its documentation, side by side.

mod access;
mod catalogue;
mod journal;
mod list;
mod notify;
pub mod operation;

use crate::app::App;
use crate::http::{Endpoint, Reply};
use courant_store::Changed;
use http::StatusCode;

/// Every route of the server.
pub fn endpoints() -> Vec<Endpoint<App>> {
    let mut all = Vec::new();
    all.extend(journal::endpoints());
    all.extend(catalogue::endpoints());
    all.extend(notify::endpoints());
    all.extend(access::endpoints());
    all.extend(operation::endpoints());
    all
}

/// What the main address serves when metrics have one of their own.
pub fn endpoints_without_metrics() -> Vec<Endpoint<App>> {
    endpoints().into_iter().filter(|e| e.path() != "/metrics").collect()
}

/// What the separate metrics address serves.
pub fn metrics_alone() -> Vec<Endpoint<App>> {
    operation::endpoints().into_iter().filter(|e| e.path() == "/metrics").collect()
}

/// The answer to a change, or the stored answer of its first run.
fn changed<R>(status: StatusCode, changed: Changed<R>) -> Reply<R> {
    match changed {
        Changed::Now(body) if status == StatusCode::CREATED => Reply::created(body),
        Changed::Now(body) => Reply::ok(body),
        Changed::Before(text) => Reply::text(status, text).replayed(),
    }
}

/// A reply with its resource's version.
fn versioned<R>(status: StatusCode, done: Changed<R>, version: impl Fn(&R) -> i64) -> Reply<R> {
    let version = match &done {
        Changed::Now(view) => Some(version(view)),
        Changed::Before(_) => None,
    };
    let reply = changed(status, done);
    match version {
        Some(version) => reply.etag(version),
        None => reply,
    }
}
