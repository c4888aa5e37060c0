//! Configuration: flags over `COURANT_*` environment over `courant.toml` over defaults.
//!
//! The only place that reads the environment. One name serves a setting everywhere: `notification_max_attempts` in
//! the file is `COURANT_NOTIFICATION_MAX_ATTEMPTS` and `--notification-max-attempts`. A file a section; each holds
//! what can be given and what comes of it. No error ever repeats a secret.

mod authorization;
mod database;
mod error;
mod exchange;
mod identity;
mod journal;
mod layers;
mod notify;
mod security;
mod server;
#[cfg(test)]
mod tests;
mod values;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::outbound::Egress;

pub use authorization::{Authorization, AuthorizationArgs, AuthorizeMode};
pub use database::{Database, DatabaseArgs};
pub use error::ConfigError;
pub use exchange::{Exchange, ExchangeArgs};
pub use identity::{Identity, IdentityArgs, IssuerList};
pub use journal::{Journal, JournalArgs, Retention};
use layers::Layers;
pub use notify::{Notify, NotifyArgs};
pub use security::{Security, SecurityArgs};
pub use server::{Server, ServerArgs};
pub use values::{BaseUrl, LogFilter, LogFormat, MaxAttempts, MaxSockets, Span};

/// Read when no other file is named and it exists.
const DEFAULT_FILE: &str = "courant.toml";

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens, keeps its data and logs.
    pub server: Server,
    /// Who is believed, answered and slowed down.
    pub exchange: Exchange,
    /// Where events live.
    pub database: Database,
    /// How long events are kept.
    pub journal: Journal,
    /// How notifications are sent.
    pub notify: Notify,
    /// Whose tokens are accepted.
    pub identity: Identity,
    /// How it is decided what somebody may do.
    pub authorization: Authorization,
    /// Secrets of the server itself.
    pub security: Security,
}

/// The settings as flags of a command.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServeArgs {
    /// Configuration file (COURANT_CONFIG; default courant.toml where it exists)
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Flags of their section.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Flags of their section.
    #[command(flatten)]
    pub exchange: ExchangeArgs,
    /// Flags of their section.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Flags of their section.
    #[command(flatten)]
    pub journal: JournalArgs,
    /// Flags of their section.
    #[command(flatten)]
    pub notify: NotifyArgs,
    /// Flags of their section.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// Flags of their section.
    #[command(flatten)]
    pub authorization: AuthorizationArgs,
    /// Flags of their section.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// Configuration of a Courant server.
#[derive(JsonSchema)]
#[schemars(title = "courant.toml")]
#[expect(dead_code, reason = "only its schema is used: the file is read setting by setting")]
struct File {
    #[schemars(flatten)]
    server: ServerArgs,
    #[schemars(flatten)]
    exchange: ExchangeArgs,
    #[schemars(flatten)]
    database: DatabaseArgs,
    #[schemars(flatten)]
    journal: JournalArgs,
    #[schemars(flatten)]
    notify: NotifyArgs,
    #[schemars(flatten)]
    identity: IdentityArgs,
    #[schemars(flatten)]
    authorization: AuthorizationArgs,
    #[schemars(flatten)]
    security: SecurityArgs,
}

impl Config {
    /// Puts the layers together: these flags, this process's environment, the file.
    pub fn load(args: &ServeArgs) -> Result<Self, ConfigError> {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
        let env = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let named = args.config.clone().or_else(|| env("COURANT_CONFIG").filter(|p| !p.is_empty()).map(PathBuf::from));
        let path = named.or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()));
        let text = path.as_deref().map(read_file).transpose()?;
        Self::resolve(args, &env, path.as_deref().zip(text.as_deref()))
    }

    /// The same as a function of its inputs; `file` is the path to name in errors and the text. Reads nothing but the
    /// files that `…_file` settings name.
    pub fn resolve(
        args: &ServeArgs,
        env: &dyn Fn(&str) -> Option<String>,
        file: Option<(&Path, &str)>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Layers::new(env, file)?;
        let server = Server::resolve(&args.server, &mut layers)?;
        let config = Self {
            exchange: Exchange::resolve(&args.exchange, &mut layers)?,
            database: Database::resolve(&args.database, &mut layers, &server.data_dir)?,
            journal: Journal::resolve(&args.journal, &mut layers)?,
            notify: Notify::resolve(&args.notify, &mut layers)?,
            identity: Identity::resolve(&args.identity, &mut layers)?,
            authorization: Authorization::resolve(&args.authorization, &mut layers)?,
            security: Security::resolve(&args.security, &mut layers)?,
            server,
        };
        layers.finish()?;
        Ok(config)
    }

    /// What may be reached beyond the public internet: what the operator lists, else nothing; and this machine itself
    /// as long as the server serves only this machine.
    pub fn egress(&self) -> Egress {
        match &self.notify.egress_allow {
            Some(given) => given.clone(),
            None if self.is_first_trial() => Egress::default().allow_loopback(),
            None => Egress::default(),
        }
    }

    /// What to tell the operator when this machine may be reached without having been listed.
    pub fn egress_note(&self) -> Option<&'static str> {
        (self.notify.egress_allow.is_none() && self.is_first_trial()).then_some(
            "integrations may deliver to this machine (loopback), because the server serves only this machine; \
             set COURANT_EGRESS_ALLOW, a public base URL, a database or another listen address to change that",
        )
    }

    /// Nothing is configured as it would be for others to use.
    fn is_first_trial(&self) -> bool {
        self.database.is_default && self.server.listen.ip().is_loopback() && self.server.public_base_url.is_none()
    }

    /// JSON Schema of the configuration file.
    pub fn json_schema() -> Value {
        let generator = SchemaSettings::draft2020_12().into_generator();
        let mut schema = generator.into_root_schema_for::<File>();
        schema.remove("required");
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        schema.to_value()
    }
}

fn read_file(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })
}
