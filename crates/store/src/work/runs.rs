//! Runs: attempts at a claimed task. Only who still holds the task begins one, or says how it went well.

use courant_api::events::work::{
    RUN_CANCELLED, RUN_FAILED, RUN_STARTED, RUN_SUCCEEDED, RUN_SUSPENDED, RunEnded, RunStarted, RunSucceeded,
    RunSuspended,
};
use courant_api::work::{RunStart, RunStatus, RunView, TaskView};
use courant_api::{ApprovalId, Permission, RunId, TaskId, TenantId};
use courant_core::lifecycle::{self, RunWish};
use courant_core::place::Lies;

use super::tasks::{self, lock_for};
use super::{approvals, claims};
use crate::access::{before, parsed};
use crate::change::{Change, Changed, fresh_id, told};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Page, PageKey, Store};

macro_rules! columns {
    () => {
        "id, task_id, claim_id, attempt, fencing_token, status, agent_revision_id, reason, waiting_for_approval_id,
            started_at, finished_at"
    };
}

statements! { "runs":
    INSERT = "INSERT INTO run (id, tenant_id, task_id, claim_id, attempt, fencing_token, status, agent_revision_id,
            started_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    GET = concat!("SELECT ", columns!(), " FROM run WHERE tenant_id = $1 AND id = $2");
    LIST = concat!("SELECT ", columns!(), " FROM run
        WHERE tenant_id = $1 AND task_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4");
    END = "UPDATE run SET status = $3, reason = $4, waiting_for_approval_id = $5, finished_at = $6
        WHERE tenant_id = $1 AND id = $2";
}

/// How a run ends.
#[derive(Clone, Debug)]
pub enum RunEnd {
    /// It reached its end.
    Succeeded {
        /// Whether its task is thereby completed.
        complete_task: bool,
    },
    /// It did not.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// It waits, perhaps for this approval.
    Suspended(Option<ApprovalId>),
}

impl RunEnd {
    fn wish(&self) -> RunWish {
        match self {
            Self::Succeeded { .. } => RunWish::Succeed,
            Self::Failed => RunWish::Fail,
            Self::Cancelled => RunWish::Cancel,
            Self::Suspended(_) => RunWish::Suspend,
        }
    }
}

fn view(row: &Row) -> Result<RunView, Error> {
    Ok(RunView {
        id: row.get(0)?,
        task_id: row.get(1)?,
        claim_id: row.get(2)?,
        attempt: row.get(3)?,
        fencing_token: row.get(4)?,
        status: parsed(row.get(5)?, "run.status")?,
        agent_revision_id: row.get(6)?,
        reason: row.get(7)?,
        waiting_for_approval_id: row.get(8)?,
        started_at: row.get(9)?,
        finished_at: row.get(10)?,
    })
}

pub(super) async fn get(tx: &mut Tx, tenant: TenantId, id: RunId) -> Result<RunView, Error> {
    view(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(Error::NotFound("run"))?)
}

async fn start(tx: &mut Tx, change: &Change, new: &RunStart) -> Result<RunView, Error> {
    let claim = claims::get(tx, change.tenant_id, new.claim_id).await?;
    let task = lock_for(tx, change, claim.task_id, Permission::TasksWork).await?;
    if claim.fencing_token != new.fencing_token {
        return Err(Error::StaleFencingToken { newest: task.fencing_token });
    }
    claims::check_token(tx, change, &task, claim.fencing_token).await?;
    let run = RunView {
        id: fresh_id().into(),
        task_id: claim.task_id,
        claim_id: claim.id,
        attempt: tasks::count_run(tx, change.tenant_id, task.id).await?,
        fencing_token: claim.fencing_token,
        status: RunStatus::Running,
        agent_revision_id: new.agent_revision_id.clone(),
        reason: None,
        waiting_for_approval_id: None,
        started_at: change.now,
        finished_at: None,
    };
    let row = params![
        run.id,
        change.tenant_id,
        run.task_id,
        run.claim_id,
        run.attempt,
        run.fencing_token,
        run.status.as_str(),
        run.agent_revision_id.clone(),
        run.started_at
    ];
    tx.execute(&INSERT, row).await.map_err(|e| e.unique_means("a run under this claim has not ended"))?;
    let payload = RunStarted {
        task_id: run.task_id,
        claim_id: run.claim_id,
        attempt: run.attempt,
        fencing_token: run.fencing_token,
        agent_revision_id: run.agent_revision_id.as_deref().map(told),
    };
    tx.append(change.event(&RUN_STARTED, run.id, Lies::with(task.workspace_id), &payload)?);
    Ok(run)
}

/// What an end needs beyond a run that goes on: who says that it went well, or goes on later, still holds the task.
async fn permit(tx: &mut Tx, change: &Change, task: &TaskView, run: &RunView, end: &RunEnd) -> Result<(), Error> {
    match end {
        RunEnd::Succeeded { .. } => claims::check_token(tx, change, task, run.fencing_token).await,
        RunEnd::Suspended(approval) => {
            if let Some(approval) = approval {
                approvals::get(tx, change.tenant_id, *approval).await?;
            }
            claims::check_token(tx, change, task, run.fencing_token).await
        }
        RunEnd::Failed | RunEnd::Cancelled => Ok(()),
    }
}

async fn finish(
    tx: &mut Tx,
    change: &Change,
    id: RunId,
    end: &RunEnd,
    reason: Option<&String>,
) -> Result<RunView, Error> {
    let known = get(tx, change.tenant_id, id).await?;
    let mut task = lock_for(tx, change, known.task_id, Permission::TasksWork).await?;
    let mut run = get(tx, change.tenant_id, id).await?;
    run.status = lifecycle::run(run.status, end.wish())?;
    permit(tx, change, &task, &run, end).await?;
    run.reason = reason.cloned();
    run.finished_at = Some(change.now);
    if let RunEnd::Suspended(approval) = end {
        run.waiting_for_approval_id = *approval;
    }
    let row = params![
        change.tenant_id,
        id,
        run.status.as_str(),
        run.reason.clone(),
        run.waiting_for_approval_id,
        run.finished_at
    ];
    tx.execute(&END, row).await?;
    tell(tx, change, &task, &run, end)?;
    if matches!(end, RunEnd::Succeeded { complete_task: true }) {
        claims::complete(tx, change, &mut task, Some(run.fencing_token)).await?;
    }
    Ok(run)
}

fn tell(tx: &mut Tx, change: &Change, task: &TaskView, run: &RunView, end: &RunEnd) -> Result<(), Error> {
    let (task_id, attempt, at) = (run.task_id, run.attempt, Lies::with(task.workspace_id));
    let reason = run.reason.as_deref().map(told);
    let event = match end {
        RunEnd::Succeeded { complete_task } => {
            let payload = RunSucceeded { task_id, attempt, reason, task_completed: *complete_task };
            change.event(&RUN_SUCCEEDED, run.id, at, &payload)
        }
        RunEnd::Failed => change.event(&RUN_FAILED, run.id, at, &RunEnded { task_id, attempt, reason }),
        RunEnd::Cancelled => change.event(&RUN_CANCELLED, run.id, at, &RunEnded { task_id, attempt, reason }),
        RunEnd::Suspended(waiting_for_approval_id) => {
            let waiting_for_approval_id = *waiting_for_approval_id;
            let payload = RunSuspended { task_id, attempt, reason, waiting_for_approval_id };
            change.event(&RUN_SUSPENDED, run.id, at, &payload)
        }
    };
    tx.append(event?);
    Ok(())
}

impl Store {
    /// Begins a run under a claim; needs `tasks.work` where the task lies.
    pub async fn run_start(&self, change: Change, new: RunStart) -> Result<Changed<RunView>, Error> {
        self.db.change(change, new, |tx, (change, new)| Box::pin(start(tx, change, new))).await
    }

    /// Ends a run; needs `tasks.work` where the task lies.
    pub async fn run_end(
        &self,
        change: Change,
        id: RunId,
        end: RunEnd,
        reason: Option<String>,
    ) -> Result<Changed<RunView>, Error> {
        self.db
            .change(change, (id, end, reason), |tx, (change, (id, end, reason))| {
                Box::pin(finish(tx, change, *id, end, reason.as_ref()))
            })
            .await
    }

    /// One run, and its task for the right to read it.
    pub async fn run_get(
        &self,
        tenant: TenantId,
        id: RunId,
    ) -> Result<(RunView, Option<courant_api::WorkspaceId>), Error> {
        self.db
            .read((tenant, id), |tx, (tenant, id)| {
                Box::pin(async move {
                    let run = get(tx, *tenant, *id).await?;
                    let task = tasks::get(tx, *tenant, run.task_id).await?;
                    Ok((run, task.workspace_id))
                })
            })
            .await
    }

    /// A task's runs, newest first.
    pub async fn run_list(
        &self,
        tenant: TenantId,
        task: TaskId,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<RunView>, Error> {
        self.db
            .read((tenant, task, key, limit), |tx, (tenant, task, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, *task, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }
}
