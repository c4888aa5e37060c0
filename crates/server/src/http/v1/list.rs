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

/// What every cursor of a list begins with.
const FORMAT: &str = "lc1_";

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

    pub(super) fn key(&self, list: List) -> Result<PageKey, ApiError> {
        self.cursor.as_deref().map(|cursor| list.id(cursor)).transpose()
    }
}

/// A list, as its cursors are bound to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct List(pub(super) &'static str);

impl List {
    /// The page as it is answered.
    pub(super) fn page<T>(self, rows: Rows<T>) -> Page<T> {
        let next_cursor = rows.next.map(|id| self.cursor(id.as_bytes()));
        Page { has_more: next_cursor.is_some(), items: rows.items, next_cursor }
    }

    /// The cursor after the row with this id or name. Its last four bytes tell another list's or a changed one.
    pub(super) fn cursor(self, key: &[u8]) -> String {
        let body = [key, &self.check(key)].concat();
        format!("{FORMAT}{}", URL_SAFE_NO_PAD.encode(body))
    }

    /// The bytes in a cursor of this list.
    pub(super) fn key(self, cursor: &str) -> Result<Vec<u8>, ApiError> {
        self.read(cursor).ok_or_else(malformed)
    }

    /// The id in a cursor of this list.
    pub(super) fn id(self, cursor: &str) -> Result<Uuid, ApiError> {
        Uuid::from_slice(&self.key(cursor)?).map_err(|_| malformed())
    }

    fn read(self, cursor: &str) -> Option<Vec<u8>> {
        let body = URL_SAFE_NO_PAD.decode(cursor.strip_prefix(FORMAT)?).ok()?;
        let (key, check) = body.split_last_chunk::<4>()?;
        (*check == self.check(key)).then(|| key.to_vec())
    }

    fn check(self, key: &[u8]) -> [u8; 4] {
        let mut sum = crc32fast::Hasher::new();
        sum.update(self.0.as_bytes());
        // No name holds a NUL, so that no two pairs of name and key run into the same bytes.
        sum.update(&[0]);
        sum.update(key);
        sum.finalize().to_be_bytes()
    }
}

pub(super) fn malformed() -> ApiError {
    ApiError::new(ErrorCode::InvalidCursor, "malformed cursor, or one of another list")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: List = List("grants");

    #[test]
    fn a_cursor_is_read_by_its_own_list_only() {
        let id = Uuid::from_u128(7);
        let cursor = LIST.cursor(id.as_bytes());
        assert_eq!(LIST.id(&cursor).unwrap(), id);
        for other in ["principals", "grant", "grantss", "event-types", ""] {
            assert!(List(other).key(&cursor).is_err(), "{other}");
        }
    }

    #[test]
    fn a_cursor_with_any_character_changed_added_or_lost_is_refused() {
        let cursor = LIST.cursor(Uuid::from_u128(0x1234_5678).as_bytes());
        for place in 0..cursor.len() {
            for by in ['A', 'b', '7', '_', '=', 'é'] {
                let changed: String =
                    cursor.chars().enumerate().map(|(i, c)| if i == place { by } else { c }).collect();
                assert_eq!(LIST.key(&changed).is_ok(), changed == cursor, "{changed}");
            }
            let shorter: String = cursor.chars().take(place).collect();
            assert!(LIST.key(&shorter).is_err(), "{shorter}");
        }
        assert!(LIST.key(&format!("{cursor}A")).is_err());
    }
}
