//! Logins of issuers, and the principals that they stand for.

use std::sync::Arc;

use courant_api::access::{IdentityBindingCreate, IdentityBindingView};
use courant_api::events::access::{IDENTITY_BINDING_CREATED, IDENTITY_BINDING_REVOKED, IdentityBindingChange};
use courant_api::{IdentityBindingId, TenantId};
use courant_core::place::Lies;

use super::{Caller, Credential, Page, PageKey, Rights, Token, before, grants, guard_handing_out, principals};
use crate::change::{Change, Changed, fresh_id};
use crate::db::{Row, params, statements};
use crate::{Error, Store};

statements! { "bindings":
    INSERT = "INSERT INTO identity_binding (id, tenant_id, principal_id, issuer, subject, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    GET = "SELECT id, issuer, subject, principal_id, created_at FROM identity_binding WHERE tenant_id = $1 AND id = $2";
    LOCK = "SELECT id, issuer, subject, principal_id, created_at FROM identity_binding
        WHERE tenant_id = $1 AND id = $2 {for update}";
    LIST = "SELECT id, issuer, subject, principal_id, created_at FROM identity_binding
        WHERE tenant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    DELETE = "DELETE FROM identity_binding WHERE tenant_id = $1 AND id = $2";
    CALLER = "SELECT b.tenant_id, b.principal_id FROM identity_binding b
        JOIN principal p ON p.tenant_id = b.tenant_id AND p.id = b.principal_id
        WHERE b.issuer = $1 AND b.subject = $2 AND p.status = 'active'";
}

const ABSENT: Error = Error::NotFound("identity binding");

fn view(row: &Row) -> Result<IdentityBindingView, Error> {
    Ok(IdentityBindingView {
        id: row.get(0)?,
        issuer: row.get(1)?,
        subject: row.get(2)?,
        principal_id: row.get(3)?,
        created_at: row.get(4)?,
    })
}

fn told(view: &IdentityBindingView) -> IdentityBindingChange {
    IdentityBindingChange { principal_id: view.principal_id, issuer: view.issuer.clone() }
}

impl Store {
    /// Whom the bearer of a verified token stands for, unless nobody or a disabled principal.
    pub async fn caller_by_token(&self, token: Arc<Token>) -> Result<Option<Caller>, Error> {
        self.db
            .read((token, self.authority.clone()), |tx, (token, authority)| {
                Box::pin(async move {
                    let Some(row) = tx.query_opt(&CALLER, params![&token.issuer, &token.subject]).await? else {
                        return Ok(None);
                    };
                    let (tenant_id, principal_id) = (row.get(0)?, row.get(1)?);
                    let grants = grants::of(tx, tenant_id, principal_id).await?;
                    Ok(Some(Caller {
                        tenant_id,
                        principal_id,
                        rights: Rights::new(authority, tenant_id, principal_id, grants).below(token.ceiling),
                        credential: Credential::Token(Arc::clone(token)),
                        expires_at: Some(token.expires_at),
                        purpose: token.purpose,
                        channel: token.channel.clone(),
                    }))
                })
            })
            .await
    }

    /// Binds a login to a principal, by who holds every grant of it.
    pub async fn identity_bind(
        &self,
        change: Change,
        new: IdentityBindingCreate,
    ) -> Result<Changed<IdentityBindingView>, Error> {
        self.db
            .change(change, new, |tx, (change, new)| {
                Box::pin(async move {
                    principals::exists(tx, change.tenant_id, new.principal_id).await?;
                    for grant in grants::of(tx, change.tenant_id, new.principal_id).await? {
                        guard_handing_out(tx, change, &grant).await?;
                    }
                    let view = IdentityBindingView {
                        id: fresh_id().into(),
                        issuer: new.issuer.clone(),
                        subject: new.subject.clone(),
                        principal_id: new.principal_id,
                        created_at: change.now,
                    };
                    let row = params![
                        view.id,
                        change.tenant_id,
                        view.principal_id,
                        &view.issuer,
                        &view.subject,
                        view.created_at
                    ];
                    tx.execute(&INSERT, row).await.map_err(|e| e.unique_means("this login is bound already"))?;
                    tx.append(change.event(&IDENTITY_BINDING_CREATED, view.id, Lies::NOWHERE, &told(&view))?);
                    Ok(view)
                })
            })
            .await
    }

    /// One binding.
    pub async fn identity_binding_get(
        &self,
        tenant: TenantId,
        id: IdentityBindingId,
    ) -> Result<IdentityBindingView, Error> {
        self.db
            .read((tenant, id), |tx, (tenant, id)| {
                Box::pin(async move { view(&tx.query_opt(&GET, params![*tenant, *id]).await?.ok_or(ABSENT)?) })
            })
            .await
    }

    /// Bindings, newest first.
    pub async fn identity_binding_list(
        &self,
        tenant: TenantId,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<IdentityBindingView>, Error> {
        self.db
            .read((tenant, key, limit), |tx, (tenant, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }

    /// Ends what a login stands for.
    pub async fn identity_unbind(&self, change: Change, id: IdentityBindingId) -> Result<Changed<()>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| {
                Box::pin(async move {
                    let was = view(&tx.query_opt(&LOCK, params![change.tenant_id, *id]).await?.ok_or(ABSENT)?)?;
                    tx.execute(&DELETE, params![change.tenant_id, *id]).await?;
                    tx.append(change.event(&IDENTITY_BINDING_REVOKED, *id, Lies::NOWHERE, &told(&was))?);
                    Ok(())
                })
            })
            .await
    }
}
