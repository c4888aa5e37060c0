//! Database drivers and SQL stay in the store; the client may bring one in for its cursor stores, behind a feature.

use super::Violations;
use super::facts::{Member, SourceFile};

const DRIVERS: &[&str] = &[
    "deadpool-postgres",
    "diesel",
    "libsqlite3-sys",
    "postgres",
    "rusqlite",
    "sqlx",
    "tokio-postgres",
    "tokio-postgres-rustls",
];

/// Crates that may depend on a driver in any way, and their folders.
const AT_HOME: &[(&str, &str)] = &[
    ("courant-store", "crates/store/"),
    ("courant-testkit", "crates/testkit/"),
    ("courant-pgtest", "crates/pgtest/"),
    ("courant-bench", "bench/"),
    ("xtask", "xtask/"),
];
const CLIENT: (&str, &str) = ("courant-client", "crates/client/");

/// How SQL looks in a Rust string.
const SQL: &[&str] = &["\"SELECT ", "\"INSERT INTO ", "\"DELETE FROM ", "\"CREATE TABLE "];

pub(crate) fn check_dependencies(members: &[Member]) -> Violations {
    let mut violations = Violations::new();
    for member in members.iter().filter(|member| AT_HOME.iter().all(|(name, _)| *name != member.name)) {
        for link in member.dependencies.iter().filter(|link| is_driver(&link.name)) {
            if member.name != CLIENT.0 {
                violations.push(format!("{} must not depend on the driver {}", member.name, link.name));
            } else if !link.optional && !link.dev {
                violations.push(format!("{} may depend on {} only behind a feature", member.name, link.name));
            }
        }
    }
    violations
}

pub(crate) fn check_sources(files: &[SourceFile]) -> Violations {
    let mut violations = Violations::new();
    let modules: Vec<String> =
        DRIVERS.iter().filter(|name| **name != "postgres").map(|name| name.replace('-', "_")).collect();
    let at_home = |path: &str| AT_HOME.iter().chain([&CLIENT]).any(|(_, folder)| path.starts_with(folder));
    for file in files.iter().filter(|file| file.is_rust() && !at_home(&file.path)) {
        for (number, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, number + 1);
            if let Some(driver) = modules.iter().find(|module| mentions(line, module)) {
                violations.push(format!("{place} mentions the driver {driver}"));
            }
            if SQL.iter().any(|start| line.contains(start)) {
                violations.push(format!("{place} contains SQL"));
            }
        }
    }
    violations
}

fn is_driver(name: &str) -> bool {
    DRIVERS.contains(&name) || name.starts_with("postgres-")
}

/// Whether the line uses the module in code: `use rusqlite…` or `rusqlite::…`. Prose and log filters may name it.
fn mentions(line: &str, module: &str) -> bool {
    line.contains(&format!("{module}::")) || line.contains(&format!("use {module};"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::facts::Link;

    fn member(name: &str, driver: &str, optional: bool) -> Member {
        let link = Link { name: driver.to_owned(), dev: false, optional };
        Member { name: name.to_owned(), dependencies: vec![link] }
    }

    #[test]
    fn a_driver_outside_the_store_is_named() {
        let members = [
            member("courant-store", "rusqlite", false),
            member("courant-server", "tokio-postgres", false),
            member("courant-core", "postgres-types", true),
        ];
        assert_eq!(
            check_dependencies(&members),
            [
                "courant-server must not depend on the driver tokio-postgres",
                "courant-core must not depend on the driver postgres-types"
            ]
        );
    }

    #[test]
    fn the_client_may_have_a_driver_only_behind_a_feature() {
        assert!(check_dependencies(&[member("courant-client", "rusqlite", true)]).is_empty());
        assert_eq!(
            check_dependencies(&[member("courant-client", "rusqlite", false)]),
            ["courant-client may depend on rusqlite only behind a feature"]
        );
    }

    #[test]
    fn code_outside_the_store_that_uses_a_driver_or_sql_is_named() {
        let file = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file("crates/store/src/event.rs", "use rusqlite::Row;\n\"SELECT 1\""),
            file("crates/server/src/a.rs", "\n    rusqlite::Connection::open(x)"),
            file("crates/core/src/b.rs", "// as rusqlite does\nlet sql = \"SELECT 1\";"),
        ];
        assert_eq!(
            check_sources(&files),
            ["crates/server/src/a.rs:2 mentions the driver rusqlite", "crates/core/src/b.rs:2 contains SQL"]
        );
    }
}
