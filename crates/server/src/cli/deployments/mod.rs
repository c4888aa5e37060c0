//! `courant deployments`: what a pipeline says of what it does, from any CI script.
//!
//! What is printed is `name=value` lines, fit for `eval` and for a CI system's file of outputs, or one JSON object.

mod finish;
mod plan;
mod report;
mod start;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use courant_api::deployments::{DeploymentRunView, DeploymentView, MAX_MESSAGE_CHARS};
use courant_api::{DeploymentId, TenantId};
use courant_client::{Client, ClientError, PageQuery};
use serde_json::json;

use super::output::line;
use super::tail::ServerArgs;

#[derive(Subcommand)]
pub(super) enum DeploymentsCommand {
    /// Create a deployment of a stack, or go on with one, and begin its next run.
    Start(Box<start::StartArgs>),
    /// Say that a run's runner is there; with a command, as long as that runs.
    Report(report::ReportArgs),
    /// End a run.
    Finish(Box<finish::FinishArgs>),
}

/// Whose deployments, on which server.
#[derive(Args)]
struct OrgArgs {
    /// The org: the tenant's id.
    #[arg(long, env = "COURANT_ORG", value_name = "ID")]
    org: TenantId,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(command: DeploymentsCommand) -> Result<ExitCode> {
    match command {
        DeploymentsCommand::Start(args) => start::run(*args).await.map(|()| ExitCode::SUCCESS),
        DeploymentsCommand::Report(args) => report::run(args).await,
        DeploymentsCommand::Finish(args) => finish::run(*args).await.map(|()| ExitCode::SUCCESS),
    }
}

/// A text as it may be told: what a tool wrote is often longer than that, and coloured.
fn prose(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).take(MAX_MESSAGE_CHARS).collect()
}

/// The newest runs of a deployment, the newest first.
async fn newest_runs(client: &Client, org: TenantId, id: DeploymentId) -> Result<Vec<DeploymentRunView>, ClientError> {
    client.deployment_runs(org, id, &PageQuery::default()).await.map(|page| page.items)
}

/// Shows where a deployment stands, and its run.
fn show(deployment: &DeploymentView, run: Option<&DeploymentRunView>, as_json: bool) -> Result<()> {
    if as_json {
        return line(json!({ "deployment": deployment, "run": run }).to_string());
    }
    line(format!("deployment={}", deployment.id))?;
    line(format!("status={}", deployment.status))?;
    run.map_or(Ok(()), |run| line(format!("run={}", run.id)))
}
