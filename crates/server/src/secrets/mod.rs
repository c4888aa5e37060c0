//! Secrets: the type that hides them, randomness, comparison, API keys, and the sealing of what is stored.
//!
//! A secret is never printed, never compared with `==`, and leaves its type only through `expose`, so that every use
//! can be found. Nothing here knows a database or a route.

pub mod api_key;
mod envelope;
mod ring;

use std::fmt;
use std::str::FromStr;

use rand::TryRng;
use rand::rngs::SysRng;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

pub use envelope::{OpenError, SealContext};
pub use ring::{KeyFileError, KeyRing, KeyRingProblem, MissingKey};

/// A text that must not be seen: Debug prints nothing of it, and it is wiped when dropped.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a text in.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(text.to_owned()))
    }
}

/// Whether two secrets are the same, in a time that tells nothing but their lengths.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// Fresh bytes from the operating system: the one source of secrets.
///
/// # Panics
/// When the operating system has no randomness to give; nothing secret can be made then.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_nothing_of_a_secret() {
        assert_eq!(format!("{:?}", Secret::new("hush".to_owned())), "[secret]");
    }

    #[test]
    fn equal_compares_every_byte_and_the_length() {
        assert!(equal(b"same", b"same"));
        assert!(!equal(b"same", b"samf"));
        assert!(!equal(b"same", b"sam"));
        assert!(!equal(b"", b"x"));
    }

    #[test]
    fn random_bytes_differ_from_call_to_call() {
        assert_ne!(random::<32>(), random::<32>());
    }
}
