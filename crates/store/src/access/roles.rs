//! Roles, who has them, and who holds one at a place.

use courant_api::access::{RoleAssignmentCreate, RoleAssignmentView, RoleCreate, RoleHolder, RolePatch, RoleView};
use courant_api::events::access::{
    ROLE_ASSIGNED, ROLE_CREATED, ROLE_REVOKED, ROLE_UPDATED, RoleAssignmentChange, RoleChange,
};
use courant_api::{Permission, PrincipalId, RoleAssignmentId, RoleId, TenantId, WorkspaceId};
use courant_core::access::covers;
use courant_core::place::Lies;
use uuid::Uuid;

use super::{Page, PageKey, before, grants, guard, guard_handing_out, parsed, place, principals, workspaces};
use crate::change::{Change, Changed, fresh_id};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Store, count};

statements! { "roles":
    INSERT = "INSERT INTO role (id, tenant_id, workspace_id, key, name, version, created_at)
        VALUES ($1, $2, $3, $4, $5, 1, $6)";
    GET = "SELECT id, key, name, workspace_id, version, created_at FROM role WHERE tenant_id = $1 AND id = $2";
    LOCK = "SELECT id, key, name, workspace_id, version, created_at FROM role
        WHERE tenant_id = $1 AND id = $2 {for update}";
    LIST = "SELECT id, key, name, workspace_id, version, created_at FROM role
        WHERE tenant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    UPDATE = "UPDATE role SET name = $3, version = $4 WHERE tenant_id = $1 AND id = $2";
    ASSIGN = "INSERT INTO role_assignment (id, tenant_id, role_id, principal_id, workspace_id, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    ASSIGNMENTS = "SELECT id, role_id, principal_id, workspace_id, created_at FROM role_assignment
        WHERE tenant_id = $1 AND role_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4";
    ASSIGNMENT_LOCK = "SELECT id, role_id, principal_id, workspace_id, created_at FROM role_assignment
        WHERE tenant_id = $1 AND role_id = $2 AND id = $3 {for update}";
    REVOKE = "DELETE FROM role_assignment WHERE tenant_id = $1 AND id = $2";
    HELD = "SELECT workspace_id FROM role_assignment WHERE tenant_id = $1 AND role_id = $2 AND principal_id = $3";
    // Whoever has the role anywhere, principal by principal.
    HAVING = "SELECT p.id, p.kind, p.display_name, p.status, a.workspace_id, a.id FROM role_assignment a
        JOIN principal p ON p.tenant_id = a.tenant_id AND p.id = a.principal_id
        WHERE a.tenant_id = $1 AND a.role_id = $2
            AND (a.principal_id < $3 OR (a.principal_id = $3 AND a.id < $4))
        ORDER BY a.principal_id DESC, a.id DESC LIMIT $5";
}

fn view(row: &Row) -> Result<RoleView, Error> {
    Ok(RoleView {
        id: row.get(0)?,
        key: row.get(1)?,
        name: row.get(2)?,
        workspace_id: row.get(3)?,
        version: row.get(4)?,
        created_at: row.get(5)?,
    })
}

fn assignment(row: &Row) -> Result<RoleAssignmentView, Error> {
    Ok(RoleAssignmentView {
        id: row.get(0)?,
        role_id: row.get(1)?,
        principal_id: row.get(2)?,
        workspace_id: row.get(3)?,
        created_at: row.get(4)?,
    })
}

const ABSENT: Error = Error::NotFound("role");

async fn get(tx: &mut Tx, tenant: TenantId, id: RoleId) -> Result<RoleView, Error> {
    view(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(ABSENT)?)
}

/// The role, locked: what it grants and who has it change one after another, so that nobody is handed a grant that was
/// added behind the back of who assigned the role.
pub(super) async fn lock(tx: &mut Tx, tenant: TenantId, id: RoleId) -> Result<RoleView, Error> {
    view(&tx.query_opt(&LOCK, params![tenant, id]).await?.ok_or(ABSENT)?)
}

/// That the role exists in the tenant.
pub(crate) async fn exists(tx: &mut Tx, tenant: TenantId, id: RoleId) -> Result<(), Error> {
    get(tx, tenant, id).await.map(|_| ())
}

/// Whether a principal holds a role at a place: there, on something above, or on the tenant. The rule of
/// [`Store::role_holders`].
pub(crate) async fn holds(
    tx: &mut Tx,
    tenant: TenantId,
    id: RoleId,
    principal: PrincipalId,
    at: Option<WorkspaceId>,
) -> Result<bool, Error> {
    let path = match at {
        Some(workspace) => workspaces::path(tx, tenant, workspace).await?,
        None => Vec::new(),
    };
    for row in tx.query(&HELD, params![tenant, id, principal]).await? {
        if covers(row.get(0)?, &path) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn told(assignment: &RoleAssignmentView) -> RoleAssignmentChange {
    RoleAssignmentChange { principal_id: assignment.principal_id, workspace_id: assignment.workspace_id }
}

impl Store {
    /// Creates a role; needs `roles.manage` on its workspace, or on the tenant.
    pub async fn role_create(&self, change: Change, new: RoleCreate) -> Result<Changed<RoleView>, Error> {
        self.db
            .change(change, new, |tx, (change, new)| {
                Box::pin(async move {
                    if let Some(workspace) = new.workspace_id {
                        workspaces::exists(tx, change.tenant_id, workspace).await?;
                    }
                    guard(tx, change, Permission::RolesManage, &place(new.workspace_id)).await?;
                    let role = RoleView {
                        id: fresh_id().into(),
                        key: new.key.clone(),
                        name: new.name.clone(),
                        workspace_id: new.workspace_id,
                        version: 1,
                        created_at: change.now,
                    };
                    let row =
                        params![role.id, change.tenant_id, role.workspace_id, &role.key, &role.name, role.created_at];
                    tx.execute(&INSERT, row).await.map_err(|e| e.unique_means("a role of this key exists"))?;
                    let payload = RoleChange { key: role.key.clone(), name: role.name.clone() };
                    tx.append(change.event(&ROLE_CREATED, role.id, Lies::own(role.workspace_id), &payload)?);
                    Ok(role)
                })
            })
            .await
    }

    /// One role.
    pub async fn role_get(&self, tenant: TenantId, id: RoleId) -> Result<RoleView, Error> {
        self.db.read((tenant, id), |tx, (tenant, id)| Box::pin(get(tx, *tenant, *id))).await
    }

    /// Roles, newest first.
    pub async fn role_list(&self, tenant: TenantId, key: PageKey, limit: i64) -> Result<Page<RoleView>, Error> {
        self.db
            .read((tenant, key, limit), |tx, (tenant, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }

    /// Renames a role.
    pub async fn role_update(&self, change: Change, id: RoleId, patch: RolePatch) -> Result<Changed<RoleView>, Error> {
        self.db
            .change(change, (id, patch), |tx, (change, (id, patch))| {
                Box::pin(async move {
                    let mut role = lock(tx, change.tenant_id, *id).await?;
                    guard(tx, change, Permission::RolesManage, &place(role.workspace_id)).await?;
                    change.check_version(role.version)?;
                    match &patch.name {
                        Some(name) if *name != role.name => role.name.clone_from(name),
                        _ => return Ok(role),
                    }
                    role.version += 1;
                    tx.execute(&UPDATE, params![change.tenant_id, *id, &role.name, role.version]).await?;
                    let payload = RoleChange { key: role.key.clone(), name: role.name.clone() };
                    tx.append(change.event(&ROLE_UPDATED, *id, Lies::own(role.workspace_id), &payload)?);
                    Ok(role)
                })
            })
            .await
    }

    /// Assigns a role on the tenant or a workspace, by who manages roles there and holds there what it grants.
    pub async fn role_assign(
        &self,
        change: Change,
        id: RoleId,
        new: RoleAssignmentCreate,
    ) -> Result<Changed<RoleAssignmentView>, Error> {
        self.db
            .change(change, (id, new), |tx, (change, (id, new))| {
                Box::pin(async move {
                    let role = lock(tx, change.tenant_id, *id).await?;
                    principals::exists(tx, change.tenant_id, new.principal_id).await?;
                    if let Some(workspace) = new.workspace_id {
                        workspaces::exists(tx, change.tenant_id, workspace).await?;
                    }
                    guard(tx, change, Permission::RolesManage, &place(new.workspace_id)).await?;
                    for grant in grants::of_role(tx, change.tenant_id, *id, new.workspace_id).await? {
                        guard_handing_out(tx, change, &grant).await?;
                    }
                    let made = RoleAssignmentView {
                        id: fresh_id().into(),
                        role_id: *id,
                        principal_id: new.principal_id,
                        workspace_id: new.workspace_id,
                        created_at: change.now,
                    };
                    let row = params![made.id, change.tenant_id, *id, made.principal_id, made.workspace_id, change.now];
                    tx.execute(&ASSIGN, row)
                        .await
                        .map_err(|e| e.unique_means("the principal has the role there already"))?;
                    tx.append(change.event(&ROLE_ASSIGNED, *id, Lies::own(role.workspace_id), &told(&made))?);
                    Ok(made)
                })
            })
            .await
    }

    /// Takes a role away from a principal.
    pub async fn role_revoke(&self, change: Change, id: RoleId, had: RoleAssignmentId) -> Result<Changed<()>, Error> {
        self.db
            .change(change, (id, had), |tx, (change, (id, had))| {
                Box::pin(async move {
                    // One word for both that may be missing, so that no role is betrayed by its assignments.
                    let absent = || Error::NotFound("role assignment");
                    let role = lock(tx, change.tenant_id, *id).await.map_err(|e| e.if_not_found(absent()))?;
                    let row = tx.query_opt(&ASSIGNMENT_LOCK, params![change.tenant_id, *id, *had]).await?;
                    let was = assignment(&row.ok_or_else(absent)?)?;
                    guard(tx, change, Permission::RolesManage, &place(was.workspace_id)).await?;
                    tx.execute(&REVOKE, params![change.tenant_id, *had]).await?;
                    tx.append(change.event(&ROLE_REVOKED, *id, Lies::own(role.workspace_id), &told(&was))?);
                    Ok(())
                })
            })
            .await
    }

    /// Who has a role and where, newest first.
    pub async fn role_assignment_list(
        &self,
        tenant: TenantId,
        id: RoleId,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<RoleAssignmentView>, Error> {
        self.db
            .read((tenant, id, key, limit), |tx, (tenant, id, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&ASSIGNMENTS, params![*tenant, *id, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, assignment, |v| v.id.uuid())
                })
            })
            .await
    }

    /// Who holds a role at a place, each once: those who have it there, on something above, or on the tenant.
    pub async fn role_holders(
        &self,
        tenant: TenantId,
        id: RoleId,
        at: Option<WorkspaceId>,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<RoleHolder>, Error> {
        self.db
            .read((tenant, id, at, key, limit), |tx, (tenant, id, at, key, limit)| {
                Box::pin(async move {
                    get(tx, *tenant, *id).await?;
                    let path = match at {
                        Some(workspace) => workspaces::path(tx, *tenant, *workspace).await?,
                        None => Vec::new(),
                    };
                    if at.is_some() && path.is_empty() {
                        return Err(Error::NotFound("workspace"));
                    }
                    let mut items: Vec<RoleHolder> = Vec::new();
                    let mut last = (PrincipalId(before(*key)), Uuid::nil());
                    loop {
                        let values = params![*tenant, *id, last.0, last.1, *limit + 1];
                        let rows = tx.query(&HAVING, values).await?;
                        for row in &rows {
                            last = (row.get(0)?, row.get(5)?);
                            let known = items.last().is_some_and(|holder| holder.id == last.0);
                            if known || !covers(row.get(4)?, &path) {
                                continue;
                            }
                            if count(&items) == *limit {
                                let next = items.last().map(|holder| holder.id.uuid());
                                return Ok(Page { items, next });
                            }
                            items.push(RoleHolder {
                                id: last.0,
                                kind: parsed(row.get(1)?, "principal.kind")?,
                                display_name: row.get(2)?,
                                status: parsed(row.get(3)?, "principal.status")?,
                            });
                        }
                        if count(&rows) <= *limit {
                            return Ok(Page { items, next: None });
                        }
                    }
                })
            })
            .await
    }
}
