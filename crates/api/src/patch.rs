//! Fields of patches that can be set, set to null, or left alone.

use serde::{Deserialize, Deserializer};

/// `Some(None)` for null; `None` only by `#[serde(default)]`, when the field is absent.
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
