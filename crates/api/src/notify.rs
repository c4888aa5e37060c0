//! Integrations, notifications and deliveries on the wire.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::access::{LINE_PATTERN, NAME_PATTERN, PROSE_PATTERN};
use crate::announced::{
    AnnouncedApproval, AnnouncedDependent, AnnouncedDeployment, AnnouncedFindings, AnnouncedStack, AnnouncedTask,
    AnnouncedType,
};
use crate::deployments::{MAX_LABEL_VALUE_CHARS, MAX_LABELS, label_key};
use crate::event::Json;
use crate::{DeliveryId, EventId, IntegrationId, PrincipalId, TenantId, Timestamp, WorkspaceId};

/// The event type of a notification made from any journal event by its journal prefixes.
pub const JOURNAL_EVENT: &str = "journal_event";

/// Most types that an integration lists: all of them.
pub const MAX_EVENTS: usize = AnnouncedType::ALL.len();
/// Longest schedule of a report, in characters.
pub const MAX_SCHEDULE_CHARS: usize = 100;

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
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
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
    /// What is announced to it; each once.
    #[serde(default)]
    #[schemars(length(max = MAX_EVENTS))]
    pub events: Vec<AnnouncedType>,
    /// Prefixes of journal types, of which it gets every event, announced or not; at most 20.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub journal_types: Vec<String>,
    /// Only events of this workspace and what lies below it; absent: of the whole tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// Of `events`, only those about a stack that has all these labels; empty: all.
    #[serde(default)]
    #[schemars(extend("maxProperties" = MAX_LABELS, "propertyNames" = label_key()), inner(length(max = MAX_LABEL_VALUE_CHARS), regex(pattern = LINE_PATTERN)))]
    pub stack_label_selector: BTreeMap<String, String>,
    /// Of `events`, no end of a deployment or preview whose plan is proof that nothing changes; failures always. False
    /// when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_only: Option<bool>,
    /// When `explore_findings_changed` reports: `<minute> <hour> * * <day-of-week>`, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SCHEDULE_CHARS))]
    pub findings_digest_schedule: Option<String>,
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
    /// Replaces what is announced to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_EVENTS))]
    pub events: Option<Vec<AnnouncedType>>,
    /// Replaces the prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    pub journal_types: Option<Vec<String>>,
    /// Replaces the workspace; null: the whole tenant.
    #[serde(default, deserialize_with = "crate::patch::nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<WorkspaceId>")]
    pub workspace_id: Option<Option<WorkspaceId>>,
    /// Replaces the labels that a stack must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = MAX_LABELS, "propertyNames" = label_key()), inner(inner(length(max = MAX_LABEL_VALUE_CHARS), regex(pattern = LINE_PATTERN))))]
    pub stack_label_selector: Option<BTreeMap<String, String>>,
    /// Whether what proves that nothing changes is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_only: Option<bool>,
    /// Replaces the schedule; null: no report.
    #[serde(default, deserialize_with = "crate::patch::nullable", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", length(max = MAX_SCHEDULE_CHARS))]
    pub findings_digest_schedule: Option<Option<String>>,
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
    /// What is announced to it, in canonical order.
    pub events: Vec<AnnouncedType>,
    /// Prefixes of journal types that it wants.
    pub journal_types: Vec<String>,
    /// Only events of this workspace and below.
    pub workspace_id: Option<WorkspaceId>,
    /// The labels that a stack must have.
    pub stack_label_selector: BTreeMap<String, String>,
    /// Whether what proves that nothing changes is left out.
    pub changes_only: bool,
    /// When it is sent a report of findings.
    pub findings_digest_schedule: Option<String>,
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
    /// Whether it works.
    pub health: IntegrationHealth,
}

/// Whether an integration works, by what became of its deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationHealth {
    /// When one arrived last.
    pub last_success_at: Option<Timestamp>,
    /// When an attempt failed last.
    pub last_error_at: Option<Timestamp>,
    /// Why.
    pub last_error: Option<String>,
    /// How many attempts have failed since one arrived.
    pub consecutive_failures: i64,
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
    /// The deployment, for its family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<AnnouncedDeployment>,
    /// The stack, for its family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<AnnouncedStack>,
    /// The decision, for its family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<AnnouncedApproval>,
    /// The task, for its family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<AnnouncedTask>,
    /// The dependent stack that was not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependent: Option<AnnouncedDependent>,
    /// The report of findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<AnnouncedFindings>,
    /// The journal event, for `journal_event`. What is kept has it always, and CloudEvents are made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventDetail>,
}

impl Notification {
    /// What it announces; none: any event of the journal.
    pub fn announced(&self) -> Option<AnnouncedType> {
        self.event_type.parse().ok()
    }
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

/// What became of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// It arrived.
    Sent,
    /// It failed, and another one follows.
    Failed,
    /// It failed, and the delivery was given up.
    Dead,
}

impl AttemptOutcome {
    /// As it is stored and written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Dead => "dead",
        }
    }
}

impl std::str::FromStr for AttemptOutcome {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Sent, Self::Failed, Self::Dead].into_iter().find(|outcome| outcome.as_str() == text).ok_or(())
    }
}

/// One attempt at a delivery, kept for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    /// Its id.
    pub id: Uuid,
    /// Where it went.
    pub integration_id: IntegrationId,
    /// That integration's name.
    pub integration_name: String,
    /// The delivery, which may be gone.
    pub delivery_id: DeliveryId,
    /// The journal event behind it; of a report it names its occurrence.
    pub event_id: Uuid,
    /// What it announced.
    pub event_type: String,
    /// 1, 2, … since the last requeue.
    pub attempt: i64,
    /// What became of it.
    pub outcome: AttemptOutcome,
    /// Why it failed.
    pub error: Option<String>,
    /// When it ended.
    pub at: Timestamp,
}

/// Most dead deliveries that one request queues again.
pub const MAX_RETRIED: i64 = 10_000;

/// Which dead deliveries are to be queued again; filters that are given all hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeliveriesRetry {
    /// Only those to this integration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration_id: Option<IntegrationId>,
    /// Only those that announce one of these; `journal_event` is one of them. Empty: whatever they announce.
    #[serde(default)]
    #[schemars(length(max = 50), inner(length(min = 1, max = 100), regex(pattern = NAME_PATTERN)))]
    pub event_types: Vec<String>,
    /// Only those that died of exactly this error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 500), regex(pattern = PROSE_PATTERN))]
    pub last_error: Option<String>,
    /// Only count; false when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Most that are queued by this request, the oldest first; 1,000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_RETRIED))]
    pub limit: Option<i64>,
}

/// How far a retry of many has come: who wants all sends the same again until nothing remains, and who does not stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveriesRetried {
    /// Dead deliveries that matched when this request came.
    pub matched: i64,
    /// How many of them were queued again.
    pub requeued: i64,
    /// How many are still dead.
    pub remaining: i64,
}

/// What became of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationTested {
    /// Whether it arrived.
    pub outcome: TestOutcome,
    /// Why it did not; null when it did.
    pub error: Option<String>,
    /// What was sent: the announced type, or `journal_event`.
    pub event_type: String,
    /// What the target answered; null when it did not.
    pub answer: Option<TargetAnswer>,
}

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// It arrived.
    Sent,
    /// It did not.
    Failed,
}

/// What a target answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetAnswer {
    /// The status, of HTTP or of SMTP.
    pub status: u16,
    /// The start of what it said, without secrets.
    pub body: String,
}
