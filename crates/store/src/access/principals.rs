//! Principals.

use courant_api::access::{PrincipalCreate, PrincipalPatch, PrincipalStatus, PrincipalView};
use courant_api::events::access::{PRINCIPAL_CREATED, PRINCIPAL_DISABLED, PRINCIPAL_UPDATED, PrincipalChange};
use courant_api::{PrincipalId, TenantId};
use courant_core::place::Lies;

use super::{Page, PageKey, before, parsed, text_of};
use crate::change::{Change, Changed, fresh_id};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Store};

statements! { "principals":
    INSERT = "INSERT INTO principal (id, tenant_id, kind, display_name, status, version, created_at)
        VALUES ($1, $2, $3, $4, $5, 1, $6)";
    GET = "SELECT id, kind, display_name, status, version, created_at FROM principal WHERE tenant_id = $1 AND id = $2";
    LOCK = "SELECT id, kind, display_name, status, version, created_at FROM principal
        WHERE tenant_id = $1 AND id = $2 {for update}";
    LIST = "SELECT id, kind, display_name, status, version, created_at FROM principal
        WHERE tenant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    UPDATE = "UPDATE principal SET display_name = $3, status = $4, version = $5 WHERE tenant_id = $1 AND id = $2";
}

fn view(row: &Row) -> Result<PrincipalView, Error> {
    Ok(PrincipalView {
        id: row.get(0)?,
        kind: parsed(row.get(1)?, "principal.kind")?,
        display_name: row.get(2)?,
        status: parsed(row.get(3)?, "principal.status")?,
        version: row.get(4)?,
        created_at: row.get(5)?,
    })
}

/// That the principal exists in the tenant.
pub(crate) async fn exists(tx: &mut Tx, tenant: TenantId, id: PrincipalId) -> Result<(), Error> {
    tx.query_opt(&GET, params![tenant, id]).await?.map(|_| ()).ok_or(Error::NotFound("principal"))
}

impl Store {
    /// Creates a principal.
    pub async fn principal_create(
        &self,
        change: Change,
        new: PrincipalCreate,
    ) -> Result<Changed<PrincipalView>, Error> {
        self.db
            .change(change, new, |tx, (change, new)| {
                Box::pin(async move {
                    let view = PrincipalView {
                        id: fresh_id().into(),
                        kind: new.kind,
                        display_name: new.display_name.clone(),
                        status: PrincipalStatus::Active,
                        version: 1,
                        created_at: change.now,
                    };
                    let row = params![
                        view.id,
                        change.tenant_id,
                        text_of(&view.kind)?,
                        &view.display_name,
                        text_of(&view.status)?,
                        change.now
                    ];
                    tx.execute(&INSERT, row).await?;
                    tx.append(change.event(&PRINCIPAL_CREATED, view.id, Lies::NOWHERE, &payload(&view))?);
                    Ok(view)
                })
            })
            .await
    }

    /// One principal.
    pub async fn principal_get(&self, tenant: TenantId, id: PrincipalId) -> Result<PrincipalView, Error> {
        self.db
            .read((tenant, id), |tx, (tenant, id)| {
                Box::pin(async move {
                    view(&tx.query_opt(&GET, params![*tenant, *id]).await?.ok_or(Error::NotFound("principal"))?)
                })
            })
            .await
    }

    /// Principals, newest first.
    pub async fn principal_list(
        &self,
        tenant: TenantId,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<PrincipalView>, Error> {
        self.db
            .read((tenant, key, limit), |tx, (tenant, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }

    /// Renames, disables or enables a principal; without a difference nothing happens.
    pub async fn principal_update(
        &self,
        change: Change,
        id: PrincipalId,
        patch: PrincipalPatch,
    ) -> Result<Changed<PrincipalView>, Error> {
        self.db
            .change(change, (id, patch), |tx, (change, (id, patch))| {
                Box::pin(async move {
                    let row = tx
                        .query_opt(&LOCK, params![change.tenant_id, *id])
                        .await?
                        .ok_or(Error::NotFound("principal"))?;
                    let old = view(&row)?;
                    change.check_version(old.version)?;
                    let mut new = old.clone();
                    if let Some(name) = &patch.display_name {
                        new.display_name.clone_from(name);
                    }
                    new.status = patch.status.unwrap_or(old.status);
                    if new == old {
                        return Ok(old);
                    }
                    new.version += 1;
                    let row = params![change.tenant_id, *id, &new.display_name, text_of(&new.status)?, new.version];
                    tx.execute(&UPDATE, row).await?;
                    let disabled = old.status == PrincipalStatus::Active && new.status == PrincipalStatus::Disabled;
                    let kind = if disabled { &PRINCIPAL_DISABLED } else { &PRINCIPAL_UPDATED };
                    tx.append(change.event(kind, *id, Lies::NOWHERE, &payload(&new))?);
                    Ok(new)
                })
            })
            .await
    }
}

fn payload(view: &PrincipalView) -> PrincipalChange {
    PrincipalChange { kind: view.kind, display_name: view.display_name.clone(), status: view.status }
}
