//! Paging of lists: the query, and the text of a list's cursor.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courant_api::{ErrorCode, Page};
use courant_store::{Page as Rows, PageKey};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::http::ApiError;

const DEFAULT_LIMIT: i64 = 50;

/// The paging parameters of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListQuery {
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// Most rows in the page; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
}

impl ListQuery {
    pub(super) fn limit(&self) -> i64 {
        self.limit.unwrap_or(DEFAULT_LIMIT)
    }

    pub(super) fn key(&self) -> Result<PageKey, ApiError> {
        self.cursor.as_deref().map(decode).transpose()
    }
}

/// The page as it is answered.
pub(super) fn page<T>(rows: Rows<T>) -> Page<T> {
    let next_cursor = rows.next.map(encode);
    Page { has_more: next_cursor.is_some(), items: rows.items, next_cursor }
}

fn encode(id: Uuid) -> String {
    format!("lc1_{}", URL_SAFE_NO_PAD.encode(id.as_bytes()))
}

pub(super) fn decode(text: &str) -> Result<Uuid, ApiError> {
    text.strip_prefix("lc1_")
        .and_then(|body| URL_SAFE_NO_PAD.decode(body).ok())
        .and_then(|bytes| Uuid::from_slice(&bytes).ok())
        .ok_or_else(|| ApiError::new(ErrorCode::InvalidCursor, "malformed cursor"))
}
