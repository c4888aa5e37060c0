//! Retention, the leases that it waits for, and the state of a journal on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Most events that one prune deletes.
pub const MAX_PRUNE: i64 = 100_000;
/// The longest age that a prune can ask for, in seconds: a hundred years.
pub const MAX_PRUNE_AGE_SECONDS: i64 = 100 * 365 * 24 * 3600;
/// How far ahead a lease may end, in days.
pub const MAX_LEASE_DAYS: i64 = 30;
/// Most leases of a tenant.
pub const MAX_LEASES: i64 = 1000;

/// Whether a text can name a consumer: 1 to 100 of letters, digits, `.`, `_`, `:` and `-`.
pub fn is_consumer_name(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name != "announcer"
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}

/// The body of `POST /operations/journal:prune`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JournalPrune {
    /// Only events that are at least this old.
    #[schemars(range(min = 0, max = 3_153_600_000_i64))]
    pub before_seconds: i64,
    /// Most events to delete, the oldest first: 1 to 100,000.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_events: i64,
    /// Only count what would be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// What a prune deleted, or would delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JournalPruned {
    /// How many events.
    pub deleted: i64,
    /// The first cursor that can be read after, once they are gone.
    pub floor_cursor: String,
    /// Whether more events are old enough.
    pub has_more: bool,
}

/// The body of `PUT /consumers/{name}`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConsumerPut {
    /// Where the consumer stands: retention keeps what comes after.
    #[schemars(length(min = 1))]
    pub cursor: String,
    /// Until when retention waits for it; at most 30 days ahead.
    pub expires_at: Timestamp,
}

/// A consumer that retention waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerView {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub cursor: String,
    /// Until when retention waits for it.
    pub expires_at: Timestamp,
}

/// A place in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JournalPlace {
    /// Its number.
    pub sequence: i64,
    /// Its cursor.
    pub cursor: String,
}

/// The state of a tenant's journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JournalStatus {
    /// The newest committed position.
    pub head: JournalPlace,
    /// The position up to which readers are served.
    pub horizon: JournalPlace,
    /// Positions between the two.
    pub distance: i64,
    /// The database sessions and prepared transactions whose unfinished append holds the horizon, the oldest first; at
    /// most 20.
    pub holders: Vec<HorizonHolder>,
    /// The first cursor that can be read after.
    pub floor_cursor: String,
    /// When the oldest retained event was appended; null when there is none.
    pub oldest_event_at: Option<Timestamp>,
    /// How long this server keeps events; null: for ever.
    pub retention_seconds: Option<i64>,
    /// Whether a prune has begun and not ended.
    pub pruning: bool,
    /// Appends that wait for a transaction in the process that answers; other servers have queues of their own.
    pub appends_waiting: i64,
    /// The server's own consumer and every lease, by name.
    pub consumers: Vec<ConsumerStatus>,
}

/// Who holds the horizon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HorizonHolder {
    /// The session's process at the database; null for a prepared transaction.
    pub pid: Option<i64>,
    /// What the session calls itself.
    pub application_name: Option<String>,
    /// The session's state, such as `active` or `idle in transaction`.
    pub state: Option<String>,
    /// The name of a prepared transaction; `ROLLBACK PREPARED` ends it.
    pub gid: Option<String>,
    /// Seconds since its transaction began.
    pub age_seconds: Option<i64>,
}

/// What a consumer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsumerKind {
    /// The server's own, which turns events into deliveries.
    Announcer,
    /// A client's, registered by `PUT /consumers/{name}`.
    Lease,
}

/// Where a consumer stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerStatus {
    /// Whether it is the server's own.
    pub kind: ConsumerKind,
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub cursor: String,
    /// The age of the first event that it has yet to see, in seconds, rounded up; 0 when there is none.
    pub lag_seconds: i64,
    /// Until when retention waits for it; null: always.
    pub expires_at: Option<Timestamp>,
    /// Whether retention waits for it now.
    pub blocks_retention: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_name_has_1_to_100_plain_characters() {
        for good in ["a", "billing-1", "Team:orders_2.x", &"n".repeat(100)] {
            assert!(is_consumer_name(good), "{good}");
        }
        for bad in ["", "a b", "a/b", "é", "a\n", &"n".repeat(101)] {
            assert!(!is_consumer_name(bad), "{bad:?}");
        }
    }
}
