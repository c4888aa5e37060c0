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
