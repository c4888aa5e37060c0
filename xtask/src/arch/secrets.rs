//! Secrets are never compared with `==`: the time that takes tells how much of a guess was right. So their types cannot
//! be compared at all, and one function compares bytes.

use super::Violations;
use super::facts::SourceFile;

/// Where the types of secrets live.
const HOME: &str = "crates/server/src/secrets/";
/// The file of the one comparison.
const COMPARES: &str = "crates/server/src/secrets/mod.rs";
/// Types that hold a secret: as they are declared there.
const TYPES: &[&str] = &["struct Secret(", "struct ApiKeySecret(", "struct KeyRing {"];
/// Ways to compare in constant time, or to look into a secret in order to compare it.
const BY_HAND: &[&str] =
    &["ct_eq(", "ConstantTimeEq", "expose() ==", "expose() !=", "== secret.expose", "!= secret.expose"];

pub(crate) fn check(files: &[SourceFile]) -> Violations {
    let mut violations = Violations::new();
    for file in files.iter().filter(|file| file.is_rust() && file.path.starts_with("crates/server/src/")) {
        let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines: Vec<&str> = code.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let place = format!("{}:{}", file.path, number + 1);
            if file.path.starts_with(HOME) && TYPES.iter().any(|name| line.contains(name)) {
                let attributes = lines.iter().take(number).rev().take_while(|line| line.starts_with("#["));
                if attributes.into_iter().any(|line| line.contains("PartialEq")) {
                    violations.push(format!("{place} is a secret that can be compared with =="));
                }
            }
            if file.path.starts_with(HOME) && TYPES.iter().any(|name| is_equality_of(line, name)) {
                violations.push(format!("{place} lets a secret be compared with =="));
            }
            if file.path != COMPARES && BY_HAND.iter().any(|way| line.contains(way)) {
                violations.push(format!("{place} compares a secret by itself; `secrets::equal` is the one comparison"));
            }
        }
    }
    violations
}

/// `impl PartialEq for Secret`, from `struct Secret(`.
fn is_equality_of(line: &str, declared: &str) -> bool {
    let name = declared.trim_start_matches("struct ").trim_end_matches(['(', '{', ' ']);
    line.contains("PartialEq") && line.contains(&format!("for {name} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(path: &str, text: &str) -> Violations {
        check(&[SourceFile { path: path.to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn a_secret_that_can_be_compared_is_named() {
        let derived = "/// A text.\n#[derive(Clone, PartialEq, Eq)]\npub struct Secret(String);";
        assert_eq!(violations(COMPARES, derived), [format!("{COMPARES}:3 is a secret that can be compared with ==")]);
        let written = "impl PartialEq for KeyRing {";
        let ring = "crates/server/src/secrets/ring.rs";
        assert_eq!(violations(ring, written), [format!("{ring}:1 lets a secret be compared with ==")]);
        assert!(violations(COMPARES, "#[derive(Clone, Default)]\npub struct Secret(String);").is_empty());
        assert!(violations(ring, "#[derive(PartialEq)]\npub enum KeyRingProblem {").is_empty());
    }

    #[test]
    fn a_comparison_away_from_home_is_named() {
        let elsewhere = "crates/server/src/http/a.rs";
        for line in ["a.ct_eq(b)", "if key.expose() == given {"] {
            let told = "compares a secret by itself; `secrets::equal` is the one comparison";
            assert_eq!(violations(elsewhere, line), [format!("{elsewhere}:1 {told}")]);
        }
        assert!(violations(COMPARES, "a.ct_eq(b)").is_empty());
        assert!(violations(elsewhere, "equal(a.expose().as_bytes(), b)\n#[cfg(test)]\na.expose() == b").is_empty());
    }
}
