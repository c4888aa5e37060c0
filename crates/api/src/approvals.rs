//! Approvals on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::PROSE_PATTERN;
use crate::work::states;
use crate::{ApprovalId, ArtifactId, PrincipalId, RoleId, TaskId, Timestamp, WorkspaceId};

/// Longest comment, in characters.
pub const MAX_COMMENT_CHARS: usize = 10_000;
/// Longest comment in an event, in characters, after redaction.
pub const MAX_COMMENT_CHARS_IN_EVENT: usize = 1_000;
/// Shortest and longest life of a decision token, in seconds.
pub const DECISION_TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 1..=600;
/// The life of a decision token when nothing was asked, in seconds.
pub const DEFAULT_DECISION_TOKEN_SECONDS: i64 = 60;

states! {
    /// Where an approval stands.
    ApprovalStatus {
        /// Nobody has decided.
        Pending = "pending",
        /// Somebody said yes.
        Approved = "approved",
        /// Somebody said no.
        Rejected = "rejected",
        /// It is not asked any more.
        Cancelled = "cancelled",
        /// Nobody decided in time.
        Expired = "expired",
    }
}

/// A request for a decision.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalRequest {
    /// About which task; or else `artifactId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// About which artifact; or else `taskId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<ArtifactId>,
    /// Any holder of this role decides; or else `assignedPrincipalId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_role_id: Option<RoleId>,
    /// This principal decides; or else `requiredRoleId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_principal_id: Option<PrincipalId>,
    /// Whether the task can be neither claimed nor completed until it is decided; false when absent, and of an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<bool>,
    /// At most 10,000 characters; redacted and cut in events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_COMMENT_CHARS), regex(pattern = PROSE_PATTERN))]
    pub comment: Option<String>,
    /// When nobody needs to decide any more; must lie ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether who requests it may not decide it; false when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_other_than_requester: Option<bool>,
}

/// A decision, or a cancellation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalDecide {
    /// At most 10,000 characters; redacted and cut in events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_COMMENT_CHARS), regex(pattern = PROSE_PATTERN))]
    pub comment: Option<String>,
}

/// A decision that somebody has to take, or has taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalView {
    /// Its id.
    pub id: ApprovalId,
    /// About which task.
    pub task_id: Option<TaskId>,
    /// About which artifact.
    pub artifact_id: Option<ArtifactId>,
    /// Any holder of this role decides.
    pub required_role_id: Option<RoleId>,
    /// This principal decides.
    pub assigned_principal_id: Option<PrincipalId>,
    /// Whether it holds the task.
    pub gate: bool,
    /// The workspace of its task or artifact when it was requested; it never changes.
    pub workspace_id: Option<WorkspaceId>,
    /// Who requested it.
    pub requested_by: PrincipalId,
    /// Whether that principal may not decide it.
    pub require_other_than_requester: bool,
    /// What was said with the request.
    pub comment: Option<String>,
    /// Where it stands.
    pub status: ApprovalStatus,
    /// Who decided or cancelled.
    pub decision_by: Option<PrincipalId>,
    /// What was said with the decision.
    pub decision_comment: Option<String>,
    /// Through which channel the decision came; null: by a direct call.
    pub channel: Option<String>,
    /// When nobody needs to decide any more.
    pub expires_at: Option<Timestamp>,
    /// When it was decided, cancelled or expired.
    pub decided_at: Option<Timestamp>,
    /// When it was requested.
    pub created_at: Timestamp,
    /// Grows with every change.
    pub version: i64,
}

/// A wish for a token with which one principal decides one approval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionTokenCreate {
    /// Who decides with it.
    pub principal_id: PrincipalId,
    /// Through which channel: `^[a-z0-9][a-z0-9_-]{0,39}$`.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9_-]{0,39}$"))]
    pub channel: String,
    /// For how long, 1 to 600 seconds; 60 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 600))]
    pub expires_in_seconds: Option<i64>,
}

/// Whether a text can name a channel.
pub fn is_channel(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=40).contains(&text.len())
        && text.bytes().all(|b| inner(b) || matches!(b, b'_' | b'-'))
        && text.bytes().next().is_some_and(inner)
}

/// A token for one decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionToken {
    /// The approval.
    pub approval_id: ApprovalId,
    /// Who decides with it.
    pub principal_id: PrincipalId,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The token, a bearer credential; shown this once, null in a replayed answer.
    pub token: Option<String>,
}
