//! `consumer.*`

use schemars::JsonSchema;
use serde::Serialize;

use super::{Payload, event_types};
use crate::Timestamp;

/// A consumer that retention waits for, or did.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerChange {
    /// Its name.
    pub name: String,
    /// Until when retention waits, or would have.
    pub expires_at: Timestamp,
}

impl Payload for ConsumerChange {
    fn example() -> Self {
        Self { name: "billing".into(), expires_at: Timestamp::from_micros(1_900_000_000_000_000) }
    }
}

event_types! {
    CONSUMER_REGISTERED = "consumer.registered" on "consumer", v 1 ConsumerChange, "Retention waits for a consumer that it did not wait for before.";
    CONSUMER_RELEASED = "consumer.released" on "consumer", v 1 ConsumerChange, "A consumer was given up: retention waits for it no longer.";
}
