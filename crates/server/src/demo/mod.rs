//! `courant demo`: the real server on a throw-away database, and a short story played on it over its public API.
//!
//! Nothing here may know more of the server than a stranger with a key does, and nothing may stay behind on the machine.

mod receivers;
mod slack;
mod story;
mod terminal;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::pin::pin;

use anyhow::{Context as _, Result, bail};
use courant_client::Client;

use crate::config::{Config, NotifyArgs, ServeArgs, ServerArgs};
use crate::http::socket::Limits;
use crate::outbound::Egress;
use crate::secrets::{KeyRing, Secret};
use crate::serve::{Parts, Running};
use receivers::{Arrival, Receivers};
use story::Story;
use terminal::Step;
pub use terminal::{Style, Terminal};

/// The port that is taken when it is free.
const USUAL_PORT: u16 = 8080;

/// How the demo runs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Ends when the story is over.
    pub once: bool,
    /// The server's port, when one is asked for.
    pub port: Option<u16>,
}

/// Plays the story and, unless it is to end then, serves until `stop` comes. Fails naming what did not arrive.
pub async fn run(options: Options, terminal: &mut Terminal, stop: impl Future<Output = Result<()>>) -> Result<()> {
    let directory =
        tempfile::Builder::new().prefix("courant-demo-").tempdir().context("making a temporary directory")?;
    let bot_token = Secret::new(format!("xoxb-{:032x}", u128::from_be_bytes(crate::secrets::random())));
    let mut receivers = Receivers::start(&bot_token).await?;
    let egress = receivers.sockets().into_iter().fold(Egress::default(), Egress::allow_socket);
    let config = configuration(directory.path(), free_port(options), &receivers)?;
    let running =
        Running::start(&config, Parts { ring: Some(KeyRing::generate()), egress, sockets: Limits::default() }).await?;

    let told = tell(options, &running, &bot_token, &mut receivers, terminal, stop).await;
    running.stop().await;
    receivers.stop().await;
    let gone = directory.close().context("removing the throw-away database");
    told.and(gone)
}

async fn tell(
    options: Options,
    running: &Running,
    bot_token: &Secret,
    receivers: &mut Receivers,
    terminal: &mut Terminal,
    stop: impl Future<Output = Result<()>>,
) -> Result<()> {
    let made = running.first_tenant().await?.context("the new database already has a tenant")?;
    let (url, key) = (format!("http://{}", running.address), made.api_key.unwrap_or_default());
    let client = Client::builder(&url).api_key(&key).build()?;
    terminal.tell(&Step::Server { url: &url, org_id: made.tenant_id })?;

    let mut stop = pin!(stop);
    let mut story = Story::new(client, made.tenant_id, receivers, terminal);
    let played = tokio::select! {
        played = story.play(bot_token) => played,
        stopped = &mut stop => stopped.and_then(|()| bail!("stopped before the story was over")),
    };
    let shop = match played {
        Ok(shop) => shop,
        Err(error) => {
            let text = format!("{error:#}");
            // What went wrong matters more than that it cannot be told here, too.
            let _ = terminal.tell(&Step::Done { ok: false, error: Some(&text) });
            return Err(error);
        }
    };
    terminal.tell(&Step::Done { ok: true, error: None })?;
    if options.once {
        return Ok(());
    }
    terminal.tell(&Step::Ready { url: &url, api_key: &key, org_id: made.tenant_id, workspace_id: shop })?;
    tokio::select! {
        failed = show_arrivals(receivers, terminal) => failed,
        stopped = &mut stop => stopped,
    }
}

/// Shows what else arrives, for as long as it can be written.
async fn show_arrivals(receivers: &mut Receivers, terminal: &mut Terminal) -> Result<()> {
    loop {
        match receivers.next().await {
            Ok(Arrival::Slack(message)) => terminal.tell(&Step::SlackMessage(&message))?,
            Ok(Arrival::Webhook(call)) => terminal.tell(&Step::Webhook(&call))?,
            // The story is over: anybody may call the receivers now, and with anything.
            Err(error) => tracing::warn!("{error:#}"),
        }
    }
}

/// Only what is said here: the settings of a server that is being operated on this machine are not the demo's.
fn configuration(data_dir: &Path, port: u16, receivers: &Receivers) -> Result<Config> {
    let args = ServeArgs {
        server: ServerArgs { listen: Some(local(port)), data_dir: Some(data_dir.to_owned()), ..ServerArgs::default() },
        notify: NotifyArgs { slack_api_base_url: Some(receivers.slack_api().parse()?), ..NotifyArgs::default() },
        ..ServeArgs::default()
    };
    Ok(Config::resolve(&args, &|_| None, None)?)
}

/// 0 stands for any free port.
fn free_port(options: Options) -> u16 {
    match options.port {
        Some(port) => port,
        None if options.once => 0,
        None if TcpListener::bind(local(USUAL_PORT)).is_ok() => USUAL_PORT,
        None => 0,
    }
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
