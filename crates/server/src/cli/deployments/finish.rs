//! `courant deployments finish`

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use courant_api::deployments::{DeploymentRunComplete, DeploymentRunView, PlanSummary, RunOutcome};
use courant_api::{DeploymentId, DeploymentRunId, ErrorCode};
use courant_client::Client;

use super::{OrgArgs, newest_runs, plan, prose, show};

#[derive(Args)]
#[group(id = "how", required = true, multiple = false, args = ["status", "detailed_exitcode"])]
pub(in crate::cli) struct FinishArgs {
    #[command(flatten)]
    org: OrgArgs,
    /// The run.
    #[arg(long, value_name = "ID")]
    run: DeploymentRunId,
    /// Its deployment. When it is given, an end that was told before, by a step that is repeated, is no error.
    #[arg(long, value_name = "ID")]
    deployment: Option<DeploymentId>,
    /// How it ended: `succeeded` or `failed`.
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<RunOutcome>,
    /// How a plan ended, as `plan -detailed-exitcode` says it: 0 no changes, 2 changes, any other a failure.
    #[arg(long, value_name = "CODE")]
    detailed_exitcode: Option<i32>,
    /// Why it failed.
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Of a plan: what `show -json` says of it, in a file; `-` reads it from standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["add", "change", "destroy", "changes"])]
    plan_json: Option<PathBuf>,
    /// Of a plan: how much it adds.
    #[arg(long, value_name = "N")]
    add: Option<i64>,
    /// Of a plan: how much it changes.
    #[arg(long, value_name = "N")]
    change: Option<i64>,
    /// Of a plan: how much it destroys.
    #[arg(long, value_name = "N")]
    destroy: Option<i64>,
    /// Of a plan: whether there are changes, by the tool's own verdict; not measured when left out.
    #[arg(long, value_name = "BOOL")]
    changes: Option<bool>,
    /// Of a plan that did not look at everything: why; repeatable.
    #[arg(long, value_name = "REASON")]
    gap: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn status(text: &str) -> Result<RunOutcome, String> {
    text.parse().map_err(|()| "is none of succeeded, failed".to_owned())
}

pub(super) async fn run(args: FinishArgs) -> Result<()> {
    let client = args.org.server.client()?;
    let org = args.org.org;
    let status = match (args.status, args.detailed_exitcode) {
        (Some(status), _) => status,
        (None, Some(0 | 2)) => RunOutcome::Succeeded,
        (None, _) => RunOutcome::Failed,
    };
    let plan_summary = summary(&args, status)?;
    let body = DeploymentRunComplete { status, plan_summary, error: args.error.as_deref().map(prose) };
    let run = match client.complete_deployment_run(org, args.run, &body).await {
        Err(refusal) if refusal.code() == Some(ErrorCode::IllegalTransition) => {
            told_before(&client, &args, status).await?.ok_or(refusal)?
        }
        told => told?,
    };
    show(&client.deployment(org, run.deployment_id).await?, Some(&run), args.json)
}

/// The run, if it has ended this way already.
async fn told_before(client: &Client, args: &FinishArgs, status: RunOutcome) -> Result<Option<DeploymentRunView>> {
    let Some(deployment) = args.deployment else { return Ok(None) };
    let runs = newest_runs(client, args.org.org, deployment).await?;
    Ok(runs.into_iter().find(|run| run.id == args.run && run.status.as_str() == status.as_str()))
}

fn summary(args: &FinishArgs, status: RunOutcome) -> Result<Option<PlanSummary>> {
    let verdict = args.changes.or(match args.detailed_exitcode {
        Some(0) => Some(false),
        Some(2) => Some(true),
        _ => None,
    });
    let counted = args.add.is_some() || args.change.is_some() || args.destroy.is_some();
    let mut summary = if let Some(file) = &args.plan_json {
        plan::read(file)?
    } else if counted || verdict.is_some() || !args.gap.is_empty() {
        PlanSummary {
            add: args.add.unwrap_or(0),
            change: args.change.unwrap_or(0),
            destroy: args.destroy.unwrap_or(0),
            has_changes: None,
            // A verdict without counts has looked at everything, and counted nothing.
            complete: counted || verdict == Some(false),
            gap_reasons: Vec::new(),
        }
    } else {
        return Ok(None);
    };
    ensure!(status == RunOutcome::Succeeded, "a run that failed has no plan to tell of");
    if summary.gap_reasons.is_empty() && !summary.complete && args.gap.is_empty() {
        summary.gap_reasons.push("changes were not counted".to_owned());
    }
    summary.complete &= args.gap.is_empty();
    summary.gap_reasons.extend(args.gap.iter().cloned());
    summary.has_changes = verdict.or(summary.has_changes);
    Ok(Some(summary))
}
