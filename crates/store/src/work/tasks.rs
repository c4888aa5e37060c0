//! Tasks: created, read, listed, changed and moved.

use courant_api::events::work::{TASK_CREATED, TASK_UPDATED, TaskCreated, TaskUpdated};
use courant_api::resources::GoalView;
use courant_api::work::{TaskCreate, TaskPatch, TaskPriority, TaskStatus, TaskView};
use courant_api::{GoalId, Permission, PrincipalId, TaskId, TenantId, WorkspaceId};
use courant_core::lifecycle::{self, TaskWish};
use courant_core::place::Lies;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{claims, resources};
use crate::access::{before, guard, parsed, place, principals, workspaces};
use crate::change::{Change, Changed, fresh_id, note, to_json, told};
use crate::db::{Row, Tx, params, statements};
use crate::journal::texts::subtree;
use crate::{Error, Page, PageKey, Store};

macro_rules! columns {
    () => {
        "id, number, title, description, status, priority, workspace_id, assignee_id, due_date, goal_id, custom_fields, \
         fencing_token, consecutive_failures, version, created_by, created_at, updated_at"
    };
}

statements! { "tasks":
    NUMBER = "INSERT INTO task_number (tenant_id, last) VALUES ($1, 1)
        ON CONFLICT (tenant_id) DO UPDATE SET last = task_number.last + 1 RETURNING last";
    INSERT = "INSERT INTO task (id, tenant_id, number, title, description, status, priority, workspace_id, assignee_id,
            due_date, goal_id, custom_fields, fencing_token, runs, verifications, consecutive_failures, version, created_by,
            created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, 0, 0, 0, 1, $13, $14, $14)";
    GET = concat!("SELECT ", columns!(), " FROM task WHERE tenant_id = $1 AND id = $2");
    LOCK = concat!("SELECT ", columns!(), " FROM task WHERE tenant_id = $1 AND id = $2 {for update}");
    UPDATE = "UPDATE task SET title = $3, description = $4, status = $5, priority = $6, workspace_id = $7, assignee_id = $8,
            due_date = $9, goal_id = $10, custom_fields = $11, fencing_token = $12, consecutive_failures = $13, version = $14,
            updated_at = $15
        WHERE tenant_id = $1 AND id = $2";
    COUNT_RUN = "UPDATE task SET runs = runs + 1 WHERE tenant_id = $1 AND id = $2 RETURNING runs";
    COUNT_VERIFICATION = "UPDATE task SET verifications = verifications + 1 WHERE tenant_id = $1 AND id = $2
        RETURNING verifications";
    // Filters that are off have `false` before their value.
    LIST = concat!(
        "WITH RECURSIVE ", subtree!("$4"), " SELECT ", columns!(), " FROM task WHERE tenant_id = $1 AND id < $2
            AND (NOT $3 OR workspace_id IN (SELECT s.id FROM subtree s))
            AND (NOT $5 OR status IN {texts $6})
            AND (NOT $7 OR assignee_id = $8)
            AND (NOT $9 OR goal_id = $10)
        ORDER BY id DESC LIMIT $11");
}

/// Which tasks a list has.
#[derive(Clone, Debug, Default)]
pub struct TaskQuery {
    /// Only those of this workspace and all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Only those in one of these states; empty: in any.
    pub statuses: Vec<TaskStatus>,
    /// Only those that this principal is to do.
    pub assignee_id: Option<PrincipalId>,
    /// Only those that are for this goal.
    pub goal_id: Option<GoalId>,
}

fn corrupt(column: &str) -> Error {
    Error::Corrupt(format!("task.{column}"))
}

fn public_id(number: i64) -> String {
    format!("TASK-{number:06}")
}

fn view(row: &Row) -> Result<TaskView, Error> {
    let status: TaskStatus = parsed(row.get(4)?, "task.status")?;
    let priority: TaskPriority = parsed(row.get(5)?, "task.priority")?;
    let custom_fields: Map<String, Value> =
        serde_json::from_str(&row.get::<String>(10)?).map_err(|_| corrupt("custom_fields"))?;
    Ok(TaskView {
        id: row.get(0)?,
        public_id: public_id(row.get(1)?),
        title: row.get(2)?,
        description: row.get(3)?,
        status,
        system_status_category: lifecycle::category(status),
        priority,
        workspace_id: row.get(6)?,
        assignee_id: row.get(7)?,
        due_date: row.get(8)?,
        goal_id: row.get(9)?,
        custom_fields,
        fencing_token: row.get(11)?,
        consecutive_failures: row.get(12)?,
        version: row.get(13)?,
        created_by: row.get(14)?,
        created_at: row.get(15)?,
        updated_at: row.get(16)?,
    })
}

const ABSENT: Error = Error::NotFound("task");

/// The task, locked.
pub(super) async fn lock(tx: &mut Tx, tenant: TenantId, id: TaskId) -> Result<TaskView, Error> {
    view(&tx.query_opt(&LOCK, params![tenant, id]).await?.ok_or(ABSENT)?)
}

/// One task.
pub(super) async fn get(tx: &mut Tx, tenant: TenantId, id: TaskId) -> Result<TaskView, Error> {
    view(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(ABSENT)?)
}

/// The task, locked, if the actor has the permission where it lies.
pub(super) async fn lock_for(
    tx: &mut Tx,
    change: &Change,
    id: TaskId,
    permission: Permission,
) -> Result<TaskView, Error> {
    let task = lock(tx, change.tenant_id, id).await?;
    guard(tx, change, permission, &place(task.workspace_id)).await?;
    Ok(task)
}

/// Counts a run of the locked task: its attempt.
pub(super) async fn count_run(tx: &mut Tx, tenant: TenantId, id: TaskId) -> Result<i64, Error> {
    tx.query_one(&COUNT_RUN, params![tenant, id]).await?.get(0)
}

/// Counts a verification of the locked task: its attempt.
pub(super) async fn count_verification(tx: &mut Tx, tenant: TenantId, id: TaskId) -> Result<i64, Error> {
    tx.query_one(&COUNT_VERIFICATION, params![tenant, id]).await?.get(0)
}

/// Takes the task on to the state that a wish leads to, if there is one.
pub(super) fn wish(task: &mut TaskView, wish: TaskWish) -> Result<(), Error> {
    task.status = lifecycle::task(task.status, wish)?;
    task.system_status_category = lifecycle::category(task.status);
    Ok(())
}

/// Keeps what has changed, as the next version.
pub(super) async fn save(tx: &mut Tx, change: &Change, task: &mut TaskView) -> Result<(), Error> {
    task.version += 1;
    task.updated_at = change.now;
    let row = params![
        change.tenant_id,
        task.id,
        &task.title,
        task.description.as_deref(),
        task.status.as_str(),
        task.priority.as_str(),
        task.workspace_id,
        task.assignee_id,
        task.due_date,
        task.goal_id,
        to_json(&task.custom_fields)?,
        task.fencing_token,
        task.consecutive_failures,
        task.version,
        task.updated_at
    ];
    tx.execute(&UPDATE, row).await.map(|_| ())
}

/// What must exist for a task to name it.
async fn check_names(
    tx: &mut Tx,
    tenant: TenantId,
    workspace: Option<WorkspaceId>,
    assignee: Option<PrincipalId>,
    goal: Option<GoalId>,
) -> Result<(), Error> {
    if let Some(workspace) = workspace {
        workspaces::exists(tx, tenant, workspace).await?;
    }
    if let Some(assignee) = assignee {
        principals::exists(tx, tenant, assignee).await?;
    }
    if let Some(goal) = goal {
        resources::exists::<GoalView>(tx, tenant, goal).await?;
    }
    Ok(())
}

/// The wish behind a status in a patch; none when it is the task's already.
fn wished(now: TaskStatus, new: Option<TaskStatus>) -> Result<Option<TaskWish>, Error> {
    let Some(new) = new.filter(|new| *new != now) else { return Ok(None) };
    match new {
        TaskStatus::Open => Ok(Some(TaskWish::Reopen)),
        TaskStatus::Blocked => Ok(Some(TaskWish::Block)),
        TaskStatus::Cancelled => Ok(Some(TaskWish::Cancel)),
        TaskStatus::InProgress | TaskStatus::Completed => Err(Error::Invalid {
            field: "/status".into(),
            message: "must be open, blocked or cancelled; claims and completion do the rest".into(),
        }),
    }
}

impl Store {
    /// Creates a task; needs `tasks.create` on its workspace, or on the tenant.
    pub async fn task_create(&self, change: Change, new: TaskCreate) -> Result<Changed<TaskView>, Error> {
        self.db
            .change(change, new, |tx, (change, new)| {
                Box::pin(async move {
                    check_names(tx, change.tenant_id, new.workspace_id, new.assignee_id, new.goal_id).await?;
                    guard(tx, change, Permission::TasksCreate, &place(new.workspace_id)).await?;
                    let number: i64 = tx.query_one(&NUMBER, params![change.tenant_id]).await?.get(0)?;
                    let task = TaskView {
                        id: fresh_id().into(),
                        public_id: public_id(number),
                        title: new.title.clone(),
                        description: new.description.clone(),
                        status: TaskStatus::Open,
                        system_status_category: lifecycle::category(TaskStatus::Open),
                        priority: new.priority.unwrap_or(TaskPriority::Normal),
                        workspace_id: new.workspace_id,
                        assignee_id: new.assignee_id,
                        due_date: new.due_date,
                        goal_id: new.goal_id,
                        custom_fields: new.custom_fields.clone().unwrap_or_default(),
                        fencing_token: 0,
                        consecutive_failures: 0,
                        version: 1,
                        created_by: change.actor()?,
                        created_at: change.now,
                        updated_at: change.now,
                    };
                    let row = params![
                        task.id,
                        change.tenant_id,
                        number,
                        &task.title,
                        task.description.as_deref(),
                        task.status.as_str(),
                        task.priority.as_str(),
                        task.workspace_id,
                        task.assignee_id,
                        task.due_date,
                        task.goal_id,
                        to_json(&task.custom_fields)?,
                        task.created_by,
                        task.created_at
                    ];
                    tx.execute(&INSERT, row).await?;
                    let payload = TaskCreated {
                        public_id: task.public_id.clone(),
                        title: told(&task.title),
                        status: task.status,
                        system_status_category: task.system_status_category,
                        priority: task.priority,
                        workspace_id: task.workspace_id,
                        due_date: task.due_date,
                        goal_id: task.goal_id,
                        custom_fields: !task.custom_fields.is_empty(),
                    };
                    tx.append(change.event(&TASK_CREATED, task.id, Lies::own(task.workspace_id), &payload)?);
                    Ok(task)
                })
            })
            .await
    }

    /// One task.
    pub async fn task_get(&self, tenant: TenantId, id: TaskId) -> Result<TaskView, Error> {
        self.db.read((tenant, id), |tx, (tenant, id)| Box::pin(get(tx, *tenant, *id))).await
    }

    /// Tasks, newest first.
    pub async fn task_list(
        &self,
        tenant: TenantId,
        query: TaskQuery,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<TaskView>, Error> {
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
                        query.assignee_id.is_some(),
                        query.assignee_id.map_or(Uuid::nil(), PrincipalId::uuid),
                        query.goal_id.is_some(),
                        query.goal_id.map_or(Uuid::nil(), GoalId::uuid),
                        *limit + 1
                    ];
                    Page::cut(&tx.query(&LIST, row).await?, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }

    /// Changes a task; needs `tasks.update` where it lies and, when it moves, where it goes. Readers of the place that it
    /// leaves are told. A task that is blocked or cancelled is nobody's any more.
    pub async fn task_update(&self, change: Change, id: TaskId, patch: TaskPatch) -> Result<Changed<TaskView>, Error> {
        self.db
            .change(change, (id, patch), |tx, (change, (id, patch))| {
                Box::pin(async move {
                    let mut task = lock_for(tx, change, *id, Permission::TasksUpdate).await?;
                    change.check_version(task.version)?;
                    let (workspace, assignee) = (patch.workspace_id.flatten(), patch.assignee_id.flatten());
                    check_names(tx, change.tenant_id, workspace, assignee, patch.goal_id.flatten()).await?;
                    let previous = task.workspace_id;
                    if let Some(there) = patch.workspace_id.filter(|there| *there != previous) {
                        guard(tx, change, Permission::TasksUpdate, &place(there)).await?;
                    }
                    let from = task.status;
                    let mut changes = Vec::new();
                    note(&mut task.title, patch.title.as_ref(), "title", &mut changes);
                    note(&mut task.description, patch.description.as_ref(), "description", &mut changes);
                    note(&mut task.priority, patch.priority.as_ref(), "priority", &mut changes);
                    note(&mut task.workspace_id, patch.workspace_id.as_ref(), "workspaceId", &mut changes);
                    note(&mut task.assignee_id, patch.assignee_id.as_ref(), "assigneeId", &mut changes);
                    note(&mut task.due_date, patch.due_date.as_ref(), "dueDate", &mut changes);
                    note(&mut task.goal_id, patch.goal_id.as_ref(), "goalId", &mut changes);
                    note(&mut task.custom_fields, patch.custom_fields.as_ref(), "customFields", &mut changes);
                    if let Some(wish) = wished(from, patch.status)? {
                        self::wish(&mut task, wish)?;
                        changes.push("status".into());
                    }
                    if changes.is_empty() {
                        return Ok(task);
                    }
                    if task.status != from {
                        claims::end_with_task(tx, change, &task).await?;
                    }
                    save(tx, change, &mut task).await?;
                    tell(tx, change, &task, from, changes, previous)?;
                    Ok(task)
                })
            })
            .await
    }
}

/// What a change of a task tells, in the place where it is now and, after a move, in the one that it left.
fn tell(
    tx: &mut Tx,
    change: &Change,
    task: &TaskView,
    from: TaskStatus,
    changes: Vec<String>,
    previous: Option<WorkspaceId>,
) -> Result<(), Error> {
    let changed = task.status != from;
    let payload = TaskUpdated {
        public_id: task.public_id.clone(),
        changes,
        version: task.version,
        from_status: changed.then_some(from),
        status: changed.then_some(task.status),
        system_status_category: changed.then_some(task.system_status_category),
    };
    tx.append(change.event(&TASK_UPDATED, task.id, Lies::own(task.workspace_id), &payload)?);
    change.tell_left(tx, "task", task.id, previous, task.workspace_id)
}
