//! `courant deployments report`

use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use courant_api::DeploymentRunId;
use courant_client::ClientError;
use tokio::process::Command;
use tokio::time::{MissedTickBehavior, interval};

use super::OrgArgs;
use crate::cli::output;

#[derive(Args)]
pub(in crate::cli) struct ReportArgs {
    #[command(flatten)]
    org: OrgArgs,
    /// The run.
    #[arg(long, value_name = "ID")]
    run: DeploymentRunId,
    /// How often to say it while the command runs; a runner that is silent for 5 minutes is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=240))]
    every: u64,
    /// A command to run meanwhile; its exit code is this command's.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(args: ReportArgs) -> Result<ExitCode> {
    let client = args.org.server.client()?;
    let heartbeat = async || client.heartbeat_deployment_run(args.org.org, args.run).await;
    // One that has ended is not begun.
    heartbeat().await?;
    let Some((program, rest)) = args.command.split_first() else { return Ok(ExitCode::SUCCESS) };
    let mut child =
        Command::new(program).args(rest).kill_on_drop(true).spawn().with_context(|| format!("running {program}"))?;
    let mut beats = interval(Duration::from_secs(args.every));
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats.tick().await;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(code(status?)),
            _ = beats.tick() => match heartbeat().await {
                Ok(_) => {}
                // It was cancelled, say: there is nothing to go on for.
                Err(ClientError::Api(refusal)) if matches!(refusal.status, 404 | 409) => {
                    child.kill().await.context("ending the command")?;
                    bail!("the command was ended: {refusal}");
                }
                // The command matters more than a server that is away for a while.
                Err(error) => output::warn(&format!("the heartbeat failed and is repeated: {error}")),
            },
        }
    }
}

/// A command that a signal has ended has the code that shells give it.
fn code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
