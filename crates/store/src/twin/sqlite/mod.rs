//! SQLite's own texts.

pub(crate) mod append;
pub(crate) mod claim;
pub(crate) mod horizon;

pub(crate) use append::append;
