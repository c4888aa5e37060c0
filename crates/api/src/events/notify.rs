//! `notification_integration.*`, `notification_delivery.*`

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Payload, event_types};
use crate::IntegrationId;

/// An integration after a change; never its configuration or secrets.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationChange {
    /// Its name.
    pub name: String,
    /// Its provider.
    pub provider: String,
    /// Names of the fields that changed; empty when it was created.
    pub changes: Vec<String>,
}

impl Payload for IntegrationChange {
    fn example() -> Self {
        Self { name: "ops-slack".into(), provider: "slack".into(), changes: vec!["enabled".into()] }
    }
}

/// An integration that is gone.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationDeleted {
    /// Its name.
    pub name: String,
    /// Its provider.
    pub provider: String,
    /// Always empty.
    pub changes: Vec<String>,
    /// How many unsent deliveries went with it.
    pub deleted_deliveries: i64,
}

impl Payload for IntegrationDeleted {
    fn example() -> Self {
        Self { name: "ops-slack".into(), provider: "slack".into(), changes: Vec::new(), deleted_deliveries: 0 }
    }
}

/// A delivery that was given up.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryDead {
    /// Where it was going.
    pub integration_id: IntegrationId,
    /// That integration's name.
    pub integration_name: String,
    /// What it announced.
    pub event_type: String,
    /// Attempts that were made.
    pub attempt_count: i64,
    /// Class of the last error: `destination`, `credential`, `payload`, `transient`, `disabled` or `blocked`.
    pub error_class: String,
}

impl Payload for DeliveryDead {
    fn example() -> Self {
        Self {
            integration_id: IntegrationId(Uuid::nil()),
            integration_name: "ops-slack".into(),
            event_type: "journal_event".into(),
            attempt_count: 8,
            error_class: "transient".into(),
        }
    }
}

event_types! {
    INTEGRATION_CREATED = "notification_integration.created" on "notification_integration", v 1 IntegrationChange, "A notification integration was created.";
    INTEGRATION_UPDATED = "notification_integration.updated" on "notification_integration", v 1 IntegrationChange, "A notification integration was changed.";
    INTEGRATION_DELETED = "notification_integration.deleted" on "notification_integration", v 1 IntegrationDeleted, "A notification integration was deleted, with its unsent deliveries.";
    INTEGRATION_DISABLED = "notification_integration.disabled" on "notification_integration", v 1 IntegrationChange, "A notification integration was disabled, by a person or because its target is gone for good.";
    DELIVERY_DEAD = "notification_delivery.dead" on "notification_delivery", v 1 DeliveryDead, "A delivery was given up; it stays in the dead-letter view until it is retried or expires.";
}
