//! `/events`

use std::time::Duration;

use courant_api::event::{EventPage, EventsAppend, EventsAppended};
use courant_api::filter::parse_prefixes;
use courant_api::{Cursor, CursorError, ErrorCode, Event, EventId, Permission, Timestamp, WorkspaceId};
use courant_store::{EventQuery, Start};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::App;
use crate::clock;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, journal};

pub(super) const PLACE: &str = "the workspace given, else the tenant";
/// 500 events with some kilobytes each; larger batches go in several requests.
const APPEND_BYTES: usize = 16 * 1024 * 1024;
const DEFAULT_LIMIT: i64 = 50;
/// How far a client's clock may be ahead.
const SKEW_US: i64 = 60_000_000;

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    vec![
        Endpoint::get("/api/v1/events", list)
            .tag("journal")
            .summary("Reads the journal after a cursor")
            .description(
                "Order is one total order per tenant, and a page is a slice of it: filters narrow it and never change it \
                 or a cursor's meaning. A reader that only moves to cursors it was given never misses an event and sees \
                 none twice. `nextCursor` is on every page, past everything the filter left out.",
            )
            .access(Access::On(&[Permission::EventsRead], PLACE))
            .errors(&[
                E::NotFound, E::InvalidEventTypeFilter, E::InvalidCursor, E::UnsupportedCursorVersion,
                E::CursorFromOtherJournal, E::CursorBelowJournalFloor, E::ConflictingCursors,
            ]),
        Endpoint::post("/api/v1/events", append)
            .tag("journal")
            .summary("Appends events of registered custom types, all or none")
            .description(
                "An event's `id` makes its append idempotent: the same id and content answers the stored event with \
                 `duplicate: true`. With `until=readable` the answer waits until all are readable and carries their cursors.",
            )
            .access(Access::On(&[Permission::EventsAppend], "each event's workspace, else the tenant"))
            .without_idempotency_key()
            .body_limit(APPEND_BYTES)
            .payload_faults(|pointer| is_in_payload(pointer).then_some(E::InvalidEventPayload))
            .errors(&[E::NotFound, E::UnknownEventType, E::ReservedEventType, E::InvalidEventPayload, E::EventIdConflict])
            .created(),
        Endpoint::get("/api/v1/events/{id}", get)
            .tag("journal")
            .summary("Reads one event")
            .missing("event")
            .access(Access::On(&[Permission::EventsRead], "the event's workspace, else the tenant")),
    ]
}

/// `/events/<n>/payload…`
fn is_in_payload(pointer: &str) -> bool {
    let mut tokens = pointer.split('/').skip(1);
    tokens.next() == Some("events") && tokens.nth(1) == Some("payload")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReadQuery {
    /// Type prefixes, repeatable and comma-separated, at most 20: `approval.` is every approval event. None: all types.
    #[serde(default)]
    types: Vec<String>,
    /// Only events of this workspace and what lies below it.
    workspace_id: Option<WorkspaceId>,
    /// Only events about this kind of entity.
    entity_type: Option<String>,
    /// Only events about this entity; needs `entityType`.
    entity_id: Option<String>,
    /// Read after this position; absent: from the first retained event.
    cursor: Option<String>,
    /// The events just before this position, for paging backward.
    before: Option<String>,
    /// Start at the first event appended at or after this time.
    since: Option<Timestamp>,
    /// The newest so many matching events; `limit` then does not apply.
    #[schemars(range(min = 1, max = 1000))]
    tail: Option<i64>,
    /// Most events in the page; 50 when absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    /// Seconds to hold an empty page open until a matching event is readable.
    #[schemars(range(min = 0, max = 30))]
    wait: Option<i64>,
}

async fn list(cx: Cx<App>, input: Input<(), ReadQuery, ()>) -> Result<Reply<EventPage>, ApiError> {
    let q = input.query;
    let given = [q.cursor.is_some(), q.before.is_some(), q.tail.is_some(), q.since.is_some()];
    if given.into_iter().filter(|given| *given).count() > 1 {
        let message = "more than one of cursor, before, tail and since";
        return Err(ApiError::new(ErrorCode::ConflictingCursors, message));
    }
    let (start, limit) = match (&q.cursor, &q.before, q.tail, q.since) {
        (Some(cursor), ..) => (Start::After(decode(cursor)?), q.limit),
        (_, Some(cursor), ..) => (Start::Before(decode(cursor)?), q.limit),
        (.., Some(tail), _) => (Start::Tail, Some(tail)),
        (.., Some(time)) => {
            // A page would end before that time, and its cursor would forget it.
            if time > clock::now().plus_micros(SKEW_US) {
                return Err(ApiError::invalid_parameter("since", "lies in the future"));
            }
            (Start::Since(time), q.limit)
        }
        _ => (Start::First, q.limit),
    };
    let query = filter(&q.types, q.workspace_id, q.entity_type, q.entity_id, start)?;
    let query = EventQuery { limit: limit.unwrap_or(DEFAULT_LIMIT), ..query };
    let wait = Duration::from_secs(q.wait.unwrap_or(0).unsigned_abs());
    Ok(Reply::ok(journal::events_read(&cx.app, &cx.caller, query, wait).await?))
}

/// What a reader asks for: which events, and from where.
pub(super) fn filter(
    types: &[String],
    workspace_id: Option<WorkspaceId>,
    entity_type: Option<String>,
    entity_id: Option<String>,
    start: Start,
) -> Result<EventQuery, ApiError> {
    let prefixes =
        parse_prefixes(types).map_err(|e| ApiError::new(ErrorCode::InvalidEventTypeFilter, e.to_string()))?;
    if entity_id.is_some() && entity_type.is_none() {
        return Err(ApiError::invalid_parameter("entityId", "needs entityType"));
    }
    Ok(EventQuery { prefixes, workspace_id, entity_type, entity_id, start, limit: DEFAULT_LIMIT })
}

pub(super) fn decode(cursor: &str) -> Result<Cursor, ApiError> {
    Cursor::decode(cursor).map_err(|e| match e {
        CursorError::Malformed => ApiError::new(ErrorCode::InvalidCursor, "malformed cursor"),
        CursorError::UnsupportedVersion => {
            ApiError::new(ErrorCode::UnsupportedCursorVersion, "the cursor has a later format; this server reads ec1_")
        }
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AppendQuery {
    /// `readable`: answer once all events are readable, with their cursors.
    until: Option<Until>,
}

#[derive(Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Until {
    Readable,
}

async fn append(cx: Cx<App>, input: Input<(), AppendQuery, EventsAppend>) -> Result<Reply<EventsAppended>, ApiError> {
    let until_readable = input.query.until == Some(Until::Readable);
    Ok(Reply::created(journal::events_append(&cx.app, Actor::of(&cx), input.body, until_readable).await?))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById {
    /// The event's id.
    id: EventId,
}

async fn get(cx: Cx<App>, input: Input<ById, (), ()>) -> Result<Reply<Event>, ApiError> {
    Ok(Reply::ok(journal::event_get(&cx.app, &cx.caller, input.path.id).await?))
}
