//! `courant serve`

use std::fs::OpenOptions;
use std::io::{IsTerminal as _, Write as _, stdout};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context, Result};
use courant_api::access::TenantBootstrapped;
use tokio::signal::unix::{SignalKind, signal};

use super::output::line;
use crate::config::{Config, ServeArgs};
use crate::http::socket::Limits;
use crate::serve::{Parts, Running};

pub(super) async fn run(args: &ServeArgs) -> Result<()> {
    let config = Config::load(args)?;
    crate::logging::install(config.server.log_format, config.server.log_filter.as_str());
    if let Some(note) = config.egress_note() {
        tracing::warn!("{note}");
    }
    let stop = wait_for_stop();
    let running =
        Running::start(&config, Parts { ring: None, egress: config.egress(), sockets: Limits::default() }).await?;
    if let Some(made) = running.first_tenant().await? {
        show(&made, &running, &config.server.data_dir)?;
    }
    stop.await?;
    running.stop().await;
    Ok(())
}

/// Ends on SIGINT or SIGTERM. They are taken from this call on, so that one that comes early ends the server in order.
pub(super) fn wait_for_stop() -> impl Future<Output = Result<()>> {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async move {
        let (mut interrupt, mut terminate) = (signals.0?, signals.1?);
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        Ok(())
    }
}

/// Shows the first key once: on a terminal, else in a file that only its owner can read.
fn show(made: &TenantBootstrapped, running: &Running, data_dir: &Path) -> Result<()> {
    let key = made.api_key.as_deref().unwrap_or_default();
    let address = running.address;
    line(format!("A tenant was made on this first start: {}", made.tenant_id))?;
    if stdout().is_terminal() {
        line("Its key is shown this once:\n")?;
        line(format!("  export COURANT_URL=http://{address}"))?;
        line(format!("  export COURANT_API_KEY={key}"))?;
        line(format!("  export COURANT_ORG={}\n", made.tenant_id))
    } else {
        let path = data_dir.join("first-key");
        write_private(&path, key).with_context(|| format!("writing {}", path.display()))?;
        line(format!("Its key is in {}", path.display()))
    }
}

fn write_private(path: &Path, key: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{key}")?;
    file.sync_all()
}
