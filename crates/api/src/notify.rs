//! Integrations, notifications and deliveries on the wire.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::Json;
use crate::{DeliveryId, EventId, IntegrationId, PrincipalId, TenantId, Timestamp, WorkspaceId};

/// The event type of a notification made from any journal event by its journal prefixes.
pub const JOURNAL_EVENT: &str = "journal_event";

/// How the name of an integration looks.
const INTEGRATION_NAME_PATTERN: &str = "^[A-Za-z0-9._-]([A-Za-z0-9._ -]{0,98}[A-Za-z0-9._-])?$";

/// Whether `name` can name an integration: 1 to 100 letters, digits, `.`, `_`, `-` or spaces inside.
pub fn is_integration_name(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name.trim() == name
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b' '))
}

/// A name, or one in which `*` stands for any characters: what a grant may name.
pub fn is_integration_pattern(text: &str) -> bool {
    is_integration_name(text) || (text.contains('*') && is_integration_name(&text.replace('*', "_")))
}

/// A new integration.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntegrationCreate {
    /// Unique in the tenant; letters, digits, `.`, `_`, `-` and inner spaces, at most 100.
    #[schemars(regex(pattern = INTEGRATION_NAME_PATTERN))]
    pub name: String,
    /// `slack` or `webhook`.
    pub provider: String,
    /// Whether it gets notifications; true when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Hold deliveries back, losing none; false when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Prefixes of event types that it wants, at most 20.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub journal_types: Vec<String>,
    /// Only events of this workspace and what lies below it; absent: of the whole tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// The provider's settings, not secret.
    #[serde(default)]
    pub provider_config: Map<String, Value>,
    /// The provider's secrets; stored encrypted and never shown again.
    #[serde(default)]
    pub auth_config: Map<String, Value>,
}

/// Changes to an integration; what is absent stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntegrationPatch {
    /// A new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = INTEGRATION_NAME_PATTERN))]
    pub name: Option<String>,
    /// Enable or disable. Enabling clears `disabledReason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Hold deliveries back or let them go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Replaces the prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    pub journal_types: Option<Vec<String>>,
    /// Replaces the workspace; null: the whole tenant.
    #[serde(default, deserialize_with = "crate::patch::nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<WorkspaceId>")]
    pub workspace_id: Option<Option<WorkspaceId>>,
    /// Replaces the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<Map<String, Value>>,
    /// Merged into the stored secrets: what is left out stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_config: Option<Map<String, Value>>,
}

/// An integration, without its secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationView {
    /// Its id.
    pub id: IntegrationId,
    /// Its name.
    pub name: String,
    /// `slack` or `webhook`.
    pub provider: String,
    /// Whether it gets notifications.
    pub enabled: bool,
    /// Whether its deliveries wait.
    pub paused: bool,
    /// Why the server disabled it; null when it did not.
    pub disabled_reason: Option<String>,
    /// Prefixes of event types that it wants.
    pub journal_types: Vec<String>,
    /// Only events of this workspace and below.
    pub workspace_id: Option<WorkspaceId>,
    /// The provider's settings.
    pub provider_config: Map<String, Value>,
    /// Whether secrets are stored.
    pub has_auth_config: bool,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// A secret that the server made because none was given: only in the answer that makes it, null ever after.
    pub generated_secret: Option<String>,
}

/// What a notification tells: the body of a webhook, and what other providers render.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// The delivery's id: the same in every attempt, so receivers can drop a repeat.
    pub id: DeliveryId,
    /// What is announced; `journal_event` for an event matched by its journal prefix.
    pub event_type: String,
    /// The journal event that caused it.
    pub event_id: Option<EventId>,
    /// That event's place in the journal; sort by it, deliveries carry no order.
    pub sequence: Option<i64>,
    /// The tenant.
    pub org_id: TenantId,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// What it is about.
    pub subject: Subject,
    /// Labels of the subject's stack; empty without one.
    pub labels: BTreeMap<String, String>,
    /// Where people can look; null when the server has no public address or no page for it.
    pub url: Option<String>,
    /// The journal event, for `journal_event`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventDetail>,
}

/// What a notification is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Kind of entity.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// Its name, or its id when it has none.
    pub name: String,
}

/// The journal event inside a notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventDetail {
    /// The journal type, dotted.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Version of the payload's schema.
    pub schema_version: u32,
    /// Kind of the entity.
    pub entity_type: String,
    /// The entity.
    pub entity_id: String,
    /// Its workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// Who caused it.
    pub actor_id: Option<PrincipalId>,
    /// What it belongs to.
    pub correlation_id: Option<String>,
    /// What caused it.
    pub causation_id: Option<String>,
    /// The payload, unchanged.
    pub payload: Json,
}

/// Where a delivery stands. A delivered one is gone, so there is no state for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// Waits for its first attempt, or for the next after a requeue.
    Pending,
    /// In some worker's hands.
    Processing,
    /// An attempt failed; another is due at `runAt`.
    Failed,
    /// Given up; kept until it is retried or expires.
    Dead,
}

impl DeliveryStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Processing, Self::Failed, Self::Dead];

    /// As it is stored and written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Failed => "failed",
            Self::Dead => "dead",
        }
    }
}

impl std::str::FromStr for DeliveryStatus {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or(())
    }
}

/// A stored delivery: one that is under way or has failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    /// Its id, which every attempt carries.
    pub id: DeliveryId,
    /// Where it goes.
    pub integration_id: IntegrationId,
    /// That integration's name.
    pub integration_name: String,
    /// What it announces.
    pub event_type: String,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Attempts so far, since the last requeue.
    pub attempt_count: i64,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// When the next attempt is due.
    pub run_at: Timestamp,
    /// When it was queued.
    pub created_at: Timestamp,
    /// The deployment it is about, if one.
    pub deployment_id: Option<String>,
    /// The stack it is about, if one.
    pub stack_id: Option<String>,
    /// That stack's name.
    pub stack_name: Option<String>,
    /// What it is about.
    pub subject: Subject,
}

/// What a retry did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetryResult {
    /// Whether it was requeued.
    pub outcome: RetryOutcome,
}

/// What a retry did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryOutcome {
    /// It was dead and is due again.
    Requeued,
    /// It was queued or under way; nothing was changed.
    AlreadyQueued,
}
