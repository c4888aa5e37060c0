//! Events as readers see them and as producers send them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::access::{LINE_PATTERN, NAME_PATTERN};
use crate::{EventId, PrincipalId, TenantId, Timestamp, WorkspaceId};

/// Largest payload in bytes of JSON text.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;
/// Deepest nesting of a payload.
pub const MAX_PAYLOAD_DEPTH: usize = 64;
/// Most events in one `POST /events`.
pub const MAX_APPEND: usize = 500;

/// JSON text that travels unchanged: digits, key order and spacing stay as they were written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Box<RawValue>);

impl Json {
    /// Wraps text that is known to be JSON.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// The JSON of a value.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl JsonSchema for Json {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Json".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "The payload of this type and schema version." })
    }
}

impl Event {
    /// The event's JSON in one line, as NDJSON needs it: line breaks between the tokens of its payload become spaces, and
    /// inside a text JSON has none.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string(self)?.replace(['\n', '\r'], " "))
    }
}

/// An event of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Identifies the event's place in the journal; grows, has gaps, and is not a cursor.
    pub sequence: i64,
    /// The event's id.
    pub id: EventId,
    /// Whose journal.
    pub tenant_id: TenantId,
    /// A type of the catalogue.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Version of the payload's schema.
    pub schema_version: u32,
    /// Kind of the entity the event is about.
    pub entity_type: String,
    /// That entity.
    pub entity_id: String,
    /// The entity's workspace when the event was appended; null at tenant level.
    pub workspace_id: Option<WorkspaceId>,
    /// Who caused it.
    pub actor_id: Option<PrincipalId>,
    /// The session it was caused in.
    pub session_id: Option<String>,
    /// Ties together what one undertaking caused.
    pub correlation_id: Option<String>,
    /// What directly caused it: an event or a request.
    pub causation_id: Option<String>,
    /// The request that appended it.
    pub request_id: Option<String>,
    /// What happened, in the schema of `type` and `schemaVersion`.
    pub payload: Json,
    /// When it was appended.
    pub occurred_at: Timestamp,
    /// Continue after this event with this cursor.
    pub cursor: String,
}

/// A page of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// Events in journal order.
    pub items: Vec<Event>,
    /// Where to read on; always there, and past everything the filter left out.
    pub next_cursor: String,
    /// Pass it as `before` for the page before this one; null when there is none, or on an empty page.
    pub prev_cursor: Option<String>,
    /// Whether reading on at once may give more; with `before`, whether reading further back may.
    pub has_more: bool,
}

/// One event that a producer appends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventAppend {
    /// Makes the append idempotent: the same id and content gives the stored event. Made by the server when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EventId>,
    /// A registered custom type.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 100), regex(pattern = LINE_PATTERN))]
    pub event_type: String,
    /// The entity type that the event type was registered with.
    #[schemars(length(min = 1, max = 100), regex(pattern = NAME_PATTERN))]
    pub entity_type: String,
    /// The entity: 1 to 200 characters.
    #[schemars(length(min = 1, max = 200), regex(pattern = NAME_PATTERN))]
    pub entity_id: String,
    /// The workspace that it belongs to; absent: tenant level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// A JSON object in the schema of the type's current version; at most 256 KiB.
    pub payload: Json,
    /// Ties together what one undertaking caused; the request's correlation id when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200), regex(pattern = NAME_PATTERN))]
    pub correlation_id: Option<String>,
    /// What directly caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200), regex(pattern = NAME_PATTERN))]
    pub causation_id: Option<String>,
}

/// The body of `POST /events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsAppend {
    /// 1 to 500 events, appended in this order, all or none.
    #[schemars(length(min = 1, max = MAX_APPEND))]
    pub events: Vec<EventAppend>,
}

/// What became of one appended event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventAppended {
    /// The event's id.
    pub id: EventId,
    /// Its place in the journal.
    pub sequence: i64,
    /// Whether it had been appended before.
    pub duplicate: bool,
    /// Its cursor once it is readable (`?until=readable`), else null.
    pub cursor: Option<String>,
}

/// The answer of `POST /events`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventsAppended {
    /// One item for each event, in the order of the request.
    pub items: Vec<EventAppended>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_the_whole_event_whatever_breaks_its_payload_has() {
        let payload = "{\n  \"a\": \"x\\ny\",\r\n \"b\": 1.50\n}";
        let event = serde_json::json!({
            "sequence": 1, "id": uuid::Uuid::nil(), "tenantId": uuid::Uuid::nil(), "type": "t.made", "schemaVersion": 1,
            "entityType": "t", "entityId": "1", "payload": {}, "occurredAt": "2026-01-01T00:00:00.000Z", "cursor": "ec1_",
        });
        let mut event: Event = serde_json::from_value(event).unwrap();
        event.payload = Json::parse(payload).unwrap();
        let line = event.to_line().unwrap();
        assert!(!line.contains(['\n', '\r']), "{line}");
        let read: Event = serde_json::from_str(&line).unwrap();
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(read.payload.text()), value(payload));
        assert!(read.payload.text().contains("1.50"));
    }
}
