//! Statements: one text for both databases.
//!
//! A text is written for PostgreSQL with `$1…` parameters and a few markers in braces that the seam expands:
//!
//! | marker | PostgreSQL | SQLite |
//! |---|---|---|
//! | `{texts $n}`, `{uuids $n}` | rows `value` of an array parameter | rows `value` of a JSON parameter |
//! | `{each c} SELECT c … {end each}` | a lateral subquery: rows `value` for each row on its left | the same |
//! | `{for update}`, `{for update skip locked}`, `{for share}` | the row lock | nothing: there is one writer |
//!
//! Where two texts must differ they stand in `twin/`, with the reason.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which database a text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Postgres,
    Sqlite,
}

/// A statement that the code executes, declared once with [`statements!`].
#[derive(Debug)]
pub struct Statement {
    pub name: &'static str,
    text: &'static str,
    only: Option<Dialect>,
    postgres: OnceLock<String>,
    sqlite: OnceLock<String>,
    runs: [AtomicU64; 2],
    #[cfg(feature = "testing")]
    pub examined: AtomicU64,
}

impl Statement {
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self::of(name, text, None)
    }

    const fn of(name: &'static str, text: &'static str, only: Option<Dialect>) -> Self {
        Self {
            name,
            text,
            only,
            postgres: OnceLock::new(),
            sqlite: OnceLock::new(),
            runs: [const { AtomicU64::new(0) }; 2],
            #[cfg(feature = "testing")]
            examined: AtomicU64::new(0),
        }
    }

    /// A text for one of the databases alone.
    pub const fn only(name: &'static str, dialect: Dialect, text: &'static str) -> Self {
        Self::of(name, text, Some(dialect))
    }

    /// Whether this database ever sees it.
    pub fn is_for(&self, dialect: Dialect) -> bool {
        self.only.is_none_or(|only| only == dialect)
    }

    /// The text that this database gets.
    pub fn text(&self, dialect: Dialect) -> &str {
        debug_assert!(self.is_for(dialect), "{} is not for {dialect:?}", self.name);
        match dialect {
            Dialect::Postgres => self.postgres.get_or_init(|| expand(self.text, dialect)),
            Dialect::Sqlite => self.sqlite.get_or_init(|| expand(self.text, dialect)),
        }
    }

    /// Counts an execution, so that the suite can name statements it never ran.
    pub fn count(&self, dialect: Dialect) {
        self.runs[dialect as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often this process has executed it on that database.
    #[cfg(feature = "testing")]
    pub fn runs(&self, dialect: Dialect) -> u64 {
        self.runs[dialect as usize].load(Ordering::Relaxed)
    }
}

fn expand(text: &str, dialect: Dialect) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('{') {
        out.push_str(before);
        let (marker, after) = from.split_once('}').unwrap_or((from, ""));
        out.push_str(&expand_marker(marker, dialect));
        rest = after;
    }
    out.push_str(rest);
    match dialect {
        Dialect::Postgres => out,
        Dialect::Sqlite => number_parameters(&out),
    }
}

fn expand_marker(marker: &str, dialect: Dialect) -> String {
    let (word, parameter) = marker.split_once(' ').unwrap_or((marker, ""));
    match (word, dialect) {
        ("for", Dialect::Postgres) => marker.to_uppercase(),
        ("for", Dialect::Sqlite) => String::new(),
        ("texts", Dialect::Postgres) => format!("(SELECT unnest(CAST({parameter} AS text[])) AS value)"),
        ("texts", Dialect::Sqlite) => format!("(SELECT value FROM json_each({parameter}))"),
        ("uuids", Dialect::Postgres) => format!("(SELECT unnest(CAST({parameter} AS uuid[])) AS value)"),
        ("uuids", Dialect::Sqlite) => format!("(SELECT unhex(value) AS value FROM json_each({parameter}))"),
        ("each", Dialect::Postgres) => format!("LATERAL (SELECT each_row.{parameter} AS value FROM ("),
        ("end", Dialect::Postgres) => ") each_row)".into(),
        // A table-valued function may look at what stands on its left, a subquery may not.
        ("each", Dialect::Sqlite) => format!("json_each((SELECT json_group_array(each_row.{parameter}) FROM ("),
        ("end", Dialect::Sqlite) => ") each_row))".into(),
        // Left as it stands, so that preparing the statement fails and names it.
        _ => format!("{{{marker}}}"),
    }
}

/// SQLite takes `$1` for a name and numbers names by first use; `?1` is the number itself. No text holds a `$` else.
fn number_parameters(text: &str) -> String {
    text.replace('$', "?")
}

/// Declares the statements of a noun and lists them for the tests: `NAME = "text";`.
macro_rules! statements {
    ($noun:literal: $($(#[$doc:meta])* $name:ident $(only $dialect:ident)? = $text:expr;)+) => {
        $($(#[$doc])* pub(crate) static $name: $crate::db::Statement =
            statements!(@new concat!($noun, ".", stringify!($name)), $text $(, $dialect)?);)+

        #[cfg(feature = "testing")]
        pub(crate) static STATEMENTS: &[&$crate::db::Statement] = &[$(&$name),+];
    };
    (@new $name:expr, $text:expr) => { $crate::db::Statement::new($name, $text) };
    (@new $name:expr, $text:expr, $dialect:ident) => {
        $crate::db::Statement::only($name, $crate::db::Dialect::$dialect, $text)
    };
}
pub(crate) use statements;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_and_parameters_are_expanded_for_each_database() {
        let text = "SELECT a FROM t WHERE id IN {uuids $1} AND n > $2 {for update skip locked}";
        assert_eq!(
            expand(text, Dialect::Postgres),
            "SELECT a FROM t WHERE id IN (SELECT unnest(CAST($1 AS uuid[])) AS value) AND n > $2 FOR UPDATE SKIP LOCKED"
        );
        assert_eq!(
            expand(text, Dialect::Sqlite),
            "SELECT a FROM t WHERE id IN (SELECT unhex(value) AS value FROM json_each(?1)) AND n > ?2 "
        );
    }
}
