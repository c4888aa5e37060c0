//! Crates that describe and decide must not be able to do: no runtime, no socket, no database, not even through others.

use std::collections::{BTreeMap, BTreeSet};

use super::Violations;

/// The crates that stay pure.
pub(crate) const PURE: &[&str] = &["courant-api", "courant-core", "courant-cronspec", "courant-providers"];

const IMPURE: &[&str] = &["axum", "hyper", "mio", "reqwest", "rusqlite", "socket2", "tokio", "tokio-postgres"];

pub(crate) fn check(closures: &BTreeMap<String, BTreeSet<String>>) -> Violations {
    let found = |(name, closure): (&String, &BTreeSet<String>)| {
        let impure: Vec<&str> = IMPURE.iter().copied().filter(|impure| closure.contains(*impure)).collect();
        (!impure.is_empty())
            .then(|| format!("{name} must stay pure, but its dependencies bring in {}", impure.join(", ")))
    };
    closures.iter().filter_map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_comes_in_through_others_is_named() {
        let closure = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let closures = BTreeMap::from([
            ("courant-api".to_owned(), closure(&["serde", "uuid"])),
            ("courant-core".to_owned(), closure(&["courant-api", "reqwest", "serde", "tokio"])),
        ]);
        assert_eq!(check(&closures), ["courant-core must stay pure, but its dependencies bring in reqwest, tokio"]);
    }
}
