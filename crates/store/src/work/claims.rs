//! Claims: who works on a task and until when. A claim is a lease; its fencing token tells it from every earlier one.

use courant_api::events::work::{
    CLAIM_EXPIRED, CLAIM_RELEASED, ClaimEnded, TASK_CLAIMED, TASK_COMPLETED, TaskClaimed, TaskCompleted,
};
use courant_api::work::{
    Because, ClaimStatus, ClaimView, DEFAULT_LEASE_SECONDS, TaskClaim, TaskComplete, TaskStatus, TaskView,
};
use courant_api::{ClaimId, Permission, TaskId, TenantId, Timestamp};
use courant_core::lifecycle::{self, ClaimWish, TaskWish};
use courant_core::place::Lies;

use super::{gates, tasks};
use crate::access::{guard, parsed, place};
use crate::change::{Change, Changed, fresh_id, told};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Store};

macro_rules! columns {
    () => {
        "id, task_id, holder_id, fencing_token, status, expires_at, created_at"
    };
}

statements! { "claims":
    INSERT = "INSERT INTO claim (id, tenant_id, task_id, holder_id, fencing_token, status, expires_at, created_at)
        VALUES ($1, $2, $3, $4, $5, 'active', $6, $7)";
    GET = concat!("SELECT ", columns!(), " FROM claim WHERE tenant_id = $1 AND id = $2");
    ACTIVE = concat!("SELECT ", columns!(), " FROM claim WHERE tenant_id = $1 AND task_id = $2 AND status = 'active'");
    UPDATE = "UPDATE claim SET status = $3, expires_at = $4 WHERE tenant_id = $1 AND id = $2";
    DUE = "SELECT tenant_id, task_id FROM claim WHERE status = 'active' AND expires_at <= $1
        ORDER BY expires_at LIMIT $2";
}

fn view(row: &Row) -> Result<ClaimView, Error> {
    Ok(ClaimView {
        id: row.get(0)?,
        task_id: row.get(1)?,
        holder_id: row.get(2)?,
        fencing_token: row.get(3)?,
        status: parsed(row.get(4)?, "claim.status")?,
        expires_at: row.get(5)?,
        created_at: row.get(6)?,
    })
}

async fn active(tx: &mut Tx, tenant: TenantId, task: TaskId) -> Result<Option<ClaimView>, Error> {
    tx.query_opt(&ACTIVE, params![tenant, task]).await?.as_ref().map(view).transpose()
}

async fn save(tx: &mut Tx, change: &Change, claim: &ClaimView) -> Result<(), Error> {
    let row = params![change.tenant_id, claim.id, claim.status.as_str(), claim.expires_at];
    tx.execute(&UPDATE, row).await.map(|_| ())
}

/// Ends a claim, and tells so where its task lies.
async fn end(
    tx: &mut Tx,
    change: &Change,
    claim: &mut ClaimView,
    wish: ClaimWish,
    task: &TaskView,
    reason: Option<&str>,
) -> Result<(), Error> {
    claim.status = lifecycle::claim(claim.status, wish)?;
    save(tx, change, claim).await?;
    let kind = match claim.status {
        ClaimStatus::Released => &CLAIM_RELEASED,
        ClaimStatus::Expired => &CLAIM_EXPIRED,
        // Its task's completion tells.
        ClaimStatus::Completed | ClaimStatus::Active => return Ok(()),
    };
    let payload = ClaimEnded { task_id: task.id, reason: reason.map(told), task_status: task.status };
    tx.append(change.event(kind, claim.id, Lies::with(task.workspace_id), &payload)?);
    Ok(())
}

/// The task's active claim. One whose lease has ended is ended first, and the task is open again: nobody waits for the clock's
/// own round.
async fn in_force(tx: &mut Tx, change: &Change, task: &mut TaskView) -> Result<Option<ClaimView>, Error> {
    let Some(mut claim) = active(tx, change.tenant_id, task.id).await? else { return Ok(None) };
    if claim.expires_at > change.now {
        return Ok(Some(claim));
    }
    tasks::wish(task, TaskWish::Release)?;
    tasks::save(tx, change, task).await?;
    end(tx, change, &mut claim, ClaimWish::Expire, task, None).await?;
    Ok(None)
}

/// Releases the claim of a task that was blocked or cancelled.
pub(super) async fn end_with_task(tx: &mut Tx, change: &Change, task: &TaskView) -> Result<(), Error> {
    if let Some(mut claim) = active(tx, change.tenant_id, task.id).await? {
        let reason = format!("the task is {}", task.status);
        end(tx, change, &mut claim, ClaimWish::Release, task, Some(&reason)).await?;
    }
    Ok(())
}

/// One claim.
pub(super) async fn get(tx: &mut Tx, tenant: TenantId, id: ClaimId) -> Result<ClaimView, Error> {
    view(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(Error::NotFound("claim"))?)
}

/// Refuses a token that is not that of the claim in force.
pub(super) async fn check_token(tx: &mut Tx, change: &Change, task: &TaskView, token: i64) -> Result<(), Error> {
    let in_force = active(tx, change.tenant_id, task.id).await?.filter(|claim| change.now < claim.expires_at);
    if in_force.is_some_and(|claim| claim.fencing_token == token) {
        return Ok(());
    }
    Err(Error::StaleFencingToken { newest: task.fencing_token })
}

/// Completes a locked task: past its gates, and with the token of its claim when it is claimed.
pub(super) async fn complete(
    tx: &mut Tx,
    change: &Change,
    task: &mut TaskView,
    token: Option<i64>,
) -> Result<(), Error> {
    let claim = in_force(tx, change, task).await?;
    lifecycle::task(task.status, TaskWish::Complete)?;
    if claim.as_ref().map(|claim| claim.fencing_token) != token {
        return Err(Error::StaleFencingToken { newest: task.fencing_token });
    }
    gates::open(tx, change, task.id).await?;
    tasks::wish(task, TaskWish::Complete)?;
    tasks::save(tx, change, task).await?;
    if let Some(mut claim) = claim {
        end(tx, change, &mut claim, ClaimWish::Complete, task, None).await?;
    }
    let payload = TaskCompleted {
        public_id: task.public_id.clone(),
        title: told(&task.title),
        status: task.status,
        system_status_category: task.system_status_category,
        version: task.version,
    };
    tx.append(change.event(&TASK_COMPLETED, task.id, Lies::own(task.workspace_id), &payload)?);
    Ok(())
}

fn lease_end(change: &Change, asked: &TaskClaim) -> Timestamp {
    change.now.plus_micros(asked.lease_seconds.unwrap_or(DEFAULT_LEASE_SECONDS) * 1_000_000)
}

impl Store {
    /// Claims a task, or extends the claim that its holder has; needs `tasks.work` where it lies.
    pub async fn task_claim(&self, change: Change, id: TaskId, asked: TaskClaim) -> Result<Changed<ClaimView>, Error> {
        self.db
            .change(change, (id, asked), |tx, (change, (id, asked))| {
                Box::pin(async move {
                    let mut task = tasks::lock_for(tx, change, *id, Permission::TasksWork).await?;
                    let holder_id = change.actor()?;
                    if let Some(mut claim) = in_force(tx, change, &mut task).await?
                        && claim.holder_id == holder_id
                    {
                        claim.status = lifecycle::claim(claim.status, ClaimWish::Extend)?;
                        claim.expires_at = claim.expires_at.max(lease_end(change, asked));
                        save(tx, change, &claim).await?;
                        return Ok(claim);
                    }
                    gates::open(tx, change, *id).await?;
                    tasks::wish(&mut task, TaskWish::Claim)?;
                    task.fencing_token += 1;
                    tasks::save(tx, change, &mut task).await?;
                    let claim = ClaimView {
                        id: fresh_id().into(),
                        task_id: *id,
                        holder_id,
                        fencing_token: task.fencing_token,
                        status: ClaimStatus::Active,
                        expires_at: lease_end(change, asked),
                        created_at: change.now,
                    };
                    let row = params![
                        claim.id,
                        change.tenant_id,
                        claim.task_id,
                        claim.holder_id,
                        claim.fencing_token,
                        claim.expires_at,
                        claim.created_at
                    ];
                    tx.execute(&INSERT, row).await?;
                    let payload = TaskClaimed {
                        claim_id: claim.id,
                        holder_id,
                        fencing_token: claim.fencing_token,
                        expires_at: claim.expires_at,
                        status: task.status,
                        version: task.version,
                    };
                    tx.append(change.event(&TASK_CLAIMED, *id, Lies::own(task.workspace_id), &payload)?);
                    Ok(claim)
                })
            })
            .await
    }

    /// Gives a claimed task back; needs `tasks.work` where it lies and, if somebody else holds it, `tasks.update`.
    pub async fn claim_release(&self, change: Change, id: ClaimId, why: Because) -> Result<Changed<ClaimView>, Error> {
        self.db
            .change(change, (id, why), |tx, (change, (id, why))| {
                Box::pin(async move {
                    let task_id = get(tx, change.tenant_id, *id).await?.task_id;
                    let mut task = tasks::lock(tx, change.tenant_id, task_id).await?;
                    let mut claim = get(tx, change.tenant_id, *id).await?;
                    let place = place(task.workspace_id);
                    guard(tx, change, Permission::TasksWork, &place).await?;
                    if Some(claim.holder_id) != change.actor_id {
                        guard(tx, change, Permission::TasksUpdate, &place).await?;
                    }
                    lifecycle::claim(claim.status, ClaimWish::Release)?;
                    tasks::wish(&mut task, TaskWish::Release)?;
                    tasks::save(tx, change, &mut task).await?;
                    end(tx, change, &mut claim, ClaimWish::Release, &task, why.reason.as_deref()).await?;
                    Ok(claim)
                })
            })
            .await
    }

    /// Completes a task; needs `tasks.work` where it lies and, while it is claimed, the claim's fencing token.
    pub async fn task_complete(
        &self,
        change: Change,
        id: TaskId,
        by: TaskComplete,
    ) -> Result<Changed<TaskView>, Error> {
        self.db
            .change(change, (id, by), |tx, (change, (id, by))| {
                Box::pin(async move {
                    let mut task = tasks::lock_for(tx, change, *id, Permission::TasksWork).await?;
                    change.check_version(task.version)?;
                    complete(tx, change, &mut task, by.fencing_token).await?;
                    Ok(task)
                })
            })
            .await
    }

    /// Tasks whose claims' leases have ended by `now`, those that ended first before others.
    pub async fn claims_due(&self, now: Timestamp, limit: i64) -> Result<Vec<(TenantId, TaskId)>, Error> {
        self.db
            .read((now, limit), |tx, (now, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&DUE, params![*now, *limit]).await?;
                    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
                })
            })
            .await
    }

    /// Ends the lease of a task's claim if it is over by the change's time; whether it was.
    pub async fn claim_expire(&self, change: Change, id: TaskId) -> Result<Changed<()>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| {
                Box::pin(async move {
                    let mut task = tasks::lock(tx, change.tenant_id, *id).await?;
                    if task.status == TaskStatus::InProgress {
                        in_force(tx, change, &mut task).await?;
                    }
                    Ok(())
                })
            })
            .await
    }
}
