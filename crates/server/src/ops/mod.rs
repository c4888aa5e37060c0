//! One function a use case: authorise, check, one store call, wake.
//!
//! Routes, commands and workers all call these; none of them has rules of its own.

pub mod access;
pub mod approvals;
pub mod catalogue;
pub mod deployments;
mod error;
mod gate;
pub mod identity;
pub mod journal;
pub mod notify;
pub mod progress;
pub mod resources;
pub mod retention;
pub mod roles;
pub mod skills;
pub mod stream;
pub mod tasks;
mod text;

use gate::{decided, found_any, require, require_any, require_one_of};
use journal::place;

use courant_store::{Caller, Change, Idempotency};

use crate::app::App;
use crate::clock;
use crate::http::Cx;

/// Somebody who changes something, and the request they do it by.
#[derive(Clone, Debug)]
pub struct Actor {
    /// Who.
    pub caller: Caller,
    /// The change as the store takes it.
    pub change: Change,
}

impl Actor {
    /// The caller of a request.
    pub fn of(cx: &Cx<App>) -> Self {
        let change = Change {
            tenant_id: cx.caller.tenant_id,
            actor_id: Some(cx.caller.principal_id),
            rights: cx.caller.rights.clone(),
            now: clock::now(),
            request_id: Some(cx.request.request_id.clone()),
            correlation_id: Some(cx.request.correlation_id.clone()),
            idempotency: cx
                .idempotency
                .as_ref()
                .map(|i| Idempotency { key: i.key.clone(), fingerprint: i.fingerprint }),
            if_match: cx.if_match.clone(),
            base_url: cx.app.base_url.clone(),
        };
        Self { caller: cx.caller.clone(), change }
    }
}
