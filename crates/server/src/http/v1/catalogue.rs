//! `/event-types`

use courant_api::catalog::{EventTypeRegister, EventTypeView};
use courant_api::{ErrorCode, Page, Permission};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::changed;
use super::list::{List, ListQuery, malformed};
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, catalogue};

const EVENT_TYPES: List = List("event-types");

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    vec![
        Endpoint::get("/api/v1/event-types", list)
            .tag("catalogue")
            .summary("Lists event types by name, core and custom, with every version's schema")
            .access(Access::On(&[Permission::EventTypesRead], "the tenant"))
            .errors(&[ErrorCode::InvalidCursor]),
        Endpoint::get("/api/v1/event-types/{type}", get)
            .tag("catalogue")
            .summary("Reads one event type")
            .missing("event type")
            .access(Access::On(&[Permission::EventTypesRead], "the tenant")),
        Endpoint::put("/api/v1/event-types/{type}/versions/{n}", register)
            .tag("catalogue")
            .summary("Registers a custom event type or its next version")
            .description("A version may only add optional fields. Registering the same schema again changes nothing.")
            .missing("event type version")
            .access(Access::On(&[Permission::EventTypesManage], "the tenant"))
            .errors(&[
                ErrorCode::ReservedEventType,
                ErrorCode::InvalidSchema,
                ErrorCode::IncompatibleSchemaVersion,
                ErrorCode::Conflict,
            ]),
    ]
}

async fn list(cx: Cx<App>, input: Input<(), ListQuery, ()>) -> Result<Reply<Page<EventTypeView>>, ApiError> {
    let after = input.query.cursor.as_deref().map(decode).transpose()?.unwrap_or_default();
    let limit = usize::try_from(input.query.limit()).unwrap_or(1);
    let (items, has_more) = catalogue::event_types_list(&cx.app, &cx.caller, after, limit).await?;
    let last = items.last().filter(|_| has_more);
    let next_cursor = last.map(|t| EVENT_TYPES.cursor(t.event_type.as_bytes()));
    Ok(Reply::ok(Page { items, next_cursor, has_more }))
}

/// This list is ordered by name, so its cursor holds one.
fn decode(cursor: &str) -> Result<String, ApiError> {
    String::from_utf8(EVENT_TYPES.key(cursor)?)
        .ok()
        .filter(|name| courant_api::filter::is_type_name(name))
        .ok_or_else(malformed)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByType {
    /// The type: `invoice.paid`.
    #[serde(rename = "type")]
    event_type: String,
}

async fn get(cx: Cx<App>, input: Input<ByType, (), ()>) -> Result<Reply<EventTypeView>, ApiError> {
    Ok(Reply::ok(catalogue::event_type_get(&cx.app, &cx.caller, input.path.event_type).await?))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByVersion {
    /// The type: `invoice.paid`.
    #[serde(rename = "type")]
    #[schemars(length(max = 100), regex(pattern = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"))]
    event_type: String,
    /// The version: 1, then 2, …
    #[schemars(range(min = 1))]
    n: u32,
}

async fn register(
    cx: Cx<App>,
    input: Input<ByVersion, (), EventTypeRegister>,
) -> Result<Reply<EventTypeView>, ApiError> {
    let ByVersion { event_type, n } = input.path;
    let done = catalogue::event_type_register(&cx.app, Actor::of(&cx), event_type, n, input.body).await?;
    Ok(changed(StatusCode::OK, done))
}
