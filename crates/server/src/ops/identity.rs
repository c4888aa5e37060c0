//! Which logins of issuers stand for which principals.

use courant_api::access::{IdentityBindingCreate, IdentityBindingView, MAX_ISSUER_CHARS, MAX_SUBJECT_CHARS};
use courant_api::{IdentityBindingId, Permission, Resource};
use courant_store::{Caller, Changed, Page, PageKey};

use super::{Actor, decided, require, text};
use crate::app::App;
use crate::http::ApiError;

/// Binds a login to a principal.
pub async fn identity_bind(
    app: &App,
    actor: Actor,
    body: IdentityBindingCreate,
) -> Result<Changed<IdentityBindingView>, ApiError> {
    require(app, &actor.caller, Permission::IdentityBindingsManage, &Resource::Tenant).await?;
    text::name("/issuer", &body.issuer, MAX_ISSUER_CHARS)?;
    text::name("/subject", &body.subject, MAX_SUBJECT_CHARS)?;
    if !app.issuers.may_speak_for(&body.issuer, actor.caller.tenant_id) {
        return Err(ApiError::not_found("issuer of this tenant in the server's configuration"));
    }
    decided(app, || app.store.identity_bind(actor.change.clone(), body.clone())).await
}

/// One binding.
pub async fn identity_binding_get(
    app: &App,
    caller: &Caller,
    id: IdentityBindingId,
) -> Result<IdentityBindingView, ApiError> {
    let binding = app.store.identity_binding_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::IdentityBindingsRead, &Resource::Tenant).await?;
    Ok(binding)
}

/// Bindings, newest first.
pub async fn identity_binding_list(
    app: &App,
    caller: &Caller,
    key: PageKey,
    limit: i64,
) -> Result<Page<IdentityBindingView>, ApiError> {
    require(app, caller, Permission::IdentityBindingsRead, &Resource::Tenant).await?;
    Ok(app.store.identity_binding_list(caller.tenant_id, key, limit).await?)
}

/// Ends what a login stands for.
pub async fn identity_unbind(app: &App, actor: Actor, id: IdentityBindingId) -> Result<Changed<()>, ApiError> {
    require(app, &actor.caller, Permission::IdentityBindingsManage, &Resource::Tenant).await?;
    let done = app.store.identity_unbind(actor.change, id).await?;
    app.forget_callers();
    Ok(done)
}
