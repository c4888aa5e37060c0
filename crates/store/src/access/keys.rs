//! API keys: their hashes, never themselves.

use courant_api::access::ApiKeyView;
use courant_api::events::access::{API_KEY_CREATED, API_KEY_REVOKED, ApiKeyChange};
use courant_api::{ApiKeyId, PrincipalId, TenantId, Timestamp};
use courant_core::place::Lies;

use super::{Caller, Credential, Page, PageKey, Rights, before, grants, guard_handing_out, principals};
use crate::change::{Change, Changed, fresh_id};
use crate::db::{Row, params, statements};
use crate::{Error, Store};

/// A key that is about to be stored: the secret goes back to who asked for it and nowhere else.
#[derive(Clone)]
pub struct KeyDraft {
    /// Shown once.
    pub secret: String,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// Its first characters.
    pub prefix: String,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

impl std::fmt::Debug for KeyDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyDraft").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

statements! { "keys":
    INSERT = "INSERT INTO api_key (id, tenant_id, principal_id, hash, prefix, expires_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    LIST = "SELECT id, principal_id, prefix, expires_at, revoked_at, created_at FROM api_key
        WHERE tenant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    LOCK = "SELECT id, principal_id, prefix, expires_at, revoked_at, created_at FROM api_key
        WHERE tenant_id = $1 AND id = $2 {for update}";
    REVOKE = "UPDATE api_key SET revoked_at = $3 WHERE tenant_id = $1 AND id = $2";
    CALLER = "SELECT k.tenant_id, k.principal_id, k.expires_at FROM api_key k
        JOIN principal p ON p.tenant_id = k.tenant_id AND p.id = k.principal_id
        WHERE k.hash = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)
            AND p.status = 'active'";
    FIRST_ADMINISTRATOR = "SELECT g.tenant_id, g.principal_id FROM access_grant g
        JOIN principal p ON p.tenant_id = g.tenant_id AND p.id = g.principal_id
        WHERE g.permission = '*' AND g.resource = 'tenant' AND p.status = 'active' ORDER BY p.id LIMIT 1";
}

fn view(row: &Row) -> Result<ApiKeyView, Error> {
    Ok(ApiKeyView {
        id: row.get(0)?,
        principal_id: row.get(1)?,
        prefix: row.get(2)?,
        expires_at: row.get(3)?,
        revoked_at: row.get(4)?,
        created_at: row.get(5)?,
        api_key: None,
    })
}

impl Store {
    /// Who holds the key with this hash, unless it is revoked or expired or its principal is disabled.
    pub async fn caller_by_key(&self, hash: [u8; 32], now: Timestamp) -> Result<Option<Caller>, Error> {
        self.db
            .read((hash, now, self.authority.clone()), |tx, (hash, now, authority)| {
                Box::pin(async move {
                    let Some(row) = tx.query_opt(&CALLER, params![hash.as_slice(), *now]).await? else {
                        return Ok(None);
                    };
                    let (tenant_id, principal_id, expires_at) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    let grants = grants::of(tx, tenant_id, principal_id).await?;
                    let rights = Rights::new(authority, tenant_id, principal_id, grants);
                    let credential = Credential::ApiKey(*hash);
                    Ok(Some(Caller {
                        tenant_id,
                        principal_id,
                        rights,
                        credential,
                        expires_at,
                        purpose: None,
                        channel: None,
                    }))
                })
            })
            .await
    }

    /// Makes a key for a principal, by who holds every grant of it.
    pub async fn api_key_create(
        &self,
        change: Change,
        principal_id: PrincipalId,
        key: KeyDraft,
    ) -> Result<Changed<ApiKeyView>, Error> {
        self.db
            .change(change, (principal_id, key), |tx, (change, (principal_id, key))| {
                Box::pin(async move {
                    principals::exists(tx, change.tenant_id, *principal_id).await?;
                    for grant in grants::of(tx, change.tenant_id, *principal_id).await? {
                        guard_handing_out(tx, change, &grant).await?;
                    }
                    let id = ApiKeyId(fresh_id());
                    let row = params![
                        id,
                        change.tenant_id,
                        *principal_id,
                        key.hash.as_slice(),
                        &key.prefix,
                        key.expires_at,
                        change.now
                    ];
                    tx.execute(&INSERT, row).await?;
                    let view = ApiKeyView {
                        id,
                        principal_id: *principal_id,
                        prefix: key.prefix.clone(),
                        expires_at: key.expires_at,
                        revoked_at: None,
                        created_at: change.now,
                        api_key: Some(key.secret.clone()),
                    };
                    tx.append(change.event(&API_KEY_CREATED, id, Lies::NOWHERE, &payload(&view))?);
                    Ok(view)
                })
            })
            .await
    }

    /// Keys, newest first.
    pub async fn api_key_list(&self, tenant: TenantId, key: PageKey, limit: i64) -> Result<Page<ApiKeyView>, Error> {
        self.db
            .read((tenant, key, limit), |tx, (tenant, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }

    /// Revokes a key; one that is revoked stays so.
    pub async fn api_key_revoke(&self, change: Change, id: ApiKeyId) -> Result<Changed<ApiKeyView>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| {
                Box::pin(async move {
                    let row =
                        tx.query_opt(&LOCK, params![change.tenant_id, *id]).await?.ok_or(Error::NotFound("API key"))?;
                    let mut key = view(&row)?;
                    if key.revoked_at.is_none() {
                        key.revoked_at = Some(change.now);
                        tx.execute(&REVOKE, params![change.tenant_id, *id, change.now]).await?;
                        tx.append(change.event(&API_KEY_REVOKED, *id, Lies::NOWHERE, &payload(&key))?);
                    }
                    Ok(key)
                })
            })
            .await
    }

    /// The oldest active principal that holds every permission on its tenant; for replacing a lost key on the spot.
    pub async fn administrator_first(&self) -> Result<Option<(TenantId, PrincipalId)>, Error> {
        self.db
            .read((), |tx, ()| {
                Box::pin(async move {
                    let row = tx.query_opt(&FIRST_ADMINISTRATOR, params![]).await?;
                    row.map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
                })
            })
            .await
    }
}

fn payload(view: &ApiKeyView) -> ApiKeyChange {
    ApiKeyChange { principal_id: view.principal_id, prefix: view.prefix.clone(), expires_at: view.expires_at }
}
