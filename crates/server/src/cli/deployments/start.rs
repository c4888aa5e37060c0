//! `courant deployments start`

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use courant_api::deployments::{
    Command, DeploymentCreate, DeploymentMode, DeploymentRunStart, DeploymentStatus, DeploymentView, MAX_COMMAND_BYTES,
    Origin, OriginGiven, RunKind, StackCreate,
};
use courant_api::{DeploymentId, DeploymentRunId, StackId, TenantId};
use courant_client::{Client, ClientError, DeploymentsQuery, PageQuery, StacksQuery};
use tokio::time::{Instant, sleep};

use super::{OrgArgs, newest_runs, prose, show};
use crate::cli::output;

/// The first pause between two looks whether somebody has confirmed, and the longest.
const LOOK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// The longest wait, in seconds: 30 days.
const MAX_WAIT: u64 = 30 * 24 * 60 * 60;

#[derive(Args)]
#[group(id = "what", required = true, multiple = false, args = ["stack", "deployment"])]
pub(in crate::cli) struct StartArgs {
    #[command(flatten)]
    org: OrgArgs,
    /// The stack to deploy: its id, or its name when only one stack has it.
    #[arg(long, value_name = "NAME|ID")]
    stack: Option<String>,
    /// Make the stack when none has this name.
    #[arg(long, requires = "stack")]
    create_stack: bool,
    /// What to do: `plan`, `plan_unlocked` (a preview) or `raw` (a command).
    #[arg(long, value_name = "MODE", default_value = "plan", conflicts_with = "deployment", value_parser = mode)]
    mode: DeploymentMode,
    /// End with the plan.
    #[arg(long, conflicts_with = "deployment")]
    read_only: bool,
    /// The commit.
    #[arg(long, value_name = "SHA", conflicts_with = "deployment")]
    commit: Option<String>,
    /// What the commit says.
    #[arg(long, value_name = "TEXT", conflicts_with = "deployment")]
    message: Option<String>,
    /// The branch that was pushed to, or that the pull request would merge.
    #[arg(long, value_name = "NAME", conflicts_with = "deployment")]
    branch: Option<String>,
    /// The number of the pull request.
    #[arg(long, value_name = "N", conflicts_with = "deployment")]
    pull_request: Option<i64>,
    /// The pipeline's page, for those who are told.
    #[arg(long, value_name = "URL", conflicts_with = "deployment")]
    page: Option<String>,
    /// Go on with this deployment: begin its apply once somebody has confirmed its plan, or its plan.
    #[arg(long, value_name = "ID")]
    deployment: Option<DeploymentId>,
    /// Of an apply: the plan that it executes; the latest one at the confirmation when left out.
    #[arg(long, value_name = "RUN", requires = "deployment")]
    plan_run: Option<DeploymentRunId>,
    /// How long to wait for the confirmation; ends with code 1 when none comes, or the deployment is cancelled or skipped.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, requires = "deployment", value_parser = clap::value_parser!(u64).range(..=MAX_WAIT))]
    wait: u64,
    /// Take up what an earlier try of this step began: the stack's open deployment of the same mode, commit and origin, and
    /// its run.
    #[arg(long)]
    resume: bool,
    /// Of mode `raw`: the command, of which only the length is kept; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT")]
    command: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn mode(text: &str) -> Result<DeploymentMode, String> {
    text.parse().map_err(|()| "is none of plan, plan_unlocked, raw".to_owned())
}

pub(super) async fn run(args: StartArgs) -> Result<()> {
    let client = args.org.server.client()?;
    let org = args.org.org;
    let deployment = match (&args.deployment, &args.stack) {
        (Some(id), _) => confirmed(&client, org, *id, Duration::from_secs(args.wait)).await?,
        (None, Some(stack)) => {
            let body = new(&args, stack_id(&client, org, stack, args.create_stack).await?);
            let begun = if args.resume { begun(&client, org, &body).await? } else { None };
            match begun {
                Some(deployment) => deployment,
                None => client.create_deployment(org, &body).await?,
            }
        }
        (None, None) => bail!("--stack or --deployment is missing"),
    };
    if deployment.status == DeploymentStatus::AwaitingConfirmation {
        return show(&deployment, None, args.json);
    }
    if args.resume && deployment.status == DeploymentStatus::Running {
        let runs = newest_runs(&client, org, deployment.id).await?;
        return show(&deployment, runs.first(), args.json);
    }
    let kind = match deployment.mode {
        DeploymentMode::Raw => RunKind::Command,
        DeploymentMode::Plan if deployment.confirmed_by.is_some() => RunKind::Apply,
        DeploymentMode::Plan | DeploymentMode::PlanUnlocked => RunKind::Plan,
    };
    let command = if kind == RunKind::Command { Some(Command(command(args.command)?)) } else { None };
    let plan_run_id = args.plan_run.filter(|_| kind == RunKind::Apply);
    let run =
        client.start_deployment_run(org, deployment.id, &DeploymentRunStart { kind, plan_run_id, command }).await?;
    show(&client.deployment(org, deployment.id).await?, Some(&run), args.json)
}

fn new(args: &StartArgs, stack_id: StackId) -> DeploymentCreate {
    let origin = match (args.pull_request, &args.branch) {
        (Some(number), branch) => {
            Some(OriginGiven::PullRequest { number, title: None, branch: branch.clone(), url: None })
        }
        (None, Some(branch)) => Some(OriginGiven::Push { branch: Some(branch.clone()) }),
        (None, None) => None,
    };
    DeploymentCreate {
        stack_id,
        mode: args.mode,
        commit_sha: args.commit.clone(),
        commit_message: args.message.as_deref().map(prose),
        origin,
        read_only: args.read_only.then_some(true),
        url: args.page.clone(),
    }
}

/// The stack of this id or name.
async fn stack_id(client: &Client, org: TenantId, stack: &str, create: bool) -> Result<StackId> {
    if let Ok(id) = stack.parse() {
        return Ok(id);
    }
    let page = PageQuery { limit: Some(2), ..PageQuery::default() };
    let query = StacksQuery { name: Some(stack.to_owned()), page, ..StacksQuery::default() };
    let found = client.stacks(org, &query).await?.items;
    match &found[..] {
        [one] => Ok(one.id),
        [] if create => {
            let body = StackCreate {
                name: stack.to_owned(),
                workspace_id: None,
                labels: std::collections::BTreeMap::new(),
                repository: None,
                path: None,
                depends_on: Vec::new(),
                pr_plan_mode: None,
            };
            Ok(client.create_stack(org, &body).await?.id)
        }
        [] => bail!("no stack is called {stack:?}; --create-stack makes it"),
        _ => bail!("several stacks are called {stack:?}; give the id of one"),
    }
}

/// The stack's newest deployment that is all that the new one would be, and has not ended.
async fn begun(client: &Client, org: TenantId, new: &DeploymentCreate) -> Result<Option<DeploymentView>> {
    let statuses = vec![DeploymentStatus::Pending, DeploymentStatus::Running, DeploymentStatus::AwaitingConfirmation];
    let page = PageQuery { limit: Some(200), ..PageQuery::default() };
    let query = DeploymentsQuery { statuses, stack_id: Some(new.stack_id), page, ..DeploymentsQuery::default() };
    let origin = Origin::from(new.origin.clone().unwrap_or(OriginGiven::Manual {}));
    let read_only = new.read_only.unwrap_or_default() || new.mode == DeploymentMode::PlanUnlocked;
    let open = client.deployments(org, &query).await?.items;
    Ok(open.into_iter().find(|open| {
        open.mode == new.mode
            && open.commit_sha == new.commit_sha
            && open.origin == origin
            && open.read_only == read_only
    }))
}

/// The deployment, once it is not waiting any more. Who waits for hours outlasts a server that is away for minutes.
async fn confirmed(client: &Client, org: TenantId, id: DeploymentId, wait: Duration) -> Result<DeploymentView> {
    let until = Instant::now() + wait;
    let mut pause = LOOK.0;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match client.deployment(org, id).await {
            Ok(deployment) => {
                ensure!(!deployment.status.is_terminal(), "the deployment is {}", deployment.status);
                if deployment.status != DeploymentStatus::AwaitingConfirmation || wait.is_zero() {
                    return Ok(deployment);
                }
                ensure!(!left.is_zero(), "nobody has confirmed the deployment within {} seconds", wait.as_secs());
            }
            Err(error) if left.is_zero() || !may_pass(&error) => return Err(error.into()),
            Err(error) => output::warn(&format!("the deployment cannot be read and is asked for again: {error}")),
        }
        sleep(pause.min(left)).await;
        pause = (pause * 2).min(LOOK.1);
    }
}

fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Transport(_) => true,
        _ => error.is_rate_limited() || error.status().is_some_and(|status| status >= 500),
    }
}

fn command(given: Option<String>) -> Result<String> {
    let text = given.context("--command is missing: what the deployment runs")?;
    if text != "-" {
        return Ok(text);
    }
    let mut text = String::new();
    let most = u64::try_from(MAX_COMMAND_BYTES).unwrap_or(u64::MAX) + 1;
    std::io::stdin().take(most).read_to_string(&mut text).context("reading the command from standard input")?;
    Ok(text)
}
