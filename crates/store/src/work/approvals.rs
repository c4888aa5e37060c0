//! Approvals: who has to decide what, who may, and what was decided.
//!
//! An approval lies where its task or artifact lay when it was requested. One of a task changes under the task's row lock, so that a gate and the claim that it holds meet in one order.

use courant_api::approvals::{ApprovalDecide, ApprovalRequest, ApprovalStatus, ApprovalView};
use courant_api::events::approvals::{
    APPROVAL_APPROVED, APPROVAL_CANCELLED, APPROVAL_EXPIRED, APPROVAL_REJECTED, APPROVAL_REQUESTED, ApprovalCancelled,
    ApprovalDecided, ApprovalExpired, ApprovalRequested, ApprovalSubject,
};
use courant_api::{ApprovalId, Permission, PrincipalId, RoleId, TaskId, TenantId, Timestamp, WorkspaceId};
use courant_core::lifecycle::{self, ApprovalWish};
use courant_core::place::Lies;
use uuid::Uuid;

use super::{resources, tasks};
use crate::access::{before, guard, parsed, place, principals, roles};
use crate::change::{Change, Changed, fresh_id, told};
use crate::db::{Row, Tx, params, statements};
use crate::journal::texts::subtree;
use crate::{Error, Page, PageKey, Rights, Store, count};

macro_rules! columns {
    () => {
        "a.id, a.task_id, a.artifact_id, a.required_role_id, a.assigned_principal_id, a.gate, a.workspace_id, \
         a.requested_by, a.require_other, a.comment, a.status, a.decision_by, a.decision_comment, a.channel, a.expires_at, \
         a.decided_at, a.created_at, a.version"
    };
}

statements! { "approvals":
    INSERT = "INSERT INTO approval (id, tenant_id, workspace_id, task_id, artifact_id, required_role_id,
            assigned_principal_id, gate, requested_by, require_other, comment, status, expires_at, version, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'pending', $12, 1, $13)";
    LOCK = concat!("SELECT ", columns!(), " FROM approval a WHERE a.tenant_id = $1 AND a.id = $2 {for update}");
    GET = concat!("SELECT ", columns!(), " FROM approval a WHERE a.tenant_id = $1 AND a.id = $2");
    UPDATE = "UPDATE approval SET status = $3, decision_by = $4, decision_comment = $5, channel = $6, decided_at = $7,
            version = $8
        WHERE tenant_id = $1 AND id = $2";
    // Filters that are off have `false` before their value.
    LIST = concat!(
        "WITH RECURSIVE ", subtree!("$4"), " SELECT ", columns!(), " FROM approval a WHERE a.tenant_id = $1 AND a.id < $2
            AND (NOT $3 OR a.workspace_id IN (SELECT s.id FROM subtree s))
            AND (NOT $5 OR a.status IN {texts $6})
            AND (NOT $7 OR a.task_id = $8)
            AND (NOT $9 OR a.required_role_id = $10)
        ORDER BY a.id DESC LIMIT $11");
    // What this principal may be the one to decide; where their role counts is for the rule to say.
    MINE = concat!(
        "SELECT ", columns!(), " FROM approval a WHERE a.tenant_id = $1 AND a.status = 'pending' AND a.id < $2
            AND (a.expires_at IS NULL OR a.expires_at > $3)
            AND NOT (a.require_other AND a.requested_by = $4)
            AND (a.assigned_principal_id = $4 OR EXISTS (SELECT 1 FROM role_assignment r
                WHERE r.tenant_id = $1 AND r.role_id = a.required_role_id AND r.principal_id = $4))
        ORDER BY a.id DESC LIMIT $5");
    DUE = "SELECT tenant_id, id FROM approval WHERE status = 'pending' AND expires_at IS NOT NULL AND expires_at <= $1
        ORDER BY expires_at LIMIT $2";
}

/// Which approvals a list has.
#[derive(Clone, Debug, Default)]
pub struct ApprovalQuery {
    /// Only those of this workspace and all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Only those in one of these states; empty: in any.
    pub statuses: Vec<ApprovalStatus>,
    /// Only those about this task.
    pub task_id: Option<TaskId>,
    /// Only those that this role decides.
    pub required_role_id: Option<RoleId>,
}

/// A decision, and how it came.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Yes or no.
    pub approve: bool,
    /// What is said with it.
    pub said: ApprovalDecide,
    /// The channel that it came through; none: a direct call.
    pub channel: Option<String>,
}

fn view(row: &Row) -> Result<ApprovalView, Error> {
    Ok(ApprovalView {
        id: row.get(0)?,
        task_id: row.get(1)?,
        artifact_id: row.get(2)?,
        required_role_id: row.get(3)?,
        assigned_principal_id: row.get(4)?,
        gate: row.get(5)?,
        workspace_id: row.get(6)?,
        requested_by: row.get(7)?,
        require_other_than_requester: row.get(8)?,
        comment: row.get(9)?,
        status: parsed(row.get(10)?, "approval.status")?,
        decision_by: row.get(11)?,
        decision_comment: row.get(12)?,
        channel: row.get(13)?,
        expires_at: row.get(14)?,
        decided_at: row.get(15)?,
        created_at: row.get(16)?,
        version: row.get(17)?,
    })
}

const ABSENT: Error = Error::NotFound("approval");

/// One approval.
pub(super) async fn get(tx: &mut Tx, tenant: TenantId, id: ApprovalId) -> Result<ApprovalView, Error> {
    view(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(ABSENT)?)
}

/// The approval, locked, and under its task's row lock.
pub(super) async fn lock(tx: &mut Tx, tenant: TenantId, id: ApprovalId) -> Result<ApprovalView, Error> {
    if let Some(task) = get(tx, tenant, id).await?.task_id {
        tasks::lock(tx, tenant, task).await?;
    }
    view(&tx.query_opt(&LOCK, params![tenant, id]).await?.ok_or(ABSENT)?)
}

/// Where that lies which a request is about; a task is locked.
async fn subject(tx: &mut Tx, change: &Change, new: &ApprovalRequest) -> Result<Option<WorkspaceId>, Error> {
    match (new.task_id, new.artifact_id) {
        (Some(task), None) => Ok(tasks::lock(tx, change.tenant_id, task).await?.workspace_id),
        (None, Some(artifact)) => Ok(resources::artifact(tx, change.tenant_id, artifact).await?.1),
        _ => Err(Error::Invalid {
            field: "/taskId".into(),
            message: "or else artifactId must be given: exactly one of them".into(),
        }),
    }
}

/// What an approval is about, in the words of now.
async fn in_words(tx: &mut Tx, tenant: TenantId, approval: &ApprovalView) -> Result<ApprovalSubject, Error> {
    let mut subject = ApprovalSubject::default();
    if let Some(task) = approval.task_id {
        let task = tasks::get(tx, tenant, task).await?;
        subject.task_title = Some(told(&task.title));
        subject.task_public_id = Some(task.public_id);
    }
    if let Some(artifact) = approval.artifact_id {
        subject.artifact_name = Some(told(&resources::artifact(tx, tenant, artifact).await?.0.name));
    }
    Ok(subject)
}

/// Whether this principal is one to decide it: the one it names, or a holder of its role where it lies, by the rule that lists
/// a role's holders; and not the requester when that is barred.
pub(super) async fn is_eligible(
    tx: &mut Tx,
    tenant: TenantId,
    approval: &ApprovalView,
    principal: PrincipalId,
) -> Result<bool, Error> {
    if approval.require_other_than_requester && approval.requested_by == principal {
        return Ok(false);
    }
    match approval.required_role_id {
        Some(role) => roles::holds(tx, tenant, role, principal, approval.workspace_id).await,
        None => Ok(approval.assigned_principal_id == Some(principal)),
    }
}

/// That nobody has decided, and that there is time left.
pub(super) fn check_pending(approval: &ApprovalView, now: Timestamp) -> Result<(), Error> {
    match approval.status {
        ApprovalStatus::Pending if approval.expires_at.is_some_and(|at| at <= now) => {
            Err(Error::AlreadyDecided(ApprovalStatus::Expired))
        }
        ApprovalStatus::Pending => Ok(()),
        decided => Err(Error::AlreadyDecided(decided)),
    }
}

/// Ends an approval, as its next version.
async fn end(tx: &mut Tx, change: &Change, approval: &mut ApprovalView, wish: ApprovalWish) -> Result<(), Error> {
    approval.status = lifecycle::approval(approval.status, wish).map_err(|_| Error::AlreadyDecided(approval.status))?;
    approval.decided_at = Some(change.now);
    approval.version += 1;
    let row = params![
        change.tenant_id,
        approval.id,
        approval.status.as_str(),
        approval.decision_by,
        approval.decision_comment.as_deref(),
        approval.channel.as_deref(),
        approval.decided_at,
        approval.version
    ];
    tx.execute(&UPDATE, row).await.map(|_| ())
}

impl Store {
    /// Requests a decision about a task or an artifact; needs `approvals.request` where that lies.
    pub async fn approval_request(&self, change: Change, new: ApprovalRequest) -> Result<Changed<ApprovalView>, Error> {
        self.db
            .change(change, new, |tx, (change, new)| {
                Box::pin(async move {
                    let workspace_id = subject(tx, change, new).await?;
                    guard(tx, change, Permission::ApprovalsRequest, &place(workspace_id)).await?;
                    if let Some(role) = new.required_role_id {
                        roles::exists(tx, change.tenant_id, role).await?;
                    }
                    if let Some(principal) = new.assigned_principal_id {
                        principals::exists(tx, change.tenant_id, principal).await?;
                    }
                    let approval = ApprovalView {
                        id: fresh_id().into(),
                        task_id: new.task_id,
                        artifact_id: new.artifact_id,
                        required_role_id: new.required_role_id,
                        assigned_principal_id: new.assigned_principal_id,
                        gate: new.gate.unwrap_or(false),
                        workspace_id,
                        requested_by: change.actor()?,
                        require_other_than_requester: new.require_other_than_requester.unwrap_or(false),
                        comment: new.comment.clone(),
                        status: ApprovalStatus::Pending,
                        decision_by: None,
                        decision_comment: None,
                        channel: None,
                        expires_at: new.expires_at,
                        decided_at: None,
                        created_at: change.now,
                        version: 1,
                    };
                    let row = params![
                        approval.id,
                        change.tenant_id,
                        approval.workspace_id,
                        approval.task_id,
                        approval.artifact_id,
                        approval.required_role_id,
                        approval.assigned_principal_id,
                        approval.gate,
                        approval.requested_by,
                        approval.require_other_than_requester,
                        approval.comment.as_deref(),
                        approval.expires_at,
                        approval.created_at
                    ];
                    tx.execute(&INSERT, row).await?;
                    let payload = ApprovalRequested {
                        task_id: approval.task_id,
                        artifact_id: approval.artifact_id,
                        required_role_id: approval.required_role_id,
                        assigned_principal_id: approval.assigned_principal_id,
                        gate: approval.gate,
                        workspace_id: approval.workspace_id,
                        subject: in_words(tx, change.tenant_id, &approval).await?,
                        requested_by: approval.requested_by,
                        comment: approval.comment.as_deref().map(told),
                    };
                    tx.append(change.event(
                        &APPROVAL_REQUESTED,
                        approval.id,
                        Lies::own(approval.workspace_id),
                        &payload,
                    )?);
                    Ok(approval)
                })
            })
            .await
    }

    /// One approval.
    pub async fn approval_get(&self, tenant: TenantId, id: ApprovalId) -> Result<ApprovalView, Error> {
        self.db.read((tenant, id), |tx, (tenant, id)| Box::pin(get(tx, *tenant, *id))).await
    }

    /// Approvals, newest first.
    pub async fn approval_list(
        &self,
        tenant: TenantId,
        query: ApprovalQuery,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<ApprovalView>, Error> {
        self.db
            .read((tenant, query, key, limit), |tx, (tenant, query, key, limit)| {
                Box::pin(async move {
                    let statuses: Vec<String> = query.statuses.iter().map(ToString::to_string).collect();
                    let row = params![
                        *tenant,
                        before(*key),
                        query.workspace_id.is_some(),
                        query.workspace_id.map_or(Uuid::nil(), WorkspaceId::uuid),
                        !statuses.is_empty(),
                        statuses,
                        query.task_id.is_some(),
                        query.task_id.map_or(Uuid::nil(), TaskId::uuid),
                        query.required_role_id.is_some(),
                        query.required_role_id.map_or(Uuid::nil(), RoleId::uuid),
                        *limit + 1
                    ];
                    Page::cut(&tx.query(&LIST, row).await?, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }

    /// What the holder of these rights may decide at `now`, newest first.
    pub async fn approvals_to_decide(
        &self,
        rights: &Rights,
        now: Timestamp,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<ApprovalView>, Error> {
        self.db
            .read((rights.clone(), now, key, limit), |tx, (rights, now, key, limit)| {
                Box::pin(async move {
                    let (tenant, me) = (rights.tenant_id(), rights.principal_id());
                    let mut items: Vec<ApprovalView> = Vec::new();
                    let mut last = before(*key);
                    loop {
                        let rows = tx.query(&MINE, params![tenant, last, *now, me, *limit + 1]).await?;
                        for row in &rows {
                            let approval = view(row)?;
                            last = approval.id.uuid();
                            let place = place(approval.workspace_id);
                            if !is_eligible(tx, tenant, &approval, me).await?
                                || !rights.allows_here(tx, Permission::ApprovalsDecide, &place).await?
                            {
                                continue;
                            }
                            if count(&items) == *limit {
                                let next = items.last().map(|approval| approval.id.uuid());
                                return Ok(Page { items, next });
                            }
                            items.push(approval);
                        }
                        if count(&rows) <= *limit {
                            return Ok(Page { items, next: None });
                        }
                    }
                })
            })
            .await
    }

    /// Decides an approval; needs `approvals.decide` where it lies, and to be one whom it asks. The first decision counts.
    pub async fn approval_decide(
        &self,
        change: Change,
        id: ApprovalId,
        decision: Decision,
    ) -> Result<Changed<ApprovalView>, Error> {
        self.db
            .change(change, (id, decision), |tx, (change, (id, decision))| {
                Box::pin(async move {
                    let mut approval = lock(tx, change.tenant_id, *id).await?;
                    guard(tx, change, Permission::ApprovalsDecide, &place(approval.workspace_id)).await?;
                    let me = change.actor()?;
                    if !is_eligible(tx, change.tenant_id, &approval, me).await? {
                        return Err(Error::NotEligible);
                    }
                    check_pending(&approval, change.now)?;
                    change.check_version(approval.version)?;
                    approval.decision_by = Some(me);
                    approval.decision_comment.clone_from(&decision.said.comment);
                    approval.channel.clone_from(&decision.channel);
                    let (wish, kind) = if decision.approve {
                        (ApprovalWish::Approve, &APPROVAL_APPROVED)
                    } else {
                        (ApprovalWish::Reject, &APPROVAL_REJECTED)
                    };
                    end(tx, change, &mut approval, wish).await?;
                    let payload = ApprovalDecided {
                        task_id: approval.task_id,
                        artifact_id: approval.artifact_id,
                        outcome_status: approval.status,
                        decision_by: me,
                        comment: approval.decision_comment.as_deref().map(told),
                        channel: approval.channel.clone(),
                        subject: in_words(tx, change.tenant_id, &approval).await?,
                    };
                    tx.append(change.event(kind, approval.id, Lies::own(approval.workspace_id), &payload)?);
                    Ok(approval)
                })
            })
            .await
    }

    /// Asks no more; needs `approvals.request` where the approval lies from who requested it, and `approvals.manage` from
    /// others. What is cancelled stays so.
    pub async fn approval_cancel(&self, change: Change, id: ApprovalId) -> Result<Changed<ApprovalView>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| {
                Box::pin(async move {
                    let mut approval = lock(tx, change.tenant_id, *id).await?;
                    let is_own = Some(approval.requested_by) == change.actor_id;
                    let needed = if is_own { Permission::ApprovalsRequest } else { Permission::ApprovalsManage };
                    guard(tx, change, needed, &place(approval.workspace_id)).await?;
                    if approval.status == ApprovalStatus::Cancelled {
                        return Ok(approval);
                    }
                    check_pending(&approval, change.now)?;
                    let me = change.actor()?;
                    approval.decision_by = Some(me);
                    end(tx, change, &mut approval, ApprovalWish::Cancel).await?;
                    let subject = in_words(tx, change.tenant_id, &approval).await?;
                    let payload = ApprovalCancelled { task_id: approval.task_id, cancelled_by: Some(me), subject };
                    tx.append(change.event(
                        &APPROVAL_CANCELLED,
                        approval.id,
                        Lies::own(approval.workspace_id),
                        &payload,
                    )?);
                    Ok(approval)
                })
            })
            .await
    }

    /// Approvals whose time is over by `now`, those that ended first before others.
    pub async fn approvals_due(&self, now: Timestamp, limit: i64) -> Result<Vec<(TenantId, ApprovalId)>, Error> {
        self.db
            .read((now, limit), |tx, (now, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&DUE, params![*now, *limit]).await?;
                    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
                })
            })
            .await
    }

    /// Ends an approval that nobody decided, if its time is over by the change's.
    pub async fn approval_expire(&self, change: Change, id: ApprovalId) -> Result<Changed<()>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| {
                Box::pin(async move {
                    let mut approval = lock(tx, change.tenant_id, *id).await?;
                    let Some(expired_at) = approval.expires_at.filter(|at| *at <= change.now) else { return Ok(()) };
                    if approval.status != ApprovalStatus::Pending {
                        return Ok(());
                    }
                    end(tx, change, &mut approval, ApprovalWish::Expire).await?;
                    let payload = ApprovalExpired {
                        task_id: approval.task_id,
                        artifact_id: approval.artifact_id,
                        workspace_id: approval.workspace_id,
                        expired_at,
                        subject: in_words(tx, change.tenant_id, &approval).await?,
                    };
                    tx.append(change.event(
                        &APPROVAL_EXPIRED,
                        approval.id,
                        Lies::own(approval.workspace_id),
                        &payload,
                    )?);
                    Ok(())
                })
            })
            .await
    }
}
