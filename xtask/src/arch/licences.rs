//! Every package in the build must be usable under a licence we accept; its SPDX expression decides.

use super::Violations;
use super::facts::Package;

const ACCEPTED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// One package, the one further licence accepted for it, and why.
pub(crate) type Exception = (&'static str, &'static str, &'static str);

/// Single packages under a licence that is not accepted in general.
pub(crate) const EXCEPTIONS: &[Exception] = &[];

pub(crate) fn check(packages: &[Package], exceptions: &[Exception]) -> Violations {
    let mut violations = Violations::new();
    for package in packages {
        let at = format!("{} {}", package.name, package.version);
        let Some(expression) = &package.licence else {
            violations.push(format!("{at} states no licence"));
            continue;
        };
        let accepted = |licence: &str| {
            let excepted = |(name, also, _): &Exception| *name == package.name && *also == licence;
            ACCEPTED.contains(&licence) || exceptions.iter().any(excepted)
        };
        match Parser::satisfied(expression, &accepted) {
            Some(true) => {}
            Some(false) => violations.push(format!("{at} is under `{expression}`, which we do not accept")),
            None => violations.push(format!("{at} states `{expression}`, which is no SPDX expression")),
        }
    }
    violations
}

/// A recursive descent over an SPDX expression; AND binds tighter than OR. `None` means it cannot be read.
struct Parser<'a> {
    tokens: Vec<&'a str>,
    next: usize,
    accepted: &'a dyn Fn(&str) -> bool,
}

impl<'a> Parser<'a> {
    fn satisfied(expression: &str, accepted: &'a dyn Fn(&str) -> bool) -> Option<bool> {
        // Older packages write `MIT/Apache-2.0` for OR.
        let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let mut parser = Parser { tokens: spaced.split_whitespace().collect(), next: 0, accepted };
        let result = parser.any()?;
        (parser.next == parser.tokens.len()).then_some(result)
    }

    fn any(&mut self) -> Option<bool> {
        let mut result = self.all()?;
        while self.take("OR") {
            result |= self.all()?;
        }
        Some(result)
    }

    fn all(&mut self) -> Option<bool> {
        let mut result = self.one()?;
        while self.take("AND") {
            result &= self.one()?;
        }
        Some(result)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let result = self.any()?;
            return self.take(")").then_some(result);
        }
        let licence = self.word()?;
        if self.take("WITH") {
            let exception = self.word()?;
            return Some((self.accepted)(&format!("{licence} WITH {exception}")));
        }
        Some((self.accepted)(licence))
    }

    fn word(&mut self) -> Option<&'a str> {
        let word = *self.tokens.get(self.next)?;
        self.next += 1;
        (!["AND", "OR", "WITH", "(", ")"].contains(&word)).then_some(word)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.tokens.get(self.next) == Some(&token);
        self.next += usize::from(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(licence: Option<&str>, exceptions: &[Exception]) -> Violations {
        let package = Package {
            name: "thing".to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            source: None,
        };
        check(&[package], exceptions)
    }

    #[test]
    fn a_choice_needs_one_accepted_licence_and_a_sum_all_of_them() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR LGPL-2.1-or-later",
            "ISC AND (Apache-2.0 OR GPL-3.0-only)",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
            "GPL-3.0-only AND MIT OR ISC",
        ] {
            assert_eq!(check_one(Some(good), &[]), Violations::new(), "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR ISC) AND AGPL-3.0-only", "MIT WITH Odd-exception"]
        {
            assert_eq!(check_one(Some(bad), &[]), [format!("thing 1.0.0 is under `{bad}`, which we do not accept")]);
        }
    }

    #[test]
    fn a_licence_that_is_missing_or_unreadable_is_named() {
        assert_eq!(check_one(None, &[]), ["thing 1.0.0 states no licence"]);
        for bad in ["", "MIT OR", "(MIT", "MIT ISC", "AND MIT"] {
            let expected = format!("thing 1.0.0 states `{bad}`, which is no SPDX expression");
            assert_eq!(check_one(Some(bad), &[]), [expected]);
        }
    }

    #[test]
    fn an_exception_holds_for_its_package_and_licence_only() {
        let exception = |package, licence| [(package, licence, "only data")];
        assert!(check_one(Some("OFL-1.1"), &exception("thing", "OFL-1.1")).is_empty());
        assert_eq!(check_one(Some("OFL-1.1"), &exception("other", "OFL-1.1")).len(), 1);
        assert_eq!(check_one(Some("OFL-1.1"), &exception("thing", "OFL-1.0")).len(), 1);
    }
}
