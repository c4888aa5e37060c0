//! Secrets of the server itself. They have no flags: a command line is seen by every user of the machine.

use std::path::PathBuf;

use schemars::JsonSchema;

use super::ConfigError;
use super::layers::Layers;
use crate::secrets::{KeyRing, Secret};

/// Secrets of the server itself.
#[derive(Clone, Debug)]
pub struct Security {
    /// What `POST /api/v1/bootstrap` asks for; without it that route refuses.
    pub bootstrap_secret: Option<Secret>,
    /// The operator's key ring; without it one is kept in the data directory.
    pub encryption_keys: Option<KeyRing>,
}

/// Flags of the secrets, and the secrets that only environment and file can give.
#[derive(Clone, Debug, Default, clap::Args, JsonSchema)]
pub struct SecurityArgs {
    /// Secret for making tenants over HTTP (COURANT_BOOTSTRAP_SECRET; without it that is refused)
    #[arg(skip)]
    #[schemars(with = "String", extend("writeOnly" = true))]
    pub bootstrap_secret: Option<Secret>,

    /// File that holds the secret for making tenants over HTTP (COURANT_BOOTSTRAP_SECRET_FILE, or the secret itself in
    /// COURANT_BOOTSTRAP_SECRET; without either that is refused)
    #[arg(long, value_name = "PATH")]
    #[schemars(with = "String")]
    pub bootstrap_secret_file: Option<PathBuf>,

    /// Key ring for stored secrets: `id:base64-of-32-bytes`, comma-separated; the first encrypts, all decrypt
    /// (COURANT_ENCRYPTION_KEYS; default: encryption.key in the data directory, made on first start)
    #[arg(skip)]
    #[schemars(with = "String", extend("writeOnly" = true))]
    pub encryption_keys: Option<Secret>,

    /// File that holds the key ring for stored secrets (COURANT_ENCRYPTION_KEYS_FILE, or the ring itself in
    /// COURANT_ENCRYPTION_KEYS; default: encryption.key in the data directory, made on first start)
    #[arg(long, value_name = "PATH")]
    #[schemars(with = "String")]
    pub encryption_keys_file: Option<PathBuf>,
}

impl Security {
    pub(super) fn resolve(args: &SecurityArgs, layers: &mut Layers<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            bootstrap_secret: layers.pick_secret(
                "bootstrap_secret",
                args.bootstrap_secret.as_ref(),
                args.bootstrap_secret_file.as_ref(),
            )?,
            encryption_keys: layers.pick_secret(
                "encryption_keys",
                args.encryption_keys.as_ref(),
                args.encryption_keys_file.as_ref(),
            )?,
        })
    }
}
