//! Retention, and the leases that it waits for.
//!
//! Requests, the schedule and commands prune by the same loop: batch by batch, each exported first where that is asked
//! for, and never a batch that is not safe on the disk.

use std::time::Duration;

use courant_api::operations::{
    ConsumerView, JournalPrune, JournalPruned, JournalStatus, MAX_LEASE_DAYS, MAX_PRUNE, MAX_PRUNE_AGE_SECONDS,
    is_consumer_name,
};
use courant_api::{Cursor, ErrorCode, Permission, Resource, Timestamp};
use courant_store::{Caller, Change, Changed, Error, PruneRequest, PruneStep, Store, WhenBlocked};

use super::{Actor, require};
use crate::app::App;
use crate::clock;
use crate::export::Export;
use crate::http::ApiError;

/// How often a prune gives way to another one that began meanwhile.
const TURNS: usize = 10;
const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 24 * 3600 * SECOND_US;

/// Why a prune did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// A batch could not be exported, and so was not deleted.
    #[error("exporting events before they are deleted: {0}")]
    Export(#[from] std::io::Error),
}

impl From<PruneError> for ApiError {
    fn from(error: PruneError) -> Self {
        match error {
            PruneError::Store(error) => error.into(),
            PruneError::Export(_) => {
                let message = "events cannot be exported, and so are not deleted; the server's log says why";
                Self::new(ErrorCode::Unavailable, message).cause(error)
            }
        }
    }
}

/// A length of time in microseconds.
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// How the journal stands.
pub async fn journal_status(app: &App, caller: &Caller) -> Result<JournalStatus, ApiError> {
    require(app, caller, Permission::OperationsRead, &Resource::Tenant).await?;
    Ok(app.store.journal_status(caller.tenant_id, clock::now(), app.journal.retention.map(micros)).await?)
}

/// Deletes the oldest events of the tenant.
pub async fn journal_prune(app: &App, actor: Actor, body: JournalPrune) -> Result<Changed<JournalPruned>, ApiError> {
    require(app, &actor.caller, Permission::OperationsManage, &Resource::Tenant).await?;
    if !(0..=MAX_PRUNE_AGE_SECONDS).contains(&body.before_seconds) {
        let problem = format!("must be from 0 to {MAX_PRUNE_AGE_SECONDS}");
        return Err(ApiError::invalid_field("/beforeSeconds", &problem));
    }
    if !(1..=MAX_PRUNE).contains(&body.max_events) {
        return Err(ApiError::invalid_field("/maxEvents", &format!("must be from 1 to {MAX_PRUNE}")));
    }
    let request = PruneRequest {
        before: actor.change.now.plus_micros(-body.before_seconds * SECOND_US),
        max_events: body.max_events,
        dry_run: body.dry_run.unwrap_or(false),
        blocked: WhenBlocked::Refuse,
    };
    let mut export = Export::to_dir(app.journal.export_dir.as_deref());
    Ok(prune(&app.store, &actor.change, request, &mut export).await?)
}

/// Has retention wait for a consumer.
pub async fn consumer_put(
    app: &App,
    actor: Actor,
    name: String,
    cursor: Cursor,
    expires_at: Timestamp,
) -> Result<ConsumerView, ApiError> {
    require(app, &actor.caller, Permission::EventsRead, &Resource::Tenant).await?;
    if !is_consumer_name(&name) {
        return Err(ApiError::invalid(
            "a consumer's name has 1 to 100 letters, digits, `.`, `_`, `:` and `-`, begins with a letter or digit, and is not \
             announcer",
        ));
    }
    let now = actor.change.now;
    if expires_at <= now || expires_at > now.plus_micros(MAX_LEASE_DAYS * DAY_US) {
        let problem = format!("must lie ahead, by at most {MAX_LEASE_DAYS} days");
        return Err(ApiError::invalid_field("/expiresAt", &problem));
    }
    Ok(app.store.lease_put(actor.change, name, cursor, expires_at).await?)
}

/// Has retention wait for a consumer no longer.
pub async fn consumer_delete(app: &App, actor: Actor, name: String) -> Result<(), ApiError> {
    require(app, &actor.caller, Permission::EventsRead, &Resource::Tenant).await?;
    Ok(app.store.lease_delete(actor.change, name).await?)
}

/// Prunes to the end, after whatever prune was under way.
pub async fn prune(
    store: &Store,
    change: &Change,
    request: PruneRequest,
    export: &mut Export,
) -> Result<Changed<JournalPruned>, PruneError> {
    for _ in 0..TURNS {
        if !request.dry_run {
            export.check(change.tenant_id)?;
            finish(store, &Change::by_server(change.tenant_id, change.now), export).await?;
        }
        let change = Change { now: clock::now(), ..change.clone() };
        let planned = match store.prune_begin(change.clone(), request).await {
            Err(Error::Repeat(_)) => continue,
            Ok(Changed::Now(planned)) => planned,
            other => return Ok(other?),
        };
        if request.dry_run || planned.deleted == 0 {
            return Ok(Changed::Now(planned));
        }
        return Ok(Changed::Now(match finish(store, &change, export).await? {
            Some((pruned, true)) => pruned,
            // As it was planned; perhaps another process deleted the last batch.
            _ => planned,
        }));
    }
    Err(Error::Conflict("other prunes of this journal go on; repeat it later".into()).into())
}

/// Ends the prune that is under way, if one is: what it deleted, and whether a consumer stopped it early.
pub async fn finish(
    store: &Store,
    change: &Change,
    export: &mut Export,
) -> Result<Option<(JournalPruned, bool)>, PruneError> {
    loop {
        let upto = export.next_batch(store, change.tenant_id).await?;
        // Leases are judged by the time of each batch.
        let change = Change { now: clock::now(), ..change.clone() };
        match store.prune_step(change, upto).await? {
            PruneStep::Idle => return Ok(None),
            PruneStep::More => {}
            PruneStep::Ended { pruned, stopped } => {
                metrics::counter!("courant_journal_pruned_events_total").increment(pruned.deleted.unsigned_abs());
                return Ok(Some((pruned, stopped)));
            }
        }
    }
}
