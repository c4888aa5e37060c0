//! Which packages may be in the build at all, and where they may come from.

use super::Violations;
use super::facts::Package;

const BANNED: &[(&str, &str)] = &[
    ("chrono", "times are jiff's or microseconds"),
    ("native-tls", "TLS is rustls"),
    ("openssl", "TLS is rustls"),
    ("openssl-sys", "TLS is rustls"),
    ("ring", "cryptography is aws-lc-rs; two of a kind double the build"),
    ("rsa", "its timing leaks keys (RUSTSEC-2023-0071)"),
    ("sqlx", "it can return a connection to the pool inside an open transaction"),
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn check_bans(packages: &[Package]) -> Violations {
    let banned = |package: &Package| {
        let (_, reason) = BANNED.iter().find(|(name, _)| *name == package.name)?;
        Some(format!("{} {} is in the build: {reason}", package.name, package.version))
    };
    packages.iter().filter_map(banned).collect()
}

pub(crate) fn check_sources(packages: &[Package]) -> Violations {
    let foreign = |package: &Package| {
        let source = package.source.as_deref().filter(|source| *source != CRATES_IO)?;
        Some(format!("{} {} comes from {source}, not from crates.io", package.name, package.version))
    };
    packages.iter().filter_map(foreign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, source: Option<&str>) -> Package {
        Package { name: name.to_owned(), version: "1.0.0".to_owned(), licence: None, source: source.map(str::to_owned) }
    }

    #[test]
    fn a_banned_package_is_named_with_the_reason() {
        let packages = [package("rustls", Some(CRATES_IO)), package("openssl-sys", Some(CRATES_IO))];
        assert_eq!(check_bans(&packages), ["openssl-sys 1.0.0 is in the build: TLS is rustls"]);
    }

    #[test]
    fn a_package_from_elsewhere_is_named() {
        let packages = [
            package("courant-api", None),
            package("serde", Some(CRATES_IO)),
            package("fork", Some("git+https://example.com/fork#abc")),
        ];
        assert_eq!(
            check_sources(&packages),
            ["fork 1.0.0 comes from git+https://example.com/fork#abc, not from crates.io"]
        );
    }
}
