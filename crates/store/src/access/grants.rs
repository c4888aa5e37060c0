//! Grants.

use courant_api::access::{GrantCreate, GrantView};
use courant_api::events::access::{GRANT_CREATED, GRANT_REVOKED, GrantChange};
use courant_api::{GrantId, PrincipalId, Resource, TenantId};
use courant_core::access::Grant;

use super::{Page, PageKey, before, hands_out, principals, workspaces};
use crate::change::{Change, Changed, fresh_id};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Store};

statements! { "grants":
    INSERT = "INSERT INTO access_grant (id, tenant_id, principal_id, permission, resource, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    OF = "SELECT permission, resource FROM access_grant WHERE tenant_id = $1 AND principal_id = $2";
    LIST = "SELECT id, principal_id, permission, resource, created_at FROM access_grant
        WHERE tenant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    LOCK = "SELECT id, principal_id, permission, resource, created_at FROM access_grant
        WHERE tenant_id = $1 AND id = $2 {for update}";
    DELETE = "DELETE FROM access_grant WHERE tenant_id = $1 AND id = $2";
}

fn view(row: &Row) -> Result<GrantView, Error> {
    let corrupt = |what: &str| Error::Corrupt(format!("access_grant.{what}"));
    Ok(GrantView {
        id: row.get(0)?,
        principal_id: row.get(1)?,
        permission: row.get::<String>(2)?.parse().map_err(|_| corrupt("permission"))?,
        resource: row.get::<String>(3)?.parse().map_err(|_| corrupt("resource"))?,
        created_at: row.get(4)?,
    })
}

/// A principal's grants. One that this version cannot read grants nothing.
pub(crate) async fn of(tx: &mut Tx, tenant: TenantId, principal: PrincipalId) -> Result<Vec<Grant>, Error> {
    let mut grants = Vec::new();
    for row in tx.query(&OF, params![tenant, principal]).await? {
        if let (Ok(permission), Ok(resource)) = (row.get::<String>(0)?.parse(), row.get::<String>(1)?.parse()) {
            grants.push(Grant { permission, resource });
        }
    }
    Ok(grants)
}

impl Store {
    /// Grants a permission to a principal, by who holds it.
    pub async fn grant_create(&self, change: Change, new: GrantCreate) -> Result<Changed<GrantView>, Error> {
        self.db
            .change(change, new, |tx, (change, new)| {
                Box::pin(async move {
                    principals::exists(tx, change.tenant_id, new.principal_id).await?;
                    if let Resource::Workspace(id) = new.resource {
                        workspaces::exists(tx, change.tenant_id, id).await?;
                    }
                    hands_out(change, &Grant { permission: new.permission, resource: new.resource.clone() })?;
                    let view = GrantView {
                        id: fresh_id().into(),
                        principal_id: new.principal_id,
                        permission: new.permission,
                        resource: new.resource.clone(),
                        created_at: change.now,
                    };
                    let row = params![
                        view.id,
                        change.tenant_id,
                        view.principal_id,
                        view.permission.as_str(),
                        view.resource.to_string(),
                        change.now
                    ];
                    tx.execute(&INSERT, row)
                        .await
                        .map_err(|e| e.unique_means("the principal holds this grant already"))?;
                    tx.append(change.event(&GRANT_CREATED, view.id, None, &payload(&view))?);
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
                    tx.append(change.event(&GRANT_REVOKED, *id, None, &payload(&grant))?);
                    Ok(())
                })
            })
            .await
    }
}

fn payload(view: &GrantView) -> GrantChange {
    GrantChange {
        principal_id: Some(view.principal_id),
        role_id: None,
        permission: view.permission,
        resource: view.resource.clone(),
    }
}
