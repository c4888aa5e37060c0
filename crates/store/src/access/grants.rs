//! Grants.

use courant_api::access::{GrantCreate, GrantView};
use courant_api::events::access::{GRANT_CREATED, GRANT_REVOKED, GrantChange};
use courant_api::{GrantId, PrincipalId, Resource, RoleId, TenantId, WorkspaceId};
use courant_core::access::Grant;
use courant_core::place::Lies;

use super::{Page, PageKey, before, guard_handing_out, principals, roles, workspaces};
use crate::change::{Change, Changed, fresh_id};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Store};

macro_rules! columns {
    () => {
        "id, principal_id, role_id, permission, resource, created_at"
    };
}

statements! { "grants":
    INSERT = "INSERT INTO access_grant (id, tenant_id, principal_id, role_id, permission, resource, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    // What a principal holds itself, and what its roles do where it holds them.
    OF = "SELECT permission, resource, CAST(NULL AS uuid) AS within FROM access_grant
            WHERE tenant_id = $1 AND principal_id = $2
        UNION ALL
        SELECT g.permission, g.resource, a.workspace_id FROM role_assignment a
            JOIN access_grant g ON g.tenant_id = a.tenant_id AND g.role_id = a.role_id
            WHERE a.tenant_id = $1 AND a.principal_id = $2";
    OF_ROLE = "SELECT permission, resource FROM access_grant WHERE tenant_id = $1 AND role_id = $2";
    LIST = concat!("SELECT ", columns!(), " FROM access_grant WHERE tenant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
    LOCK = concat!("SELECT ", columns!(), " FROM access_grant WHERE tenant_id = $1 AND id = $2 {for update}");
    DELETE = "DELETE FROM access_grant WHERE tenant_id = $1 AND id = $2";
}

fn view(row: &Row) -> Result<GrantView, Error> {
    let corrupt = |what: &str| Error::Corrupt(format!("access_grant.{what}"));
    Ok(GrantView {
        id: row.get(0)?,
        principal_id: row.get(1)?,
        role_id: row.get(2)?,
        permission: row.get::<String>(3)?.parse().map_err(|_| corrupt("permission"))?,
        resource: row.get::<String>(4)?.parse().map_err(|_| corrupt("resource"))?,
        created_at: row.get(5)?,
    })
}

/// What a row grants. One that this version cannot read grants nothing.
fn grant(row: &Row, within: Option<WorkspaceId>) -> Result<Option<Grant>, Error> {
    let (permission, resource) = (row.get::<String>(0)?.parse(), row.get::<String>(1)?.parse());
    Ok(permission.ok().zip(resource.ok()).map(|(permission, resource)| Grant { permission, resource, within }))
}

/// A principal's grants, those of its roles included.
pub(crate) async fn of(tx: &mut Tx, tenant: TenantId, principal: PrincipalId) -> Result<Vec<Grant>, Error> {
    let rows = tx.query(&OF, params![tenant, principal]).await?;
    rows.iter().filter_map(|row| row.get(2).and_then(|within| grant(row, within)).transpose()).collect()
}

/// What a role gives to who holds it on `within`.
pub(super) async fn of_role(
    tx: &mut Tx,
    tenant: TenantId,
    role: RoleId,
    within: Option<WorkspaceId>,
) -> Result<Vec<Grant>, Error> {
    let rows = tx.query(&OF_ROLE, params![tenant, role]).await?;
    rows.iter().filter_map(|row| grant(row, within).transpose()).collect()
}

impl Store {
    /// Grants a permission to a principal or a role, by who holds it.
    pub async fn grant_create(&self, change: Change, new: GrantCreate) -> Result<Changed<GrantView>, Error> {
        self.db
            .change(change, new, |tx, (change, new)| {
                Box::pin(async move {
                    match (new.principal_id, new.role_id) {
                        (Some(principal), None) => principals::exists(tx, change.tenant_id, principal).await?,
                        (None, Some(role)) => roles::lock(tx, change.tenant_id, role).await.map(|_| ())?,
                        _ => {
                            let message = "name exactly one of principalId and roleId".into();
                            return Err(Error::Invalid { field: "/principalId".into(), message });
                        }
                    }
                    if let Resource::Workspace(id) = new.resource {
                        workspaces::exists(tx, change.tenant_id, id).await?;
                    }
                    guard_handing_out(tx, change, &Grant::new(new.permission, new.resource.clone())).await?;
                    let view = GrantView {
                        id: fresh_id().into(),
                        principal_id: new.principal_id,
                        role_id: new.role_id,
                        permission: new.permission,
                        resource: new.resource.clone(),
                        created_at: change.now,
                    };
                    let row = params![
                        view.id,
                        change.tenant_id,
                        view.principal_id,
                        view.role_id,
                        view.permission.as_str(),
                        view.resource.to_string(),
                        change.now
                    ];
                    tx.execute(&INSERT, row).await.map_err(|e| e.unique_means("it is granted already"))?;
                    tx.append(change.event(&GRANT_CREATED, view.id, Lies::NOWHERE, &payload(&view))?);
                    Ok(view)
                })
            })
            .await
    }

    /// Grants, newest first.
    pub async fn grant_list(&self, tenant: TenantId, key: PageKey, limit: i64) -> Result<Page<GrantView>, Error> {
        self.db
            .read((tenant, key, limit), |tx, (tenant, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }

    /// Takes a grant back.
    pub async fn grant_delete(&self, change: Change, id: GrantId) -> Result<Changed<()>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| {
                Box::pin(async move {
                    let row =
                        tx.query_opt(&LOCK, params![change.tenant_id, *id]).await?.ok_or(Error::NotFound("grant"))?;
                    let grant = view(&row)?;
                    tx.execute(&DELETE, params![change.tenant_id, *id]).await?;
                    tx.append(change.event(&GRANT_REVOKED, *id, Lies::NOWHERE, &payload(&grant))?);
                    Ok(())
                })
            })
            .await
    }
}

fn payload(view: &GrantView) -> GrantChange {
    GrantChange {
        principal_id: view.principal_id,
        role_id: view.role_id,
        permission: view.permission,
        resource: view.resource.clone(),
    }
}
