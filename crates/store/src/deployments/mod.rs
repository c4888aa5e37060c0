//! Stacks, their deployments, and the runs in which runners carry these out.
//!
//! Whatever changes a deployment or a run of it locks the deployment's row first; what makes deployments of a stack locks the
//! stack's row before that. So of callers who race, one changes it and the others meet what it has become.

mod ends;
mod findings;
mod life;
mod runs;
mod stacks;

use std::collections::BTreeMap;

use courant_api::deployments::{DeploymentMode, DeploymentStatus, DeploymentView, Origin, PlanSummary, RunKind};
use courant_api::events::deployments::DeploymentDetail;
use courant_api::{DeploymentId, DeploymentRunId, PrincipalId, StackId, TenantId, Timestamp};
use courant_core::deployment::State;

use crate::Error;
use crate::access::parsed;
use crate::change::{Change, to_json, told};
#[cfg(feature = "testing")]
use crate::db::Statement;
use crate::db::{Row, Tx, params, statements};

pub use life::{DeploymentQuery, DeploymentStep};
pub use runs::RunNew;
pub use stacks::StackQuery;

use stacks::Stack;

/// Every statement of this part.
#[cfg(feature = "testing")]
pub(crate) fn all_statements() -> impl Iterator<Item = &'static Statement> {
    [STATEMENTS, ends::STATEMENTS, findings::STATEMENTS, life::STATEMENTS, runs::STATEMENTS, stacks::STATEMENTS]
        .into_iter()
        .flatten()
        .copied()
}

macro_rules! columns {
    () => {
        "d.id, d.stack_id, d.mode, d.status, d.stage, d.read_only, d.promoted, d.commit_sha, d.commit_message, d.origin, \
         d.url, d.skipped_reason, d.error, d.plan_run_id, d.confirmed_by, d.chain, d.pending_since, d.version, d.created_at, \
         d.finished_at, d.end_told_at, r.plan_summary \
         FROM deployment d LEFT JOIN deployment_run r ON r.tenant_id = d.tenant_id AND r.id = d.plan_run_id"
    };
}
use columns;

statements! { "deployments":
    GET = concat!("SELECT ", columns!(), " WHERE d.tenant_id = $1 AND d.id = $2");
    LOCK = concat!("SELECT ", columns!(), " WHERE d.tenant_id = $1 AND d.id = $2 {for update of d}");
    SAVE = "INSERT INTO deployment (tenant_id, id, stack_id, mode, status, stage, read_only, promoted, commit_sha,
            commit_message, origin, pull_request, url, skipped_reason, error, plan_run_id, confirmed_by, chain, pending_since,
            version, created_at, finished_at, end_told_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)
        ON CONFLICT (id) DO UPDATE SET status = excluded.status, stage = excluded.stage, promoted = excluded.promoted,
            skipped_reason = excluded.skipped_reason, error = excluded.error, plan_run_id = excluded.plan_run_id,
            confirmed_by = excluded.confirmed_by, pending_since = excluded.pending_since, version = excluded.version,
            finished_at = excluded.finished_at, end_told_at = excluded.end_told_at";
}

/// A deployment as it is stored.
#[derive(Clone, Debug)]
struct Deployment {
    id: DeploymentId,
    stack_id: StackId,
    state: State,
    commit_sha: Option<String>,
    commit_message: Option<String>,
    origin: Origin,
    url: Option<String>,
    skipped_reason: Option<String>,
    error: Option<String>,
    plan_run_id: Option<DeploymentRunId>,
    confirmed_by: Option<PrincipalId>,
    /// The stacks whose applies have led to it, its own last.
    chain: Vec<StackId>,
    pending_since: Timestamp,
    version: i64,
    created_at: Timestamp,
    finished_at: Option<Timestamp>,
    /// When its end was told.
    end_told_at: Option<Timestamp>,
    plan_summary: Option<PlanSummary>,
}

fn from_json<T: serde::de::DeserializeOwned>(text: &str, what: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|_| Error::Corrupt(what.to_owned()))
}

impl Deployment {
    fn read(row: &Row) -> Result<Self, Error> {
        let mode: DeploymentMode = parsed(row.get(2)?, "deployment.mode")?;
        let status: DeploymentStatus = parsed(row.get(3)?, "deployment.status")?;
        let stage: RunKind = parsed(row.get(4)?, "deployment.stage")?;
        let summary: Option<String> = row.get(21)?;
        Ok(Self {
            id: row.get(0)?,
            stack_id: row.get(1)?,
            state: State { mode, status, stage, read_only: row.get(5)?, promoted: row.get(6)? },
            commit_sha: row.get(7)?,
            commit_message: row.get(8)?,
            origin: from_json(&row.get::<String>(9)?, "deployment.origin")?,
            url: row.get(10)?,
            skipped_reason: row.get(11)?,
            error: row.get(12)?,
            plan_run_id: row.get(13)?,
            confirmed_by: row.get(14)?,
            chain: from_json(&row.get::<String>(15)?, "deployment.chain")?,
            pending_since: row.get(16)?,
            version: row.get(17)?,
            created_at: row.get(18)?,
            finished_at: row.get(19)?,
            end_told_at: row.get(20)?,
            plan_summary: summary.map(|text| from_json(&text, "deployment_run.plan_summary")).transpose()?,
        })
    }

    async fn get(tx: &mut Tx, tenant: TenantId, id: DeploymentId) -> Result<Self, Error> {
        Self::read(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(ABSENT)?)
    }

    async fn lock(tx: &mut Tx, tenant: TenantId, id: DeploymentId) -> Result<Self, Error> {
        Self::read(&tx.query_opt(&LOCK, params![tenant, id]).await?.ok_or(ABSENT)?)
    }

    async fn save(&self, tx: &mut Tx, change: &Change) -> Result<(), Error> {
        let row = params![
            change.tenant_id,
            self.id,
            self.stack_id,
            self.state.mode.as_str(),
            self.state.status.as_str(),
            self.state.stage.as_str(),
            self.state.read_only,
            self.state.promoted,
            self.commit_sha.as_deref(),
            self.commit_message.as_deref(),
            to_json(&self.origin)?,
            self.origin.pull_request(),
            self.url.as_deref(),
            self.skipped_reason.as_deref(),
            self.error.as_deref(),
            self.plan_run_id,
            self.confirmed_by,
            to_json(&self.chain)?,
            self.pending_since,
            self.version,
            self.created_at,
            self.finished_at,
            self.end_told_at
        ];
        tx.execute(&SAVE, row).await.map(|_| ())
    }

    fn view(&self) -> DeploymentView {
        DeploymentView {
            id: self.id,
            stack_id: self.stack_id,
            mode: self.state.mode,
            status: self.state.status,
            read_only: self.state.read_only,
            commit_sha: self.commit_sha.clone(),
            commit_message: self.commit_message.clone(),
            origin: self.origin.clone(),
            skipped_reason: self.skipped_reason.clone(),
            error: self.error.clone(),
            plan_summary: self.plan_summary.clone(),
            confirmed_by: self.confirmed_by,
            promoted: self.state.promoted,
            url: self.url.clone(),
            version: self.version,
            created_at: self.created_at,
            finished_at: self.finished_at,
        }
    }

    /// What an event tells of it, without whatever looks like a secret.
    fn detail(&self, stack: &Stack) -> DeploymentDetail {
        DeploymentDetail {
            deployment_id: self.id,
            stack_id: self.stack_id,
            stack_name: told(&stack.view.name),
            stack_labels: told_labels(&stack.view.labels),
            status: self.state.status,
            mode: self.state.mode,
            read_only: self.state.read_only,
            commit_sha: self.commit_sha.as_deref().map(told),
            commit_message: self.commit_message.as_deref().map(told),
            skipped_reason: self.skipped_reason.clone(),
            error: self.error.as_deref().map(told),
            origin: told_origin(&self.origin),
            plan_summary: self.plan_summary.as_ref().map(|plan| PlanSummary {
                gap_reasons: plan.gap_reasons.iter().map(|reason| told(reason)).collect(),
                ..plan.clone()
            }),
            url: self.url.as_deref().map(told),
        }
    }
}

const ABSENT: Error = Error::NotFound("deployment");

fn told_labels(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| (key.clone(), told(value))).collect()
}

fn told_origin(origin: &Origin) -> Origin {
    let text = |text: &Option<String>| text.as_deref().map(told);
    match origin {
        Origin::Push { branch } => Origin::Push { branch: text(branch) },
        Origin::PullRequest { number, title, branch, url } => {
            Origin::PullRequest { number: *number, title: text(title), branch: text(branch), url: text(url) }
        }
        Origin::Manual {} | Origin::Dependency { .. } => origin.clone(),
    }
}
