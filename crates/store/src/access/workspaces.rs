//! The workspace tree.

use courant_api::access::{WorkspaceCreate, WorkspacePatch, WorkspaceView};
use courant_api::events::workspace::{
    WORKSPACE_ARCHIVED, WORKSPACE_CREATED, WORKSPACE_MOVED, WORKSPACE_UPDATED, WorkspaceChange,
};
use courant_api::{Permission, TenantId, WorkspaceId};
use courant_core::place::Lies;

use super::{Page, PageKey, before, guard, place, tenants};
use crate::change::{Change, Changed, fresh_id};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Store, count};

/// Deepest tree; a bound for every walk up or down it.
const MAX_DEPTH: i64 = 32;

statements! { "workspaces":
    INSERT = "INSERT INTO workspace (id, tenant_id, parent_id, name, version, created_at) VALUES ($1, $2, $3, $4, 1, $5)";
    GET = "SELECT id, name, parent_id, archived_at, version FROM workspace WHERE tenant_id = $1 AND id = $2";
    LOCK = "SELECT id, name, parent_id, archived_at, version FROM workspace WHERE tenant_id = $1 AND id = $2 {for update}";
    LIST = "SELECT id, name, parent_id, archived_at, version FROM workspace
        WHERE tenant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    UPDATE = "UPDATE workspace SET name = $3, parent_id = $4, archived_at = $5, version = $6
        WHERE tenant_id = $1 AND id = $2";
    ACTIVE_CHILD = "SELECT id FROM workspace WHERE tenant_id = $1 AND parent_id = $2 AND archived_at IS NULL LIMIT 1";
    // The workspace and everything above it, with its distance.
    ANCESTORS = "WITH RECURSIVE up(id, parent_id, distance) AS (
            SELECT w.id, w.parent_id, CAST(0 AS bigint) FROM workspace w WHERE w.tenant_id = $1 AND w.id = $2
            UNION ALL
            SELECT w.id, w.parent_id, u.distance + 1 FROM up u
                JOIN workspace w ON w.tenant_id = $1 AND w.id = u.parent_id WHERE u.distance < 100)
        SELECT id FROM up ORDER BY distance";
    HEIGHT = "WITH RECURSIVE down(id, depth) AS (
            SELECT w.id, CAST(1 AS bigint) FROM workspace w WHERE w.tenant_id = $1 AND w.id = $2
            UNION ALL
            SELECT w.id, d.depth + 1 FROM down d
                JOIN workspace w ON w.tenant_id = $1 AND w.parent_id = d.id WHERE d.depth < 100)
        SELECT max(depth) FROM down";
}

fn view(row: &Row) -> Result<WorkspaceView, Error> {
    Ok(WorkspaceView {
        id: row.get(0)?,
        name: row.get(1)?,
        parent_id: row.get(2)?,
        archived_at: row.get(3)?,
        version: row.get(4)?,
    })
}

async fn get(tx: &mut Tx, tenant: TenantId, id: WorkspaceId) -> Result<WorkspaceView, Error> {
    view(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(Error::NotFound("workspace"))?)
}

/// That the workspace exists in the tenant.
pub(crate) async fn exists(tx: &mut Tx, tenant: TenantId, id: WorkspaceId) -> Result<(), Error> {
    get(tx, tenant, id).await.map(|_| ())
}

/// The workspace, locked, if the actor may manage it.
async fn lock(tx: &mut Tx, change: &Change, id: WorkspaceId) -> Result<WorkspaceView, Error> {
    let row = tx.query_opt(&LOCK, params![change.tenant_id, id]).await?.ok_or(Error::NotFound("workspace"))?;
    guard(tx, change, Permission::WorkspacesManage, &place(Some(id))).await?;
    let workspace = view(&row)?;
    change.check_version(workspace.version)?;
    Ok(workspace)
}

/// A parent that something may be put under, and its ancestors from itself up.
async fn open_parent(tx: &mut Tx, change: &Change, parent: Option<WorkspaceId>) -> Result<Vec<WorkspaceId>, Error> {
    let Some(parent) = parent else {
        guard(tx, change, Permission::WorkspacesManage, &place(None)).await?;
        return Ok(Vec::new());
    };
    let workspace = get(tx, change.tenant_id, parent).await?;
    guard(tx, change, Permission::WorkspacesManage, &place(Some(parent))).await?;
    if workspace.archived_at.is_some() {
        return Err(Error::Conflict("the parent workspace is archived".into()));
    }
    path(tx, change.tenant_id, parent).await
}

/// The workspace and all above it, nearest first; empty when the tenant has no such workspace.
pub(crate) async fn path(tx: &mut Tx, tenant: TenantId, id: WorkspaceId) -> Result<Vec<WorkspaceId>, Error> {
    let rows = tx.query(&ANCESTORS, params![tenant, id]).await?;
    rows.iter().map(|row| row.get(0)).collect()
}

async fn save(tx: &mut Tx, change: &Change, workspace: &WorkspaceView) -> Result<(), Error> {
    let row = params![
        change.tenant_id,
        workspace.id,
        &workspace.name,
        workspace.parent_id,
        workspace.archived_at,
        workspace.version
    ];
    tx.execute(&UPDATE, row).await.map(|_| ())
}

fn payload(workspace: &WorkspaceView, previous_parent_id: Option<WorkspaceId>) -> WorkspaceChange {
    WorkspaceChange {
        name: workspace.name.clone(),
        parent_id: workspace.parent_id,
        previous_parent_id,
        version: workspace.version,
    }
}

impl Store {
    /// Creates a workspace; needs `workspaces.manage` on its parent, or on the tenant for one at the top.
    pub async fn workspace_create(
        &self,
        change: Change,
        new: WorkspaceCreate,
    ) -> Result<Changed<WorkspaceView>, Error> {
        self.db
            .change(change, new, |tx, (change, new)| {
                Box::pin(async move {
                    tenants::lock(tx, change.tenant_id).await?;
                    let above = open_parent(tx, change, new.parent_id).await?;
                    if count(&above) >= MAX_DEPTH {
                        return Err(Error::Conflict(format!("workspaces nest at most {MAX_DEPTH} deep")));
                    }
                    let workspace = WorkspaceView {
                        id: fresh_id().into(),
                        name: new.name.clone(),
                        parent_id: new.parent_id,
                        archived_at: None,
                        version: 1,
                    };
                    let row = params![workspace.id, change.tenant_id, workspace.parent_id, &workspace.name, change.now];
                    tx.execute(&INSERT, row).await?;
                    tx.append(change.event(
                        &WORKSPACE_CREATED,
                        workspace.id,
                        Lies::own(workspace.id),
                        &payload(&workspace, None),
                    )?);
                    Ok(workspace)
                })
            })
            .await
    }

    /// One workspace.
    pub async fn workspace_get(&self, tenant: TenantId, id: WorkspaceId) -> Result<WorkspaceView, Error> {
        self.db.read((tenant, id), |tx, (tenant, id)| Box::pin(get(tx, *tenant, *id))).await
    }

    /// Workspaces, newest first.
    pub async fn workspace_list(
        &self,
        tenant: TenantId,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<WorkspaceView>, Error> {
        self.db
            .read((tenant, key, limit), |tx, (tenant, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }

    /// Renames a workspace.
    pub async fn workspace_update(
        &self,
        change: Change,
        id: WorkspaceId,
        patch: WorkspacePatch,
    ) -> Result<Changed<WorkspaceView>, Error> {
        self.db
            .change(change, (id, patch), |tx, (change, (id, patch))| {
                Box::pin(async move {
                    let mut workspace = lock(tx, change, *id).await?;
                    match &patch.name {
                        Some(name) if *name != workspace.name => workspace.name.clone_from(name),
                        _ => return Ok(workspace),
                    }
                    workspace.version += 1;
                    save(tx, change, &workspace).await?;
                    tx.append(change.event(&WORKSPACE_UPDATED, *id, Lies::own(*id), &payload(&workspace, None))?);
                    Ok(workspace)
                })
            })
            .await
    }

    /// Puts a workspace under another parent; readers of the place it left are told.
    pub async fn workspace_move(
        &self,
        change: Change,
        id: WorkspaceId,
        parent_id: Option<WorkspaceId>,
    ) -> Result<Changed<WorkspaceView>, Error> {
        self.db
            .change(change, (id, parent_id), |tx, (change, (id, parent_id))| {
                Box::pin(async move {
                    tenants::lock(tx, change.tenant_id).await?;
                    let mut workspace = lock(tx, change, *id).await?;
                    let above = open_parent(tx, change, *parent_id).await?;
                    if above.contains(id) {
                        return Err(Error::Conflict("a workspace cannot move below itself".into()));
                    }
                    let height: i64 = tx.query_one(&HEIGHT, params![change.tenant_id, *id]).await?.get(0)?;
                    if count(&above) + height > MAX_DEPTH {
                        return Err(Error::Conflict(format!("workspaces nest at most {MAX_DEPTH} deep")));
                    }
                    let previous = workspace.parent_id;
                    if previous == *parent_id {
                        return Ok(workspace);
                    }
                    workspace.parent_id = *parent_id;
                    workspace.version += 1;
                    save(tx, change, &workspace).await?;
                    tx.append(change.event(&WORKSPACE_MOVED, *id, Lies::own(*id), &payload(&workspace, previous))?);
                    change.tell_left(tx, "workspace", id, previous, *parent_id)?;
                    Ok(workspace)
                })
            })
            .await
    }

    /// Archives a workspace without active ones below it; an archived one stays so.
    pub async fn workspace_archive(&self, change: Change, id: WorkspaceId) -> Result<Changed<WorkspaceView>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| {
                Box::pin(async move {
                    tenants::lock(tx, change.tenant_id).await?;
                    let mut workspace = lock(tx, change, *id).await?;
                    if workspace.archived_at.is_some() {
                        return Ok(workspace);
                    }
                    if tx.query_opt(&ACTIVE_CHILD, params![change.tenant_id, *id]).await?.is_some() {
                        return Err(Error::Conflict("the workspace has active workspaces below it".into()));
                    }
                    workspace.archived_at = Some(change.now);
                    workspace.version += 1;
                    save(tx, change, &workspace).await?;
                    tx.append(change.event(&WORKSPACE_ARCHIVED, *id, Lies::own(*id), &payload(&workspace, None))?);
                    Ok(workspace)
                })
            })
            .await
    }
}
