//! Tenants, principals, keys, workspaces and grants; roles are in `roles`.

use courant_api::access::{
    ApiKeyCreate, ApiKeyView, GrantCreate, GrantView, MAX_NAME_CHARS, PrincipalCreate, PrincipalPatch, PrincipalView,
    TenantBootstrap, TenantBootstrapped, WorkspaceCreate, WorkspaceMove, WorkspacePatch, WorkspaceView,
};
use courant_api::{ApiKeyId, GrantId, Permission, PrincipalId, Resource, TenantId, Timestamp, WorkspaceId};
use courant_store::{Caller, Change, Changed, KeyDraft, Page, PageKey, Store};
use uuid::Uuid;

use super::{Actor, decided, require, text};
use crate::app::App;
use crate::clock;
use crate::http::ApiError;
use crate::secrets::api_key;

fn fresh_key(expires_at: Option<Timestamp>) -> KeyDraft {
    let secret = api_key::generate();
    let secret = secret.expose();
    KeyDraft { hash: api_key::hash(secret), prefix: api_key::prefix(secret), secret: secret.to_owned(), expires_at }
}

/// Makes a tenant. Who may is decided before: by the bootstrap secret over HTTP, by access to the database otherwise.
pub async fn tenant_bootstrap(
    store: &Store,
    change: Option<Change>,
    body: TenantBootstrap,
) -> Result<Changed<TenantBootstrapped>, ApiError> {
    text::name("/name", &body.name, MAX_NAME_CHARS)?;
    let nobody = || Change::by_server(TenantId(Uuid::nil()), clock::now());
    Ok(store.tenant_bootstrap(change.unwrap_or_else(nobody), body.name, fresh_key(None)).await?)
}

/// Makes a key for a principal without asking anybody: for commands on the database itself.
pub async fn api_key_replace(
    store: &Store,
    tenant: TenantId,
    principal: PrincipalId,
) -> Result<Changed<ApiKeyView>, ApiError> {
    let change = Change::by_server(tenant, clock::now());
    Ok(store.api_key_create(change, principal, fresh_key(None)).await?)
}

/// Creates a principal.
pub async fn principal_create(
    app: &App,
    actor: Actor,
    body: PrincipalCreate,
) -> Result<Changed<PrincipalView>, ApiError> {
    require(app, &actor.caller, Permission::PrincipalsManage, &Resource::Tenant).await?;
    text::name("/displayName", &body.display_name, MAX_NAME_CHARS)?;
    Ok(app.store.principal_create(actor.change, body).await?)
}

/// One principal.
pub async fn principal_get(app: &App, caller: &Caller, id: PrincipalId) -> Result<PrincipalView, ApiError> {
    let principal = app.store.principal_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::PrincipalsRead, &Resource::Tenant).await?;
    Ok(principal)
}

/// Principals, newest first.
pub async fn principal_list(
    app: &App,
    caller: &Caller,
    key: PageKey,
    limit: i64,
) -> Result<Page<PrincipalView>, ApiError> {
    require(app, caller, Permission::PrincipalsRead, &Resource::Tenant).await?;
    Ok(app.store.principal_list(caller.tenant_id, key, limit).await?)
}

/// Renames, disables or enables a principal.
pub async fn principal_update(
    app: &App,
    actor: Actor,
    id: PrincipalId,
    patch: PrincipalPatch,
) -> Result<Changed<PrincipalView>, ApiError> {
    app.store.principal_get(actor.caller.tenant_id, id).await?;
    require(app, &actor.caller, Permission::PrincipalsManage, &Resource::Tenant).await?;
    if let Some(name) = &patch.display_name {
        text::name("/displayName", name, MAX_NAME_CHARS)?;
    }
    let done = app.store.principal_update(actor.change, id, patch).await?;
    app.forget_callers();
    Ok(done)
}

/// Makes a key.
pub async fn api_key_create(app: &App, actor: Actor, body: ApiKeyCreate) -> Result<Changed<ApiKeyView>, ApiError> {
    require(app, &actor.caller, Permission::ApiKeysManage, &Resource::Tenant).await?;
    if body.expires_at.is_some_and(|at| at <= actor.change.now) {
        return Err(ApiError::invalid_field("/expiresAt", "lies in the past"));
    }
    let key = fresh_key(body.expires_at);
    decided(app, || app.store.api_key_create(actor.change.clone(), body.principal_id, key.clone())).await
}

/// Keys, newest first.
pub async fn api_key_list(app: &App, caller: &Caller, key: PageKey, limit: i64) -> Result<Page<ApiKeyView>, ApiError> {
    require(app, caller, Permission::ApiKeysRead, &Resource::Tenant).await?;
    Ok(app.store.api_key_list(caller.tenant_id, key, limit).await?)
}

/// Revokes a key.
pub async fn api_key_revoke(app: &App, actor: Actor, id: ApiKeyId) -> Result<Changed<ApiKeyView>, ApiError> {
    require(app, &actor.caller, Permission::ApiKeysManage, &Resource::Tenant).await?;
    let done = app.store.api_key_revoke(actor.change, id).await?;
    app.forget_callers();
    Ok(done)
}

/// Grants a permission.
pub async fn grant_create(app: &App, actor: Actor, body: GrantCreate) -> Result<Changed<GrantView>, ApiError> {
    require(app, &actor.caller, Permission::GrantsManage, &Resource::Tenant).await?;
    let done = decided(app, || app.store.grant_create(actor.change.clone(), body.clone())).await?;
    app.forget_callers();
    Ok(done)
}

/// Grants, newest first.
pub async fn grant_list(app: &App, caller: &Caller, key: PageKey, limit: i64) -> Result<Page<GrantView>, ApiError> {
    require(app, caller, Permission::GrantsRead, &Resource::Tenant).await?;
    Ok(app.store.grant_list(caller.tenant_id, key, limit).await?)
}

/// Takes a grant back.
pub async fn grant_delete(app: &App, actor: Actor, id: GrantId) -> Result<Changed<()>, ApiError> {
    require(app, &actor.caller, Permission::GrantsManage, &Resource::Tenant).await?;
    let done = app.store.grant_delete(actor.change, id).await?;
    app.forget_callers();
    Ok(done)
}

/// Creates a workspace; needs the right on its parent, or on the tenant for one at the top.
pub async fn workspace_create(
    app: &App,
    actor: Actor,
    body: WorkspaceCreate,
) -> Result<Changed<WorkspaceView>, ApiError> {
    text::name("/name", &body.name, MAX_NAME_CHARS)?;
    decided(app, || app.store.workspace_create(actor.change.clone(), body.clone())).await
}

/// One workspace.
pub async fn workspace_get(app: &App, caller: &Caller, id: WorkspaceId) -> Result<WorkspaceView, ApiError> {
    let workspace = app.store.workspace_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::WorkspacesRead, &Resource::Workspace(id)).await?;
    Ok(workspace)
}

/// Workspaces, newest first.
pub async fn workspace_list(
    app: &App,
    caller: &Caller,
    key: PageKey,
    limit: i64,
) -> Result<Page<WorkspaceView>, ApiError> {
    require(app, caller, Permission::WorkspacesRead, &Resource::Tenant).await?;
    Ok(app.store.workspace_list(caller.tenant_id, key, limit).await?)
}

/// Renames a workspace.
pub async fn workspace_update(
    app: &App,
    actor: Actor,
    id: WorkspaceId,
    patch: WorkspacePatch,
) -> Result<Changed<WorkspaceView>, ApiError> {
    if let Some(name) = &patch.name {
        text::name("/name", name, MAX_NAME_CHARS)?;
    }
    decided(app, || app.store.workspace_update(actor.change.clone(), id, patch.clone())).await
}

/// Puts a workspace under another parent.
pub async fn workspace_move(
    app: &App,
    actor: Actor,
    id: WorkspaceId,
    body: WorkspaceMove,
) -> Result<Changed<WorkspaceView>, ApiError> {
    decided(app, || app.store.workspace_move(actor.change.clone(), id, body.parent_id)).await
}

/// Archives a workspace.
pub async fn workspace_archive(app: &App, actor: Actor, id: WorkspaceId) -> Result<Changed<WorkspaceView>, ApiError> {
    decided(app, || app.store.workspace_archive(actor.change.clone(), id)).await
}
