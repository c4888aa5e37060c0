//! `courant bootstrap`: on the database itself, beside a running server too.

use anyhow::{Result, bail};
use clap::Args;
use courant_api::access::TenantBootstrap;
use courant_store::{Changed, Options, Store};

use super::output::line;
use crate::config::{Config, ServeArgs};
use crate::ops::access;

#[derive(Args)]
pub(super) struct BootstrapArgs {
    /// The tenant's name.
    #[arg(long)]
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ServeArgs,
}

pub(super) async fn run(args: BootstrapArgs) -> Result<()> {
    let config = Config::load(&args.config)?;
    let store = Store::open(&Options::command(config.database.url.expose())).await?;
    let body = TenantBootstrap { name: args.name };
    let Changed::Now(made) = access::tenant_bootstrap(&store, None, body).await? else {
        bail!("the tenant was not made");
    };
    if args.json {
        return line(serde_json::to_string(&made)?);
    }
    line(format!("tenant     {}", made.tenant_id))?;
    line(format!("principal  {}", made.principal_id))?;
    line(format!("key        {}", made.api_key.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_without_a_database_says_how_to_make_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("courant.db");
        let error = Store::open(&Options::command(format!("sqlite://{}", path.display()))).await.unwrap_err();
        let text = error.to_string();
        for part in ["no database", path.to_str().unwrap(), "courant migrate"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!path.exists());
    }
}
