//! Reads a provider's settings and secrets field by field, and says exactly which one is refused.
//!
//! It must never put a value into an error: what is refused may be a secret.

use courant_core::delivery::{Failure, FailureClass};
use serde_json::{Map, Value};

use crate::ConfigError;

/// An error at the field that these keys lead to.
pub(crate) fn refuse(path: &[&str], message: impl Into<String>) -> ConfigError {
    let mut pointer = String::new();
    for key in path {
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    }
    ConfigError { pointer, message: message.into() }
}

/// Refuses every key that is not `known`.
pub(crate) fn only(map: &Map<String, Value>, known: &[&str]) -> Result<(), ConfigError> {
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(unknown) => Err(refuse(&[unknown], format!("is not known; known are: {}", known.join(", ")))),
        None => Ok(()),
    }
}

/// A string that may be left out.
pub(crate) fn optional<'a>(map: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, ConfigError> {
    match map.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(refuse(&[key], "must be a string")),
    }
}

/// A string that must be there.
pub(crate) fn required<'a>(map: &'a Map<String, Value>, key: &str) -> Result<&'a str, ConfigError> {
    optional(map, key)?.ok_or_else(|| refuse(&[key], "is required"))
}

impl ConfigError {
    /// The same, met at rendering: what is stored can no longer be used.
    pub(crate) fn failure(&self, class: FailureClass) -> Failure {
        Failure::new(class, format!("configuration: {self}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_escapes_its_keys() {
        assert_eq!(refuse(&["headers", "a/b~c"], "no").pointer, "/headers/a~1b~0c");
    }
}
