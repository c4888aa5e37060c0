//! The rules: what happens next, as functions of values.
//!
//! Nothing here does I/O, awaits, or reads a clock or randomness: time and chance are arguments. The server, the
//! store and the tests call the same functions.

#![warn(missing_docs)]

pub mod access;
pub mod announce;
pub mod catalogue;
pub mod delivery;
pub mod deployment;
pub mod findings;
pub mod lifecycle;
pub mod links;
pub mod payload;
pub mod place;
mod pointer;
pub mod redact;
