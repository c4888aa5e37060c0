//! What can be wrong with a configuration, and where it was given.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value that the setting does not take.
    #[error("{origin}: {problem}")]
    Invalid {
        /// Where the value was given, and under which name.
        origin: Origin,
        /// What is wrong with it.
        problem: String,
    },
    /// A setting given both as a value and as a file.
    #[error("{value} and {file} are both given; keep one")]
    Both {
        /// Where the value was given.
        value: Origin,
        /// Where the file was named.
        file: Origin,
    },
    /// A setting that does not exist.
    #[error("`{key}` in {path} is not a setting")]
    UnknownKey {
        /// The name as it was written.
        key: String,
        /// The configuration file.
        path: PathBuf,
    },
    /// The configuration file is not TOML.
    #[error("{path} is not TOML, line {line}: {problem}")]
    NotToml {
        /// The configuration file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// The configuration file cannot be read.
    #[error("the configuration file {path} cannot be read")]
    Unreadable {
        /// The configuration file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Where a value was given, under the name that it has there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// On the command line.
    Flag(String),
    /// In the environment.
    Environment(String),
    /// In the configuration file.
    File {
        /// The setting.
        key: String,
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "{name} on the command line"),
            Self::Environment(name) => write!(f, "{name} in the environment"),
            Self::File { key, path } => write!(f, "{key} in {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_said_once_with_its_cause() {
        let source = io::Error::from(io::ErrorKind::NotFound);
        let cause = source.to_string();
        let error = anyhow::Error::from(ConfigError::Unreadable { path: "nope.toml".into(), source });
        let text = format!("{error:#}");
        assert_eq!(text.matches(&cause).count(), 1, "{text}");
        assert!(text.contains("nope.toml"), "{text}");
    }
}
