//! What JSON text can be kept byte for byte and read back by everybody.
//!
//! A payload is stored and handed out as the text that came in. So what readers would not agree on is refused before:
//! duplicate keys, `\u0000`, lone surrogates, numbers beyond a double, deep nesting. It must never change the text.

use serde::Serialize;

mod scanner;

/// Most faults that are told of one text.
pub const MAX_FAULTS: usize = 20;

/// How large a text may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole text.
    pub max_bytes: usize,
    /// Objects and arrays inside one another, the outermost included.
    pub max_depth: usize,
}

/// One thing that is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What, for people.
    pub message: String,
    /// Whether it is no JSON at all.
    #[serde(skip)]
    pub kind: FaultKind,
}

/// What kind of fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// It is not JSON; nothing after this fault was looked at.
    Syntax,
    /// It is JSON that cannot be kept.
    Unkeepable,
}

/// Checks a text in one pass. It tells at most [`MAX_FAULTS`] faults, in the order in which they were met; duplicate
/// keys are met at the end of their object. What lies deeper than the limit is only checked for syntax.
pub fn check(text: &str, limits: &Limits) -> Result<(), Vec<Fault>> {
    if text.len() > limits.max_bytes {
        let message = format!("longer than {} bytes", limits.max_bytes);
        return Err(vec![Fault { pointer: String::new(), message, kind: FaultKind::Unkeepable }]);
    }
    let faults = scanner::scan(text, limits.max_depth);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

#[cfg(test)]
mod tests;
