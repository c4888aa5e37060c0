//! Stacks: what is deployed, and what of it must come first.

use std::collections::HashMap;

use courant_api::deployments::{Dependency, PrPlanMode, StackCreate, StackPatch, StackView};
use courant_api::events::EventType;
use courant_api::events::deployments::{STACK_CREATED, STACK_DELETED, STACK_UPDATED, StackChange};
use courant_api::{Permission, StackId, TenantId, WorkspaceId};
use courant_core::place::Lies;
use uuid::Uuid;

use super::life::leave_out_all;
use super::{from_json, told_labels};
use crate::access::{before, guard, parsed, place, workspaces};
use crate::change::{Change, Changed, fresh_id, note, to_json, told};
use crate::db::{Row, Tx, params, statements};
use crate::journal::texts::subtree;
use crate::{Error, Page, PageKey, Store};

macro_rules! columns {
    () => {
        "s.id, s.name, s.workspace_id, s.labels, s.repository, s.path, s.pr_plan_mode, s.version, s.created_at, s.deleted_at \
         FROM stack s"
    };
}

statements! { "stacks":
    GET = concat!("SELECT ", columns!(), " WHERE s.tenant_id = $1 AND s.id = $2");
    LOCK = concat!("SELECT ", columns!(), " WHERE s.tenant_id = $1 AND s.id = $2 {for update}");
    SAVE = "INSERT INTO stack (tenant_id, id, workspace_id, name, labels, repository, path, pr_plan_mode, version, created_at,
            deleted_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (id) DO UPDATE SET workspace_id = excluded.workspace_id, name = excluded.name, labels = excluded.labels,
            repository = excluded.repository, path = excluded.path, pr_plan_mode = excluded.pr_plan_mode,
            version = excluded.version, deleted_at = excluded.deleted_at";
    LIST = concat!(
        "WITH RECURSIVE ", subtree!("$5"), " SELECT ", columns!(), " WHERE s.tenant_id = $1 AND s.id < $2
            AND s.deleted_at IS NULL
            AND (NOT $4 OR s.workspace_id IN (SELECT w.id FROM subtree w))
            AND (NOT $6 OR s.name = $7)
        ORDER BY s.id DESC LIMIT $3");
    LIVE = "SELECT s.id FROM stack s WHERE s.tenant_id = $1 AND s.id IN {uuids $2} AND s.deleted_at IS NULL";
    NEEDS = "SELECT n.stack_id, n.depends_on_id, n.triggers FROM stack_dependency n
        WHERE n.tenant_id = $1 AND n.stack_id IN {uuids $2} ORDER BY n.depends_on_id";
    FORGET_NEEDS = "DELETE FROM stack_dependency WHERE tenant_id = $1 AND stack_id = $2";
    ADD_NEED = "INSERT INTO stack_dependency (tenant_id, stack_id, depends_on_id, triggers) VALUES ($1, $2, $3, $4)";
    ACTIVE = "SELECT d.id FROM deployment d WHERE d.tenant_id = $1 AND d.stack_id = $2
        AND d.status IN ('pending', 'running', 'awaiting_confirmation') LIMIT 1";
    // Those that an apply of a stack starts.
    DEPENDENTS = concat!(
        "SELECT ", columns!(), " JOIN stack_dependency n ON n.tenant_id = s.tenant_id AND n.stack_id = s.id
        WHERE s.tenant_id = $1 AND n.depends_on_id = $2 AND n.triggers AND s.deleted_at IS NULL
        ORDER BY s.id {for update of s}");
}

/// Which stacks a list has.
#[derive(Clone, Debug, Default)]
pub struct StackQuery {
    /// Only those of this workspace and all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Only those with this name.
    pub name: Option<String>,
}

/// A stack as it is stored; what it depends on is read apart.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub view: StackView,
    deleted: bool,
}

const ABSENT: Error = Error::NotFound("stack");

impl Stack {
    fn read(row: &Row) -> Result<Self, Error> {
        let view = StackView {
            id: row.get(0)?,
            name: row.get(1)?,
            workspace_id: row.get(2)?,
            labels: from_json(&row.get::<String>(3)?, "stack.labels")?,
            repository: row.get(4)?,
            path: row.get(5)?,
            depends_on: Vec::new(),
            pr_plan_mode: parsed(row.get(6)?, "stack.pr_plan_mode")?,
            version: row.get(7)?,
            created_at: row.get(8)?,
        };
        Ok(Self { view, deleted: row.get::<Option<i64>>(9)?.is_some() })
    }

    /// The stack, be it deleted: its deployments are still told of.
    pub(super) async fn get(tx: &mut Tx, tenant: TenantId, id: StackId) -> Result<Self, Error> {
        Self::read(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(ABSENT)?)
    }

    /// The stack, locked, unless it is deleted.
    pub(super) async fn lock(tx: &mut Tx, tenant: TenantId, id: StackId) -> Result<Self, Error> {
        let stack = Self::read(&tx.query_opt(&LOCK, params![tenant, id]).await?.ok_or(ABSENT)?)?;
        if stack.deleted { Err(ABSENT) } else { Ok(stack) }
    }

    /// Whether a deployment of it has not ended.
    pub(super) async fn has_active(tx: &mut Tx, tenant: TenantId, id: StackId) -> Result<bool, Error> {
        Ok(tx.query_opt(&ACTIVE, params![tenant, id]).await?.is_some())
    }

    /// The stacks, locked, whose deployments an apply of this one starts.
    pub(super) async fn dependents(tx: &mut Tx, tenant: TenantId, id: StackId) -> Result<Vec<Self>, Error> {
        tx.query(&DEPENDENTS, params![tenant, id]).await?.iter().map(Self::read).collect()
    }
}

/// Adds to each stack what it depends on.
async fn add_needs(tx: &mut Tx, tenant: TenantId, stacks: &mut [StackView]) -> Result<(), Error> {
    let ids: Vec<Uuid> = stacks.iter().map(|stack| stack.id.uuid()).collect();
    let mut needs: HashMap<StackId, Vec<Dependency>> = HashMap::new();
    for row in tx.query(&NEEDS, params![tenant, ids]).await? {
        needs.entry(row.get(0)?).or_default().push(Dependency { stack_id: row.get(1)?, trigger: row.get(2)? });
    }
    for stack in stacks {
        stack.depends_on = needs.remove(&stack.id).unwrap_or_default();
    }
    Ok(())
}

/// What a stack says that it depends on, in the order in which it is read again; each of them must exist.
async fn needs(
    tx: &mut Tx,
    tenant: TenantId,
    own: StackId,
    known: &[Dependency],
    given: &[Dependency],
) -> Result<Vec<Dependency>, Error> {
    let mut needs = given.to_vec();
    needs.sort_by_key(|need| need.stack_id);
    let kept = |id: StackId| id == own || known.iter().any(|need| need.stack_id == id);
    let fresh: Vec<Uuid> = needs.iter().map(|need| need.stack_id).filter(|id| !kept(*id)).map(StackId::uuid).collect();
    let wanted = fresh.len();
    if tx.query(&LIVE, params![tenant, fresh]).await?.len() < wanted {
        return Err(ABSENT);
    }
    Ok(needs)
}

async fn write(tx: &mut Tx, change: &Change, stack: &StackView, deleted: bool) -> Result<(), Error> {
    let row = params![
        change.tenant_id,
        stack.id,
        stack.workspace_id,
        &stack.name,
        to_json(&stack.labels)?,
        stack.repository.as_deref(),
        stack.path.as_deref(),
        stack.pr_plan_mode.as_str(),
        stack.version,
        stack.created_at,
        deleted.then_some(change.now)
    ];
    tx.execute(&SAVE, row).await.map(|_| ())
}

async fn write_needs(tx: &mut Tx, change: &Change, stack: &StackView) -> Result<(), Error> {
    tx.execute(&FORGET_NEEDS, params![change.tenant_id, stack.id]).await?;
    let row = |need: &Dependency| params![change.tenant_id, stack.id, need.stack_id, need.trigger].to_vec();
    let rows: Vec<_> = stack.depends_on.iter().map(row).collect();
    tx.execute_each(&ADD_NEED, &rows).await.map(|_| ())
}

fn tell(
    tx: &mut Tx,
    change: &Change,
    kind: &EventType<StackChange>,
    stack: &StackView,
    changes: Vec<String>,
) -> Result<(), Error> {
    let payload = StackChange {
        name: told(&stack.name),
        labels: told_labels(&stack.labels),
        repository: stack.repository.as_deref().map(told),
        path: stack.path.as_deref().map(told),
        changes,
    };
    tx.append(change.event(kind, stack.id, Lies::own(stack.workspace_id), &payload)?);
    Ok(())
}

async fn create(tx: &mut Tx, change: &Change, new: &StackCreate) -> Result<StackView, Error> {
    if let Some(workspace) = new.workspace_id {
        workspaces::exists(tx, change.tenant_id, workspace).await?;
    }
    guard(tx, change, Permission::StacksManage, &place(new.workspace_id)).await?;
    let id = fresh_id().into();
    let stack = StackView {
        id,
        name: new.name.clone(),
        workspace_id: new.workspace_id,
        labels: new.labels.clone(),
        repository: new.repository.clone(),
        path: new.path.clone(),
        depends_on: needs(tx, change.tenant_id, id, &[], &new.depends_on).await?,
        pr_plan_mode: new.pr_plan_mode.unwrap_or(PrPlanMode::Auto),
        version: 1,
        created_at: change.now,
    };
    write(tx, change, &stack, false).await?;
    write_needs(tx, change, &stack).await?;
    tell(tx, change, &STACK_CREATED, &stack, Vec::new())?;
    Ok(stack)
}

async fn locked(tx: &mut Tx, change: &Change, id: StackId) -> Result<StackView, Error> {
    let mut view = Stack::lock(tx, change.tenant_id, id).await?.view;
    guard(tx, change, Permission::StacksManage, &place(view.workspace_id)).await?;
    change.check_version(view.version)?;
    add_needs(tx, change.tenant_id, std::slice::from_mut(&mut view)).await?;
    Ok(view)
}

async fn update(tx: &mut Tx, change: &Change, id: StackId, patch: &StackPatch) -> Result<StackView, Error> {
    let was = locked(tx, change, id).await?;
    if let Some(there) = patch.workspace_id.filter(|there| *there != was.workspace_id) {
        if let Some(workspace) = there {
            workspaces::exists(tx, change.tenant_id, workspace).await?;
        }
        guard(tx, change, Permission::StacksManage, &place(there)).await?;
    }
    let depends_on = match &patch.depends_on {
        Some(given) => Some(needs(tx, change.tenant_id, id, &was.depends_on, given).await?),
        None => None,
    };
    let mut stack = was.clone();
    let mut changes = Vec::new();
    note(&mut stack.name, patch.name.as_ref(), "name", &mut changes);
    note(&mut stack.workspace_id, patch.workspace_id.as_ref(), "workspaceId", &mut changes);
    note(&mut stack.labels, patch.labels.as_ref(), "labels", &mut changes);
    note(&mut stack.repository, patch.repository.as_ref(), "repository", &mut changes);
    note(&mut stack.path, patch.path.as_ref(), "path", &mut changes);
    note(&mut stack.depends_on, depends_on.as_ref(), "dependsOn", &mut changes);
    note(&mut stack.pr_plan_mode, patch.pr_plan_mode.as_ref(), "prPlanMode", &mut changes);
    if changes.is_empty() {
        return Ok(stack);
    }
    stack.version += 1;
    write(tx, change, &stack, false).await?;
    if stack.depends_on != was.depends_on {
        write_needs(tx, change, &stack).await?;
    }
    tell(tx, change, &STACK_UPDATED, &stack, changes)?;
    change.tell_left(tx, "stack", id, was.workspace_id, stack.workspace_id)?;
    Ok(stack)
}

async fn delete(tx: &mut Tx, change: &Change, id: StackId) -> Result<(), Error> {
    let mut stack = locked(tx, change, id).await?;
    leave_out_all(tx, change, &Stack { view: stack.clone(), deleted: false }).await?;
    stack.version += 1;
    stack.depends_on.clear();
    write(tx, change, &stack, true).await?;
    write_needs(tx, change, &stack).await?;
    tell(tx, change, &STACK_DELETED, &stack, Vec::new())
}

impl Store {
    /// Creates a stack; needs `stacks.manage` where it is to lie.
    pub async fn stack_create(&self, change: Change, new: StackCreate) -> Result<Changed<StackView>, Error> {
        self.db.change(change, new, |tx, (change, new)| Box::pin(create(tx, change, new))).await
    }

    /// One stack.
    pub async fn stack_get(&self, tenant: TenantId, id: StackId) -> Result<StackView, Error> {
        self.db
            .read((tenant, id), |tx, (tenant, id)| {
                Box::pin(async move {
                    let mut stack = Stack::get(tx, *tenant, *id).await?;
                    if stack.deleted {
                        return Err(ABSENT);
                    }
                    add_needs(tx, *tenant, std::slice::from_mut(&mut stack.view)).await?;
                    Ok(stack.view)
                })
            })
            .await
    }

    /// Stacks, newest first.
    pub async fn stack_list(
        &self,
        tenant: TenantId,
        query: StackQuery,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<StackView>, Error> {
        self.db
            .read((tenant, query, key, limit), |tx, (tenant, query, key, limit)| {
                Box::pin(async move {
                    let row = params![
                        *tenant,
                        before(*key),
                        *limit + 1,
                        query.workspace_id.is_some(),
                        query.workspace_id.map_or(Uuid::nil(), WorkspaceId::uuid),
                        query.name.is_some(),
                        query.name.as_deref().unwrap_or_default()
                    ];
                    let rows = tx.query(&LIST, row).await?;
                    let mut page = Page::cut(&rows, *limit, |row| Ok(Stack::read(row)?.view), |v| v.id.uuid())?;
                    add_needs(tx, *tenant, &mut page.items).await?;
                    Ok(page)
                })
            })
            .await
    }

    /// Changes or moves a stack; needs `stacks.manage` where it lies and, when it moves, where it goes.
    pub async fn stack_update(
        &self,
        change: Change,
        id: StackId,
        patch: StackPatch,
    ) -> Result<Changed<StackView>, Error> {
        self.db.change(change, (id, patch), |tx, (change, (id, patch))| Box::pin(update(tx, change, *id, patch))).await
    }

    /// Deletes a stack none of whose deployments runs; those that wait are left out. What depends on it is dangling from then on.
    pub async fn stack_delete(&self, change: Change, id: StackId) -> Result<Changed<()>, Error> {
        self.db.change(change, id, |tx, (change, id)| Box::pin(delete(tx, change, *id))).await
    }
}
