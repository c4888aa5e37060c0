//! Skill invocations: the use of a skill for a task, wanted by one and done by another, tried more than once.

use courant_api::events::resources::{
    SKILL_CANCELLED, SKILL_CLAIMED, SKILL_FAILED, SKILL_REQUESTED, SKILL_RETRY_SCHEDULED, SKILL_SUCCEEDED, SkillChange,
};
use courant_api::resources::{DEFAULT_ATTEMPTS, SkillFail, SkillInvocationView, SkillInvoke, SkillRetry, SkillStatus};
use courant_api::work::TaskView;
use courant_api::{Permission, SkillInvocationId, TaskId, TenantId, WorkspaceId};
use courant_core::lifecycle::{self, SkillWish, TaskWish};
use courant_core::place::Lies;
use uuid::Uuid;

use super::tasks;
use crate::access::{before, guard, parsed, place};
use crate::change::{Change, Changed, fresh_id, told};
use crate::db::{Row, Tx, params, statements};
use crate::journal::texts::subtree;
use crate::{Error, Page, PageKey, Store};

macro_rules! columns {
    () => {
        "i.id, i.task_id, i.skill, i.skill_version, i.status, i.attempt, i.max_attempts, i.claimed_by, i.error_code, \
         i.available_at, i.requested_by, i.created_at, i.version"
    };
}

statements! { "skills":
    GET = concat!("SELECT ", columns!(), " FROM skill_invocation i WHERE i.tenant_id = $1 AND i.id = $2");
    SAVE = "INSERT INTO skill_invocation (tenant_id, id, task_id, skill, skill_version, status, attempt, max_attempts,
            claimed_by, error_code, available_at, requested_by, created_at, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        ON CONFLICT (id) DO UPDATE SET status = excluded.status, attempt = excluded.attempt, claimed_by = excluded.claimed_by,
            error_code = excluded.error_code, available_at = excluded.available_at, version = excluded.version";
    LIST = concat!(
        "WITH RECURSIVE ", subtree!("$5"), " SELECT ", columns!(), " FROM skill_invocation i
            JOIN task t ON t.tenant_id = i.tenant_id AND t.id = i.task_id
        WHERE i.tenant_id = $1 AND i.id < $2
            AND (NOT $4 OR t.workspace_id IN (SELECT s.id FROM subtree s))
            AND (NOT $6 OR i.status IN {texts $7})
            AND (NOT $8 OR i.task_id = $9)
            AND (NOT $10 OR i.skill = $11)
        ORDER BY i.id DESC LIMIT $3");
}

/// Which invocations a list has.
#[derive(Clone, Debug, Default)]
pub struct SkillQuery {
    /// Only those for tasks of this workspace and all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Only those in one of these states; empty: in any.
    pub statuses: Vec<SkillStatus>,
    /// Only those for this task.
    pub task_id: Option<TaskId>,
    /// Only those of this skill.
    pub skill: Option<String>,
}

/// What becomes of an invocation.
#[derive(Clone, Debug)]
pub enum SkillStep {
    /// The actor does it.
    Claim,
    /// It is tried again later.
    Retry(SkillRetry),
    /// It is done.
    Succeed,
    /// It was tried in vain.
    Fail(SkillFail),
    /// Nobody wants it any more.
    Cancel,
}

impl SkillStep {
    fn wish(&self) -> SkillWish {
        match self {
            Self::Claim => SkillWish::Claim,
            Self::Retry(_) => SkillWish::Retry,
            Self::Succeed => SkillWish::Succeed,
            Self::Fail(_) => SkillWish::Fail,
            Self::Cancel => SkillWish::Cancel,
        }
    }
}

fn view(row: &Row) -> Result<SkillInvocationView, Error> {
    Ok(SkillInvocationView {
        id: row.get(0)?,
        task_id: row.get(1)?,
        skill: row.get(2)?,
        skill_version: row.get(3)?,
        status: parsed(row.get(4)?, "skill_invocation.status")?,
        attempt: row.get(5)?,
        max_attempts: row.get(6)?,
        claimed_by: row.get(7)?,
        error_code: row.get(8)?,
        available_at: row.get(9)?,
        requested_by: row.get(10)?,
        created_at: row.get(11)?,
        version: row.get(12)?,
    })
}

async fn get(tx: &mut Tx, tenant: TenantId, id: SkillInvocationId) -> Result<SkillInvocationView, Error> {
    view(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(Error::NotFound("skill invocation"))?)
}

async fn save(tx: &mut Tx, change: &Change, invocation: &SkillInvocationView) -> Result<(), Error> {
    let row = params![
        change.tenant_id,
        invocation.id,
        invocation.task_id,
        &invocation.skill,
        &invocation.skill_version,
        invocation.status.as_str(),
        invocation.attempt,
        invocation.max_attempts,
        invocation.claimed_by,
        invocation.error_code.as_deref(),
        invocation.available_at,
        invocation.requested_by,
        invocation.created_at,
        invocation.version
    ];
    tx.execute(&SAVE, row).await.map(|_| ())
}

/// What an invocation tells; `None`: that it is wanted.
fn tell(
    tx: &mut Tx,
    change: &Change,
    task: &TaskView,
    invocation: &SkillInvocationView,
    wish: Option<SkillWish>,
) -> Result<(), Error> {
    let kind = match wish {
        None => &SKILL_REQUESTED,
        Some(SkillWish::Claim) => &SKILL_CLAIMED,
        Some(SkillWish::Retry) => &SKILL_RETRY_SCHEDULED,
        Some(SkillWish::Succeed) => &SKILL_SUCCEEDED,
        Some(SkillWish::Fail) => &SKILL_FAILED,
        Some(SkillWish::Cancel) => &SKILL_CANCELLED,
    };
    let payload = SkillChange {
        task_id: invocation.task_id,
        skill: told(&invocation.skill),
        skill_version: told(&invocation.skill_version),
        attempt: invocation.attempt,
        error_code: invocation.error_code.as_deref().map(told),
    };
    tx.append(change.event(kind, invocation.id, Lies::with(task.workspace_id), &payload)?);
    Ok(())
}

async fn request(tx: &mut Tx, change: &Change, new: &SkillInvoke) -> Result<SkillInvocationView, Error> {
    let task = tasks::lock_for(tx, change, new.task_id, Permission::TasksWork).await?;
    lifecycle::task(task.status, TaskWish::Invoke)?;
    let invocation = SkillInvocationView {
        id: fresh_id().into(),
        task_id: task.id,
        skill: new.skill.clone(),
        skill_version: new.skill_version.clone(),
        status: SkillStatus::Requested,
        attempt: 0,
        max_attempts: new.max_attempts.unwrap_or(DEFAULT_ATTEMPTS),
        claimed_by: None,
        error_code: None,
        available_at: change.now,
        requested_by: change.actor()?,
        created_at: change.now,
        version: 1,
    };
    save(tx, change, &invocation).await?;
    tell(tx, change, &task, &invocation, None)?;
    Ok(invocation)
}

/// Whose invocation a step is about, so that somebody else needs the right to change the task as well.
fn owner(invocation: &SkillInvocationView, step: &SkillStep) -> Option<courant_api::PrincipalId> {
    match step {
        SkillStep::Claim => None,
        SkillStep::Cancel => Some(invocation.requested_by),
        SkillStep::Retry(_) | SkillStep::Succeed | SkillStep::Fail(_) => invocation.claimed_by,
    }
}

async fn advance(
    tx: &mut Tx,
    change: &Change,
    id: SkillInvocationId,
    step: &SkillStep,
) -> Result<SkillInvocationView, Error> {
    let task_id = get(tx, change.tenant_id, id).await?.task_id;
    let task = tasks::lock_for(tx, change, task_id, Permission::TasksWork).await?;
    let mut invocation = get(tx, change.tenant_id, id).await?;
    if owner(&invocation, step).is_some_and(|owner| Some(owner) != change.actor_id) {
        guard(tx, change, Permission::TasksUpdate, &place(task.workspace_id)).await?;
    }
    invocation.status = lifecycle::skill(invocation.status, step.wish())?;
    match step {
        SkillStep::Claim if invocation.available_at > change.now => {
            return Err(Error::Conflict(format!("it is tried again only from {}", invocation.available_at)));
        }
        SkillStep::Claim => {
            invocation.attempt += 1;
            invocation.claimed_by = change.actor_id;
        }
        SkillStep::Retry(_) if invocation.attempt >= invocation.max_attempts => {
            return Err(Error::Conflict(format!("all {} attempts are used up", invocation.max_attempts)));
        }
        SkillStep::Retry(why) => {
            invocation.claimed_by = None;
            invocation.error_code = Some(why.error_code.clone());
            invocation.available_at = why.available_at.map_or(change.now, |at| at.max(change.now));
        }
        SkillStep::Fail(why) => invocation.error_code = Some(why.error_code.clone()),
        SkillStep::Succeed => invocation.error_code = None,
        SkillStep::Cancel => {}
    }
    invocation.version += 1;
    save(tx, change, &invocation).await?;
    tell(tx, change, &task, &invocation, Some(step.wish()))?;
    Ok(invocation)
}

impl Store {
    /// Wants a skill used for a task; needs `tasks.work` where the task lies.
    pub async fn skill_request(&self, change: Change, new: SkillInvoke) -> Result<Changed<SkillInvocationView>, Error> {
        self.db.change(change, new, |tx, (change, new)| Box::pin(request(tx, change, new))).await
    }

    /// Takes an invocation on; needs `tasks.work` where the task lies and, for the end of what somebody else does or wanted,
    /// `tasks.update`.
    pub async fn skill_advance(
        &self,
        change: Change,
        id: SkillInvocationId,
        step: SkillStep,
    ) -> Result<Changed<SkillInvocationView>, Error> {
        self.db.change(change, (id, step), |tx, (change, (id, step))| Box::pin(advance(tx, change, *id, step))).await
    }

    /// One invocation, and where its task lies, for the right to read it.
    pub async fn skill_get(
        &self,
        tenant: TenantId,
        id: SkillInvocationId,
    ) -> Result<(SkillInvocationView, Option<WorkspaceId>), Error> {
        self.db
            .read((tenant, id), |tx, (tenant, id)| {
                Box::pin(async move {
                    let invocation = get(tx, *tenant, *id).await?;
                    let task = tasks::get(tx, *tenant, invocation.task_id).await?;
                    Ok((invocation, task.workspace_id))
                })
            })
            .await
    }

    /// Invocations, newest first.
    pub async fn skill_list(
        &self,
        tenant: TenantId,
        query: SkillQuery,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<SkillInvocationView>, Error> {
        self.db
            .read((tenant, query, key, limit), |tx, (tenant, query, key, limit)| {
                Box::pin(async move {
                    let statuses: Vec<String> = query.statuses.iter().map(ToString::to_string).collect();
                    let row = params![
                        *tenant,
                        before(*key),
                        *limit + 1,
                        query.workspace_id.is_some(),
                        query.workspace_id.map_or(Uuid::nil(), WorkspaceId::uuid),
                        !statuses.is_empty(),
                        statuses,
                        query.task_id.is_some(),
                        query.task_id.map_or(Uuid::nil(), TaskId::uuid),
                        query.skill.is_some(),
                        query.skill.as_deref().unwrap_or_default()
                    ];
                    Page::cut(&tx.query(&LIST, row).await?, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }
}
