//! Which of our crates may depend on which. A crate without a row here is a violation, so a new one is a decision.

use super::Violations;
use super::facts::Member;

const ARROWS: &[(&str, &[&str])] = &[
    ("courant-cronspec", &[]),
    ("courant-api", &[]),
    ("courant-core", &["courant-api", "courant-cronspec"]),
    ("courant-store", &["courant-api", "courant-core"]),
    ("courant-client", &["courant-api"]),
    ("courant-providers", &["courant-api", "courant-core"]),
    (
        "courant-server",
        &["courant-api", "courant-client", "courant-core", "courant-cronspec", "courant-providers", "courant-store"],
    ),
    ("courant-pgtest", &[]),
    ("courant-testkit", &["courant-api", "courant-client", "courant-pgtest"]),
    (
        "courant-bench",
        &[
            "courant-api",
            "courant-client",
            "courant-core",
            "courant-pgtest",
            "courant-providers",
            "courant-server",
            "courant-store",
            "courant-testkit",
        ],
    ),
    ("xtask", &["courant-pgtest"]),
];

/// What tests of any crate may use besides, as well as the crate itself.
const TESTS_MAY_USE: &str = "courant-testkit";

pub(crate) fn check(members: &[Member]) -> Violations {
    let mut violations = Violations::new();
    for member in members {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == member.name) else {
            violations.push(format!("{} has no row in the table of arrows (xtask/src/arch/arrows.rs)", member.name));
            continue;
        };
        for link in &member.dependencies {
            let ours = members.iter().any(|other| other.name == link.name);
            let test_only = link.dev && (link.name == TESTS_MAY_USE || link.name == member.name);
            if ours && !test_only && !allowed.contains(&link.name.as_str()) {
                let kind = if link.dev { "dev-depend" } else { "depend" };
                violations.push(format!("{} must not {kind} on {}", member.name, link.name));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::facts::Link;

    fn member(name: &str, links: &[(&str, bool)]) -> Member {
        let link = |(name, dev): &(&str, bool)| Link { name: (*name).to_owned(), dev: *dev, optional: false };
        Member { name: name.to_owned(), dependencies: links.iter().map(link).collect() }
    }

    #[test]
    fn an_arrow_against_the_order_is_named() {
        let members = [
            member("courant-api", &[("serde", false), ("courant-core", false)]),
            member("courant-core", &[("courant-api", false), ("courant-store", true)]),
            member("courant-store", &[("courant-core", false)]),
        ];
        assert_eq!(
            check(&members),
            ["courant-api must not depend on courant-core", "courant-core must not dev-depend on courant-store"]
        );
    }

    #[test]
    fn the_test_kit_is_for_tests_only() {
        let members = [
            member("courant-testkit", &[]),
            member("courant-store", &[("courant-testkit", true), ("courant-store", true)]),
            member("courant-server", &[("courant-testkit", false)]),
        ];
        assert_eq!(check(&members), ["courant-server must not depend on courant-testkit"]);
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        assert!(check(&[member("courant-extra", &[])])[0].starts_with("courant-extra has no row"));
    }
}
