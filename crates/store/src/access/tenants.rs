//! Tenants and their beginning.

use courant_api::access::{PrincipalKind, PrincipalStatus, TenantBootstrapped};
use courant_api::events::{access, tenant};
use courant_api::{ApiKeyId, GrantId, Permission, PrincipalId, Resource, RoleId, TenantId};
use courant_core::place::Lies;

use super::keys::{self, KeyDraft};
use super::{grants, principals, text_of};
use crate::change::{Change, Changed, fresh_id};
use crate::db::{Tx, params, statements};
use crate::{Error, Store};

statements! { "tenants":
    INSERT = "INSERT INTO tenant (id, name, created_at) VALUES ($1, $2, $3)";
    LOCK = "SELECT id FROM tenant WHERE id = $1 {for update}";
    COUNT = "SELECT count(*) FROM tenant";
}

/// Makes changes of one tenant that judge more than one row go one after another: moves in the workspace tree, so
/// that two cannot close a circle between them, and registrations of event types.
pub(crate) async fn lock(tx: &mut Tx, tenant: TenantId) -> Result<(), Error> {
    tx.query_opt(&LOCK, params![tenant]).await?.map(|_| ()).ok_or(Error::NotFound("tenant"))
}

impl Store {
    /// Makes a tenant with a first principal, who holds every permission, and its key. The change's own tenant is not
    /// used: the new one does not exist yet.
    pub async fn tenant_bootstrap(
        &self,
        change: Change,
        name: String,
        key: KeyDraft,
    ) -> Result<Changed<TenantBootstrapped>, Error> {
        self.db
            .change(change, (name, key), |tx, (change, (name, key))| {
                Box::pin(async move {
                    let (tenant_id, principal_id) = (TenantId(fresh_id()), PrincipalId(fresh_id()));
                    let (key_id, grant_id) = (ApiKeyId(fresh_id()), GrantId(fresh_id()));
                    let change = &Change { tenant_id, actor_id: Some(principal_id), ..change.clone() };
                    let (kind, status) = (PrincipalKind::Human, PrincipalStatus::Active);
                    let resource = Resource::Tenant;
                    tx.execute(&INSERT, params![tenant_id, name, change.now]).await?;
                    let row = params![
                        principal_id,
                        tenant_id,
                        text_of(&kind)?,
                        "administrator",
                        text_of(&status)?,
                        change.now
                    ];
                    tx.execute(&principals::INSERT, row).await?;
                    let row = params![
                        grant_id,
                        tenant_id,
                        principal_id,
                        None::<RoleId>,
                        Permission::All.as_str(),
                        resource.to_string(),
                        change.now
                    ];
                    tx.execute(&grants::INSERT, row).await?;
                    let row = params![
                        key_id,
                        tenant_id,
                        principal_id,
                        key.hash.as_slice(),
                        &key.prefix,
                        key.expires_at,
                        change.now
                    ];
                    tx.execute(&keys::INSERT, row).await?;
                    let display_name = "administrator".to_owned();
                    tx.append(change.event(
                        &tenant::TENANT_BOOTSTRAPPED,
                        tenant_id,
                        Lies::NOWHERE,
                        &tenant::TenantBootstrapped { name: name.clone() },
                    )?);
                    let payload = access::PrincipalChange { kind, display_name, status };
                    tx.append(change.event(&access::PRINCIPAL_CREATED, principal_id, Lies::NOWHERE, &payload)?);
                    let payload = access::GrantChange {
                        principal_id: Some(principal_id),
                        role_id: None,
                        permission: Permission::All,
                        resource,
                    };
                    tx.append(change.event(&access::GRANT_CREATED, grant_id, Lies::NOWHERE, &payload)?);
                    let payload =
                        access::ApiKeyChange { principal_id, prefix: key.prefix.clone(), expires_at: key.expires_at };
                    tx.append(change.event(&access::API_KEY_CREATED, key_id, Lies::NOWHERE, &payload)?);
                    Ok(TenantBootstrapped { tenant_id, principal_id, api_key: Some(key.secret.clone()) })
                })
            })
            .await
    }

    /// How many tenants there are.
    pub async fn tenant_count(&self) -> Result<i64, Error> {
        self.db.read((), |tx, ()| Box::pin(async move { tx.query_one(&COUNT, params![]).await?.get(0) })).await
    }
}
