//! The catalogue of event types as it is served, registered and exported.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::{LINE_PATTERN, NAME_PATTERN};
use crate::events::CoreType;

/// One event type with every version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventTypeView {
    /// The type.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The entity its events are about.
    pub entity_type: String,
    /// When it is appended.
    pub description: String,
    /// Whether the core appends it; producers cannot.
    pub core: bool,
    /// The version that is appended today.
    pub current_version: u32,
    /// Every version, oldest first.
    pub versions: Vec<EventTypeVersion>,
}

/// One version of a type's payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventTypeVersion {
    /// 1, 2, …
    pub version: u32,
    /// JSON Schema 2020-12 of the payload.
    pub schema: Value,
}

/// The body that registers a custom type or its next version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventTypeRegister {
    /// The entity its events are about; fixed with version 1.
    #[schemars(length(min = 1, max = 100), regex(pattern = NAME_PATTERN))]
    pub entity_type: String,
    /// When it is appended, for people; at most 1,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), regex(pattern = LINE_PATTERN))]
    pub description: Option<String>,
    /// JSON Schema 2020-12 of the payload; at most 64 KiB, without references to other documents.
    pub schema: Value,
}

impl From<&CoreType> for EventTypeView {
    fn from(t: &CoreType) -> Self {
        Self {
            event_type: t.name.to_owned(),
            entity_type: t.entity_type.to_owned(),
            description: t.description.to_owned(),
            core: true,
            current_version: t.current().version,
            versions: t.versions.iter().map(|v| EventTypeVersion { version: v.version, schema: v.schema() }).collect(),
        }
    }
}
