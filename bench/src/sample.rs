//! What is measured with: one event type, events of some four hundred bytes, and the row that one of them becomes.

use courant_api::event::{EventAppend, Json};
use courant_api::{PrincipalId, TenantId};
use courant_server::{clock, ids};
use courant_store::EventDraft;
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) const EVENT_TYPE: &str = "build.finished";
pub(crate) const ENTITY_TYPE: &str = "build";

/// The schema that payloads are checked against on their way in over HTTP.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["name", "status", "commit", "durationMs"],
        "properties": {
            "name": { "type": "string", "maxLength": 200 },
            "status": { "enum": ["succeeded", "failed", "cancelled"] },
            "commit": { "type": "string" },
            "durationMs": { "type": "integer", "minimum": 0 },
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "durationMs"],
                    "properties": { "name": { "type": "string" }, "durationMs": { "type": "integer" } }
                }
            }
        }
    })
}

/// The payload of the event with this number.
pub(crate) fn payload(number: u64) -> String {
    json!({
        "name": format!("checkout-service #{number}"),
        "status": "succeeded",
        "commit": "4f1d2c3b5a69788796a5b4c3d2e1f00f1e2d3c4b",
        "durationMs": 184_223 + number % 1000,
        "steps": [
            { "name": "fetch sources and restore the cache", "durationMs": 8_120 },
            { "name": "compile with all features", "durationMs": 96_411 },
            { "name": "unit and integration tests", "durationMs": 71_009 },
            { "name": "publish the image", "durationMs": 8_683 }
        ]
    })
    .to_string()
}

/// The entity of the event with this number: one in a thousand.
pub(crate) fn entity(number: u64) -> String {
    format!("build-{:04}", number % 1000)
}

/// An event as a producer sends it.
pub(crate) fn event(number: u64) -> EventAppend {
    EventAppend {
        id: None,
        event_type: EVENT_TYPE.into(),
        entity_type: ENTITY_TYPE.into(),
        entity_id: entity(number),
        workspace_id: None,
        payload: Json::parse(payload(number)).expect("it was written as JSON"),
        correlation_id: None,
        causation_id: None,
    }
}

/// An event as the store takes it.
pub(crate) fn draft(number: u64) -> EventDraft {
    EventDraft {
        id: None,
        event_type: EVENT_TYPE.into(),
        schema_version: 1,
        entity_type: ENTITY_TYPE.into(),
        entity_id: entity(number),
        workspace_id: None,
        payload: payload(number),
        correlation_id: None,
        causation_id: None,
    }
}

/// The row of an event: what our server stores for it, for those that store it without us.
pub(crate) struct EventRow {
    pub(crate) tenant_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) event_type: &'static str,
    pub(crate) schema_version: i64,
    pub(crate) entity_type: &'static str,
    pub(crate) entity_id: String,
    pub(crate) workspace_id: Option<Uuid>,
    pub(crate) actor_id: Option<Uuid>,
    pub(crate) session_id: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) causation_id: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) payload: String,
    pub(crate) occurred_at: i64,
}

/// Whose rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) tenant: TenantId,
    pub(crate) actor: PrincipalId,
}

impl Owner {
    /// Nobody that our tables know of.
    pub(crate) fn new() -> Self {
        Self { tenant: TenantId(ids::new_id()), actor: PrincipalId(ids::new_id()) }
    }

    /// The row of the event with this number; a request's id stands in it when it came over HTTP.
    pub(crate) fn row(self, number: u64, over_http: bool) -> EventRow {
        let request = over_http.then(|| ids::new_id().to_string());
        EventRow {
            tenant_id: self.tenant.uuid(),
            id: ids::new_id(),
            event_type: EVENT_TYPE,
            schema_version: 1,
            entity_type: ENTITY_TYPE,
            entity_id: entity(number),
            workspace_id: None,
            actor_id: Some(self.actor.uuid()),
            session_id: None,
            correlation_id: request.clone(),
            causation_id: None,
            request_id: request,
            payload: payload(number),
            occurred_at: clock::now().micros(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_some_four_hundred_bytes_and_fits_its_schema() {
        let text = payload(12);
        assert!((350..=450).contains(&text.len()), "{} bytes", text.len());
        let validator = courant_core::catalogue::PayloadValidator::compile(&schema()).unwrap();
        assert!(validator.check(&serde_json::from_str(&text).unwrap()).is_empty());
    }
}
