//! Bounds on text that people and programs send.

use serde_json::{Map, Value};

use crate::http::ApiError;

/// A name: `1..=max` characters, not blank at its ends, without control characters.
pub(super) fn name(pointer: &str, text: &str, max: usize) -> Result<(), ApiError> {
    let count = text.chars().count();
    if count == 0 || count > max {
        return Err(ApiError::invalid_field(pointer, &format!("must have 1 to {max} characters")));
    }
    if text.trim() != text {
        return Err(ApiError::invalid_field(pointer, "must not begin or end with white space"));
    }
    line(pointer, text, max)
}

/// At most `max` characters, none of them a control character.
pub(super) fn line(pointer: &str, text: &str, max: usize) -> Result<(), ApiError> {
    if text.chars().count() > max {
        return Err(ApiError::invalid_field(pointer, &format!("must have at most {max} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(ApiError::invalid_field(pointer, "must not hold control characters"));
    }
    Ok(())
}

/// At most `max` bytes of JSON.
pub(super) fn json(pointer: &str, value: &Map<String, Value>, max: usize) -> Result<(), ApiError> {
    if serde_json::to_vec(value).map_or(usize::MAX, |json| json.len()) > max {
        return Err(ApiError::invalid_field(pointer, &format!("must have at most {max} bytes of JSON")));
    }
    Ok(())
}

/// At most `max` characters, with line breaks and tabs but no other control character.
pub(super) fn prose(pointer: &str, text: &str, max: usize) -> Result<(), ApiError> {
    if text.chars().count() > max {
        return Err(ApiError::invalid_field(pointer, &format!("must have at most {max} characters")));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(ApiError::invalid_field(
            pointer,
            "must not hold control characters other than line breaks and tabs",
        ));
    }
    Ok(())
}
