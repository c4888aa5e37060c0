//! Settings of the database.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::JsonSchema;

use super::ConfigError;
use super::layers::Layers;
use super::values::ValueProblem;
use crate::secrets::Secret;

/// The file of the embedded database in the data directory.
const EMBEDDED_FILE: &str = "courant.db";

/// The database.
#[derive(Clone, Debug)]
pub struct Database {
    /// `sqlite://…` or `postgres://…`; may hold a password.
    pub url: Secret,
    /// Whether none was configured, so that it is the embedded one in the data directory.
    pub is_default: bool,
}

/// Flags of the database.
#[derive(Clone, Debug, Default, clap::Args, JsonSchema)]
pub struct DatabaseArgs {
    /// sqlite://… or postgres://… (COURANT_DATABASE_URL; default: an embedded database in the data directory)
    #[arg(long, value_name = "URL")]
    #[schemars(with = "String", extend("writeOnly" = true))]
    pub database_url: Option<Secret>,

    /// File that holds the database URL (COURANT_DATABASE_URL_FILE)
    #[arg(long, value_name = "PATH")]
    #[schemars(with = "String")]
    pub database_url_file: Option<PathBuf>,
}

/// A database URL of a kind that we know.
struct DatabaseUrl(Secret);

impl FromStr for DatabaseUrl {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if ["sqlite:", "postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            Ok(Self(Secret::new(text.to_owned())))
        } else {
            Err(ValueProblem::new("is neither a sqlite:// nor a postgres:// URL"))
        }
    }
}

impl Database {
    pub(super) fn resolve(args: &DatabaseArgs, layers: &mut Layers<'_>, data_dir: &Path) -> Result<Self, ConfigError> {
        let given = layers.pick_secret::<DatabaseUrl>(
            "database_url",
            args.database_url.as_ref(),
            args.database_url_file.as_ref(),
        )?;
        if let Some(DatabaseUrl(url)) = given {
            return Ok(Self { url, is_default: false });
        }
        let url = format!("sqlite://{}", data_dir.join(EMBEDDED_FILE).display());
        Ok(Self { url: Secret::new(url), is_default: true })
    }
}
