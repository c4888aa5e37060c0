//! `event_journal.*`

use schemars::JsonSchema;
use serde::Serialize;

use super::{Payload, event_types};

/// What retention deleted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventJournalPruned {
    /// How many events.
    pub count: i64,
    /// The cursor of the last of them: the first one that can still be read after.
    pub through_cursor: String,
}

impl Payload for EventJournalPruned {
    fn example() -> Self {
        Self { count: 1200, through_cursor: "ec1_mB3yHc0vQ5kAAAABAAAAAAAABLDf1k2x".into() }
    }
}

event_types! {
    EVENT_JOURNAL_PRUNED = "event_journal.pruned" on "tenant", v 1 EventJournalPruned, "Retention deleted the oldest events of the tenant's journal.";
}
