//! Reading the journal and appending to it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use courant_api::event::{
    EventAppended, EventPage, EventsAppend, EventsAppended, MAX_APPEND, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH,
};
use courant_api::{Cursor, ErrorCode, Event, EventAppend, EventId, Permission, Resource, WorkspaceId, events};
use courant_core::catalogue::SchemaFault;
use courant_core::payload;
use courant_store::{Caller, EventDraft, EventQuery, Start};
use tokio::time::{Instant, sleep, sleep_until};

use super::error::fault_list;
use super::{Actor, require, text};
use crate::app::App;
use crate::http::ApiError;
use crate::live::{self, Reader};

/// Longest wait of an append for its events to be readable.
const READABLE: Duration = Duration::from_secs(10);
const MAX_FAULTS: usize = 20;

pub(super) fn place(workspace: Option<WorkspaceId>) -> Resource {
    workspace.map_or(Resource::Tenant, Resource::Workspace)
}

/// A page of the journal; an empty one is held open up to `wait`, and only as long as the caller may read it.
pub async fn events_read(
    app: &Arc<App>,
    caller: &Caller,
    query: EventQuery,
    wait: Duration,
) -> Result<EventPage, ApiError> {
    let resource = place(query.workspace_id);
    require(app, caller, Permission::EventsRead, &resource).await?;
    let (tenant, limit) = (caller.tenant_id, query.limit);
    let waits = !wait.is_zero() && !matches!(query.start, Start::Tail | Start::Before(_));
    let until = Instant::now() + wait;
    // Before the first read, so that nothing falls between that and the first batch.
    let reader = waits.then(|| Reader::new(app, tenant, query.clone()));
    let mut page = app.store.event_page(tenant, query).await?;
    let Some(mut reader) = reader else { return Ok(page) };
    reader.resume(Cursor::decode(&page.next_cursor).map_err(ApiError::internal)?, page.has_more);
    while page.items.is_empty() {
        let found = tokio::select! {
            found = reader.next() => found?,
            () = sleep_until(until) => break,
            () = app.stop.cancelled() => break,
        };
        if !found.events.is_empty() {
            require(app, &app.caller(&caller.credential).await?, Permission::EventsRead, &resource).await?;
        }
        page = live::page_of(found, usize::try_from(limit).unwrap_or(0));
    }
    Ok(page)
}

/// One event.
pub async fn event_get(app: &App, caller: &Caller, id: EventId) -> Result<Event, ApiError> {
    let event = app.store.event_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::EventsRead, &place(event.workspace_id)).await?;
    Ok(event)
}

/// Appends events of custom types, all or none.
pub async fn events_append(
    app: &App,
    actor: Actor,
    body: EventsAppend,
    until_readable: bool,
) -> Result<EventsAppended, ApiError> {
    let tenant = actor.caller.tenant_id;
    if body.events.is_empty() || body.events.len() > MAX_APPEND {
        return Err(ApiError::invalid_field("/events", &format!("must have 1 to {MAX_APPEND} items")));
    }
    for workspace in body.events.iter().map(|e| e.workspace_id).collect::<HashSet<_>>() {
        require(app, &actor.caller, Permission::EventsAppend, &place(workspace)).await?;
    }
    let mut drafts = Vec::with_capacity(body.events.len());
    let mut faults = Vec::new();
    for (n, event) in body.events.into_iter().enumerate() {
        drafts.push(draft(app, &actor, n, event, &mut faults).await?);
    }
    if !faults.is_empty() {
        faults.truncate(MAX_FAULTS);
        let message = format!("{}: {}", faults[0].pointer, faults[0].message);
        return Err(ApiError::new(ErrorCode::InvalidEventPayload, message).detail("errors", fault_list(&faults)));
    }
    let outcomes = app.store.event_append(actor.change, drafts).await?;
    let last = outcomes.iter().map(|o| o.seq).max().unwrap_or(0);
    let readable = until_readable && wait_until_readable(app, last).await?;
    let items = outcomes
        .into_iter()
        .map(|o| EventAppended {
            id: o.id,
            sequence: o.seq,
            duplicate: o.duplicate,
            cursor: readable.then(|| app.store.journal_cursor(tenant, o.seq)),
        })
        .collect();
    Ok(EventsAppended { items })
}

async fn draft(
    app: &App,
    actor: &Actor,
    n: usize,
    event: EventAppend,
    faults: &mut Vec<SchemaFault>,
) -> Result<EventDraft, ApiError> {
    let at = |field: &str| format!("/events/{n}/{field}");
    text::line(&at("type"), &event.event_type, 100)?;
    text::name(&at("entityType"), &event.entity_type, 100)?;
    text::name(&at("entityId"), &event.entity_id, 200)?;
    for (field, value) in [("correlationId", &event.correlation_id), ("causationId", &event.causation_id)] {
        if let Some(value) = value {
            text::name(&at(field), value, 200)?;
        }
    }
    if events::is_reserved(&event.event_type) {
        let message = format!("{}: {} belongs to the core catalogue", at("type"), event.event_type);
        return Err(ApiError::new(ErrorCode::ReservedEventType, message));
    }
    let Some(known) = app.known_type(actor.caller.tenant_id, &event.event_type).await? else {
        let message = format!("{}: {} is not in the catalogue", at("type"), event.event_type);
        return Err(ApiError::new(ErrorCode::UnknownEventType, message).detail("type", event.event_type));
    };
    if known.entity_type != event.entity_type {
        let problem = format!("events of {} are about {:?}", event.event_type, known.entity_type);
        return Err(ApiError::invalid_field(&at("entityType"), &problem));
    }
    let within = |pointer: &str| at("payload") + pointer;
    let limits = payload::Limits { max_bytes: MAX_PAYLOAD_BYTES, max_depth: MAX_PAYLOAD_DEPTH };
    let text = event.payload.text().to_owned();
    let broken = if let Err(unkeepable) = payload::check(&text, &limits) {
        unkeepable.into_iter().map(|f| SchemaFault { pointer: f.pointer, message: f.message }).collect()
    } else {
        let value = serde_json::from_str(&text).map_err(ApiError::internal)?;
        known.validator.check(&value)
    };
    faults.extend(broken.into_iter().map(|f| SchemaFault { pointer: within(&f.pointer), message: f.message }));
    Ok(EventDraft {
        id: event.id,
        event_type: event.event_type,
        schema_version: known.version,
        entity_type: event.entity_type,
        entity_id: event.entity_id,
        workspace_id: event.workspace_id,
        payload: text,
        correlation_id: event.correlation_id,
        causation_id: event.causation_id,
    })
}

/// Whether everything up to `position` is readable in time.
async fn wait_until_readable(app: &App, position: i64) -> Result<bool, ApiError> {
    let until = Instant::now() + READABLE;
    let mut pause = Duration::from_millis(1);
    loop {
        if app.store.journal_horizon().await? >= position {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
