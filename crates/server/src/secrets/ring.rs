//! The key ring: the keys that wrap everything sealed, given by the operator or kept in a file of the data directory.
//!
//! The first key encrypts, all decrypt. No error and no Debug output ever holds a key, only its id.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::random;

/// Keys by id, in the operator's order; never empty.
#[derive(Clone)]
pub struct KeyRing {
    keys: Vec<(String, Zeroizing<[u8; 32]>)>,
}

/// A key ring that cannot be used as it is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingProblem {
    /// There is no key in it.
    #[error("the key ring is empty; it is `<key id>:<base64 of 32 bytes>`, comma separated")]
    Empty,
    /// An entry without an id.
    #[error("entry {0} of the key ring is not `<key id>:<base64 of 32 bytes>`")]
    Entry(usize),
    /// An id with other characters than it may have.
    #[error("the id of entry {0} of the key ring is not 1 to 64 letters, digits, `.`, `_` or `-`")]
    KeyId(usize),
    /// The key has another length or encoding.
    #[error("the key `{0}` is not the base64 of 32 bytes (`openssl rand -base64 32` makes one)")]
    Key(String),
    /// Two entries with one id.
    #[error("the key id `{0}` is in the key ring twice")]
    Twice(String),
}

/// The key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read or written.
    #[error("the key file {path} cannot be used")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is in it is not a key ring.
    #[error("{path}: {problem}")]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: KeyRingProblem,
    },
    /// Others may read it.
    #[error("{path} may be read by others (mode {mode:03o}); `chmod 600` it")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

/// The ring lacks a key that the database was sealed with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingKey {
    /// No key of this id.
    #[error("the database holds secrets sealed with the encryption key `{0}`, which the key ring lacks")]
    Absent(String),
    /// Another key under this id.
    #[error("the encryption key `{0}` is not the one that the database was sealed with")]
    Different(String),
}

impl KeyRing {
    /// Reads `<key id>:<base64 of 32 bytes>` entries, separated by commas or line ends.
    pub fn parse(text: &str) -> Result<Self, KeyRingProblem> {
        let mut keys: Vec<(String, Zeroizing<[u8; 32]>)> = Vec::new();
        let entries = text.split([',', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
        for (index, entry) in entries.enumerate() {
            let (id, key) = entry.split_once(':').ok_or(KeyRingProblem::Entry(index + 1))?;
            if !is_key_id(id) {
                return Err(KeyRingProblem::KeyId(index + 1));
            }
            if keys.iter().any(|(known, _)| known == id) {
                return Err(KeyRingProblem::Twice(id.to_owned()));
            }
            let bytes = STANDARD.decode(key).map(Zeroizing::new).ok();
            let key = bytes.and_then(|b| <[u8; 32]>::try_from(b.as_slice()).ok());
            keys.push((id.to_owned(), Zeroizing::new(key.ok_or_else(|| KeyRingProblem::Key(id.to_owned()))?)));
        }
        if keys.is_empty() { Err(KeyRingProblem::Empty) } else { Ok(Self { keys }) }
    }

    /// A ring of one fresh key, which lives as long as this value.
    pub fn generate() -> Self {
        let id = format!("k{:08x}", u32::from_be_bytes(random()));
        Self { keys: vec![(id, Zeroizing::new(random()))] }
    }

    /// Reads the ring from this file; makes a fresh one there, readable by its owner only, when there is no file.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyFileError> {
        let failed = |source| KeyFileError::Io { path: path.to_owned(), source };
        match fs::metadata(path) {
            Ok(found) => Self::load(path, found.permissions().mode() & 0o777),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let ring = Self::generate();
                ring.write_new(path).map_err(failed)?;
                Ok(ring)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn load(path: &Path, mode: u32) -> Result<Self, KeyFileError> {
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Open { path: path.to_owned(), mode });
        }
        let text = fs::read_to_string(path)
            .map(Zeroizing::new)
            .map_err(|source| KeyFileError::Io { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|problem| KeyFileError::Content { path: path.to_owned(), problem })
    }

    /// Durable before it returns: a key that was used and then lost takes every secret with it.
    fn write_new(&self, path: &Path) -> io::Result<()> {
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let (id, key) = self.first();
        let text = Zeroizing::new(format!("{id}:{}\n", STANDARD.encode(key)));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::File::open(directory)?.sync_all()
    }

    /// What the database stores of every key, so that a later start notices a missing or different one.
    pub fn check_values(&self) -> Vec<(String, Vec<u8>)> {
        self.keys.iter().map(|(id, key)| (id.clone(), check_value(id, key))).collect()
    }

    /// Whether this ring has every key whose check value the database stores.
    pub fn verify(&self, stored: &[(String, Vec<u8>)]) -> Result<(), MissingKey> {
        for (id, value) in stored {
            let key = self.find(id).ok_or_else(|| MissingKey::Absent(id.clone()))?;
            if !super::equal(&check_value(id, key), value) {
                return Err(MissingKey::Different(id.clone()));
            }
        }
        Ok(())
    }

    pub(super) fn first(&self) -> (&str, &[u8; 32]) {
        let (id, key) = self.keys.first().expect("a ring is never empty");
        (id, key)
    }

    pub(super) fn find(&self, id: &str) -> Option<&[u8; 32]> {
        self.keys.iter().find(|(known, _)| known == id).map(|(_, key)| &**key)
    }
}

impl std::str::FromStr for KeyRing {
    type Err = KeyRingProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(id, _)| id)).finish()
    }
}

fn is_key_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// A key has 256 random bits, so that its hash tells nothing of it.
fn check_value(id: &str, key: &[u8; 32]) -> Vec<u8> {
    Sha256::new().chain_update(b"courant key check v1\0").chain_update(key).chain_update(id).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const B: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    #[test]
    fn the_first_key_encrypts_and_all_are_found() {
        let ring = KeyRing::parse(&format!(" one:{A} ,\n two:{B}\n")).unwrap();
        assert_eq!(ring.first(), ("one", &[0; 32]));
        assert_eq!(ring.find("two"), Some(&[1; 32]));
        assert_eq!(ring.find("three"), None);
    }

    #[test]
    fn a_bad_ring_is_refused_by_name_and_without_its_keys() {
        for (text, problem) in [
            (" , ".to_owned(), KeyRingProblem::Empty),
            (format!("one:{A},{B}"), KeyRingProblem::Entry(2)),
            (format!("on e:{A}"), KeyRingProblem::KeyId(1)),
            (format!("{}:{A}", "x".repeat(65)), KeyRingProblem::KeyId(1)),
            ("one:AAAA".to_owned(), KeyRingProblem::Key("one".to_owned())),
            ("one:not base64!".to_owned(), KeyRingProblem::Key("one".to_owned())),
            (format!("one:{A},one:{B}"), KeyRingProblem::Twice("one".to_owned())),
        ] {
            let found = KeyRing::parse(&text).unwrap_err();
            assert_eq!(found, problem, "{text}");
            assert!(!found.to_string().contains("AAAA"), "{found}");
        }
    }

    #[test]
    fn debug_prints_ids_and_no_key() {
        let ring = KeyRing::parse(&format!("one:{A},two:{B}")).unwrap();
        assert_eq!(format!("{ring:?}"), r#"["one", "two"]"#);
    }

    #[test]
    fn a_start_with_a_missing_or_different_key_is_refused_by_its_id() {
        let stored = KeyRing::parse(&format!("one:{A},two:{B}")).unwrap().check_values();
        let ring = |text: String| KeyRing::parse(&text).unwrap();
        assert_eq!(ring(format!("three:{A},two:{B},one:{A}")).verify(&stored), Ok(()));
        assert_eq!(ring(format!("one:{A}")).verify(&stored), Err(MissingKey::Absent("two".to_owned())));
        assert_eq!(ring(format!("one:{B},two:{B}")).verify(&stored), Err(MissingKey::Different("one".to_owned())));
    }

    #[test]
    fn the_key_file_is_made_once_and_only_for_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data").join("encryption.key");
        let made = KeyRing::load_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let loaded = KeyRing::load_or_create(&path).unwrap();
        assert_eq!(loaded.first(), made.first());
    }

    #[test]
    fn a_key_file_that_others_may_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("encryption.key");
        KeyRing::load_or_create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = KeyRing::load_or_create(&path).unwrap_err();
        assert!(matches!(error, KeyFileError::Open { mode: 0o640, .. }), "{error}");
    }

    #[test]
    fn a_damaged_key_file_is_refused_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("encryption.key");
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        let error = KeyRing::load_or_create(&path).unwrap_err();
        assert!(matches!(error, KeyFileError::Content { problem: KeyRingProblem::Empty, .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"");
    }
}
