//! Keyset-paged lists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One page of a list, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// The rows of this page.
    pub items: Vec<T>,
    /// What to pass as `cursor` for the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Whether rows follow this page.
    pub has_more: bool,
}
