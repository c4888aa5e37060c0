//! `courant secrets`: the keys under which the secrets of integrations are stored, on the database itself, beside running
//! servers too.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use courant_store::{Options, SealedSecret, Store};
use serde_json::json;

use super::output::line;
use crate::config::{Config, ServeArgs};
use crate::secrets::{KeyRing, SealContext, random};

/// Secrets that are looked at together.
const AT_ONCE: i64 = 500;

#[derive(Subcommand)]
pub(super) enum SecretsCommand {
    /// Print a fresh key, to be put first in COURANT_ENCRYPTION_KEYS or in the key file.
    Key {
        /// What it is called: letters, digits, `-` and `_`.
        #[arg(long, value_name = "NAME")]
        id: String,
    },
    /// Seal every stored secret with the first key of the ring, and forget the others.
    Rotate(Box<RotateArgs>),
}

#[derive(Args)]
pub(super) struct RotateArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ServeArgs,
}

pub(super) async fn run(command: SecretsCommand) -> Result<()> {
    match command {
        SecretsCommand::Key { id } => {
            let entry = format!("{id}:{}", STANDARD.encode(random::<32>()));
            KeyRing::parse(&entry)?;
            line(entry)
        }
        SecretsCommand::Rotate(args) => rotate(*args).await,
    }
}

async fn rotate(args: RotateArgs) -> Result<()> {
    let config = Config::load(&args.config)?;
    crate::logging::install(config.server.log_format, config.server.log_filter.as_str());
    let store = Store::open(&Options::command(config.database.url.expose())).await?;
    let ring = crate::serve::ring(&config, &store).await?;
    let mut resealed = 0;
    // Whoever saves a secret meanwhile seals it with the first key of their own ring: again, until nothing is left.
    let secrets = loop {
        let (seen, changed) = pass(&store, &ring).await?;
        resealed += changed;
        if changed == 0 {
            break seen;
        }
    };
    let checks = ring.check_values();
    let (first, _) = checks.first().context("an empty key ring")?;
    let mut forgotten = Vec::new();
    for (id, _) in store.encryption_keys().await? {
        if id != *first {
            store.encryption_key_forget(id.clone()).await?;
            forgotten.push(id);
        }
    }
    if args.json {
        return line(
            json!({ "secrets": secrets, "resealed": resealed, "key": first, "forgotten": forgotten }).to_string(),
        );
    }
    line(format!("{secrets} secrets are sealed with the key `{first}`, {resealed} of them anew."))?;
    match &forgotten[..] {
        [] => Ok(()),
        ids => line(format!("No longer needed, and to be taken from every server's ring: {}.", ids.join(", "))),
    }
}

/// Goes through all secrets; how many there are, and how many were sealed anew.
async fn pass(store: &Store, ring: &KeyRing) -> Result<(u64, u64)> {
    let (mut seen, mut resealed, mut after) = (0, 0, None);
    loop {
        let page = store.secrets_sealed(after, AT_ONCE).await?;
        after = page.last().map(|secret| secret.integration_id);
        for secret in page {
            seen += 1;
            let SealedSecret { tenant_id: org, integration_id: integration, .. } = secret;
            let sealed = ring
                .reseal(&SealContext { org, integration }, &secret.sealed)
                .with_context(|| format!("the secret of the integration {integration}"))?;
            if let Some(sealed) = sealed {
                resealed += u64::from(store.secret_reseal(secret, sealed).await?);
            }
        }
        if after.is_none() {
            return Ok((seen, resealed));
        }
    }
}
