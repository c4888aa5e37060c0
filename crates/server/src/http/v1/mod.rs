//! The routes: for each its line, its handler and its documentation, side by side.

mod access;
mod approvals;
mod catalogue;
mod deployments;
mod identity;
mod journal;
mod journal_socket;
mod list;
mod notify;
pub mod operation;
mod progress;
mod resources;
mod retention;
mod roles;
mod skills;
mod tasks;

use crate::app::App;
use crate::http::{Endpoint, Reply};
use courant_store::Changed;
use http::StatusCode;

/// Every route of the server.
pub fn endpoints() -> Vec<Endpoint<App>> {
    let mut all = Vec::new();
    all.extend(journal::endpoints());
    all.push(journal_socket::endpoint());
    all.extend(catalogue::endpoints());
    all.extend(notify::endpoints());
    all.extend(access::endpoints());
    all.extend(identity::endpoints());
    all.extend(roles::endpoints());
    all.extend(tasks::endpoints());
    all.extend(progress::endpoints());
    all.extend(approvals::endpoints());
    all.extend(resources::endpoints());
    all.extend(skills::endpoints());
    all.extend(deployments::endpoints());
    all.extend(retention::endpoints());
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
        Changed::Before(text) => kept_version(text),
    };
    let reply = changed(status, done);
    match version {
        Some(version) => reply.etag(version),
        None => reply,
    }
}

/// The version in a stored answer, so that a replay has the `ETag` of the first.
fn kept_version(text: &str) -> Option<i64> {
    serde_json::from_str::<serde_json::Value>(text).ok()?.get("version")?.as_i64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_has_the_etag_of_the_first_answer() {
        let answer = |changed: Changed<serde_json::Value>| {
            let version = |view: &serde_json::Value| view["version"].as_i64().unwrap();
            versioned(StatusCode::CREATED, changed, version).into_response("application/json").unwrap()
        };
        let view = serde_json::json!({ "id": 1, "version": 4 });
        let first = answer(Changed::Now(view.clone()));
        let replay = answer(Changed::Before(view.to_string()));
        assert_eq!(replay.headers().get("etag").unwrap(), "\"4\"");
        assert_eq!(first.headers().get("etag"), replay.headers().get("etag"));
    }
}
