//! `courant deployments report`: says that a run's runner is there, and runs the command that does the work meanwhile.
//!
//! The command may be an apply in the middle of its changes, so it is never killed: it is asked to end as a terminal or a
//! CI system would ask, and then waited for.

use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use courant_api::{DeploymentRunId, ErrorCode};
use courant_client::{ApiError, Client, ClientError};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
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
    // The command of a run that has ended is not begun.
    client.heartbeat_deployment_run(args.org.org, args.run).await?;
    let Some((program, rest)) = args.command.split_first() else { return Ok(ExitCode::SUCCESS) };
    // Before the command is there, so that none of them ends this process and leaves it alone.
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut child = Command::new(program).args(rest).spawn().with_context(|| format!("running {program}"))?;
    let mut over = None;
    let mut beats = std::pin::pin!(beat(&client, &args));
    loop {
        tokio::select! {
            status = child.wait() => {
                let code = code(status?);
                return over.map_or(Ok(code), |refusal| bail!("the command was ended: {refusal}"));
            }
            refusal = &mut beats, if over.is_none() => {
                over = Some(refusal);
                terminate_child(&child).await?;
            }
            _ = terminate.recv() => terminate_child(&child).await?,
            // A terminal interrupts the command too, and many a tool breaks off at a second interrupt.
            _ = interrupt.recv() => {}
        }
    }
}

/// Says it again and again, until the run has ended: somebody cancelled it, say.
async fn beat(client: &Client, args: &ReportArgs) -> Box<ApiError> {
    let mut beats = interval(Duration::from_secs(args.every));
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats.tick().await;
    loop {
        beats.tick().await;
        match client.heartbeat_deployment_run(args.org.org, args.run).await {
            Ok(_) => {}
            // Nothing else ends a command, least of all what a proxy answers for a server that is away.
            Err(ClientError::Api(refusal)) if refusal.code == Some(ErrorCode::IllegalTransition) => return refusal,
            Err(error) => output::warn(&format!("the heartbeat failed and is repeated: {error}")),
        }
    }
}

/// Asks the command to end. One that has ended is not asked; its number is not given away before it was waited for.
async fn terminate_child(child: &Child) -> Result<()> {
    let Some(id) = child.id() else { return Ok(()) };
    // The shell's own `kill`: not every image has a program of that name.
    let kill = format!("kill -TERM {id}");
    Command::new("sh").args(["-c", &kill]).status().await.context("ending the command")?;
    Ok(())
}

/// A command that a signal has ended has the code that shells give it.
fn code(status: ExitStatus) -> ExitCode {
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
