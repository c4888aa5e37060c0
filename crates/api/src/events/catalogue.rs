//! `event_type.*`

use schemars::JsonSchema;
use serde::Serialize;

use super::{Payload, event_types};

/// A version of a custom event type.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventTypeRegistered {
    /// The type.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The version that was registered.
    pub version: u32,
}

impl Payload for EventTypeRegistered {
    fn example() -> Self {
        Self { event_type: "invoice.paid".into(), version: 1 }
    }
}

event_types! {
    EVENT_TYPE_REGISTERED = "event_type.registered" on "event_type", v 1 EventTypeRegistered, "A custom event type, or a new version of one, was registered.";
}
