//! What must differ between the databases: each folder's files open with the reason.

pub(crate) mod postgres;
pub(crate) mod sqlite;

/// Texts that exist for one database alone.
#[cfg(feature = "testing")]
pub(crate) static STATEMENTS: &[&crate::db::Statement] = &[
    &postgres::append::APPEND,
    &postgres::horizon::STATE,
    &postgres::claim::CLAIM,
    &sqlite::append::APPEND,
    &sqlite::horizon::STATE,
    &sqlite::claim::CLAIM,
];
