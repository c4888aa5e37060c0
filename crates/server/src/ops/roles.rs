//! Roles, who has them, and what the caller may do.

use courant_api::access::{
    AuthzCheck, AuthzChecked, MAX_CHECKS, MAX_NAME_CHARS, RoleAssignmentCreate, RoleAssignmentView, RoleCreate,
    RoleHolder, RolePatch, RoleView, is_role_key,
};
use courant_api::{Permission, Resource, RoleAssignmentId, RoleId, WorkspaceId};
use courant_store::{Caller, Changed, Page, PageKey};

use super::{Actor, decided, place, require, require_one_of, text};
use crate::app::App;
use crate::http::ApiError;

/// Creates a role.
pub async fn role_create(app: &App, actor: Actor, body: RoleCreate) -> Result<Changed<RoleView>, ApiError> {
    if !is_role_key(&body.key) {
        let problem = "must have 1 to 100 lower-case letters, digits, '.', '_' and '-', the first a letter";
        return Err(ApiError::invalid_field("/key", problem));
    }
    text::name("/name", &body.name, MAX_NAME_CHARS)?;
    decided(app, || app.store.role_create(actor.change.clone(), body.clone())).await
}

/// One role.
pub async fn role_get(app: &App, caller: &Caller, id: RoleId) -> Result<RoleView, ApiError> {
    let role = app.store.role_get(caller.tenant_id, id).await?;
    require(app, caller, Permission::RolesRead, &place(role.workspace_id)).await?;
    Ok(role)
}

/// Roles, newest first.
pub async fn role_list(app: &App, caller: &Caller, key: PageKey, limit: i64) -> Result<Page<RoleView>, ApiError> {
    require(app, caller, Permission::RolesRead, &Resource::Tenant).await?;
    Ok(app.store.role_list(caller.tenant_id, key, limit).await?)
}

/// Renames a role.
pub async fn role_update(app: &App, actor: Actor, id: RoleId, patch: RolePatch) -> Result<Changed<RoleView>, ApiError> {
    if let Some(name) = &patch.name {
        text::name("/name", name, MAX_NAME_CHARS)?;
    }
    decided(app, || app.store.role_update(actor.change.clone(), id, patch.clone())).await
}

/// Assigns a role to a principal.
pub async fn role_assign(
    app: &App,
    actor: Actor,
    id: RoleId,
    body: RoleAssignmentCreate,
) -> Result<Changed<RoleAssignmentView>, ApiError> {
    let done = decided(app, || app.store.role_assign(actor.change.clone(), id, body.clone())).await?;
    app.forget_callers();
    Ok(done)
}

/// Takes a role away from a principal.
pub async fn role_revoke(
    app: &App,
    actor: Actor,
    id: RoleId,
    assignment: RoleAssignmentId,
) -> Result<Changed<()>, ApiError> {
    let done = decided(app, || app.store.role_revoke(actor.change.clone(), id, assignment)).await?;
    app.forget_callers();
    Ok(done)
}

/// Who has a role and where, newest first.
pub async fn role_assignment_list(
    app: &App,
    caller: &Caller,
    id: RoleId,
    key: PageKey,
    limit: i64,
) -> Result<Page<RoleAssignmentView>, ApiError> {
    role_get(app, caller, id).await?;
    Ok(app.store.role_assignment_list(caller.tenant_id, id, key, limit).await?)
}

/// Who holds a role on a workspace, or on the tenant.
pub async fn role_holders(
    app: &App,
    caller: &Caller,
    id: RoleId,
    at: Option<WorkspaceId>,
    key: PageKey,
    limit: i64,
) -> Result<Page<RoleHolder>, ApiError> {
    let holders = app.store.role_holders(caller.tenant_id, id, at, key, limit).await?;
    require_one_of(app, caller, &[Permission::OrgRead, Permission::PrincipalsRead], &place(at)).await?;
    Ok(holders)
}

/// What the caller may do, by the gates of the routes.
pub async fn authz_check(app: &App, actor: Actor, body: AuthzCheck) -> Result<Changed<AuthzChecked>, ApiError> {
    if body.checks.is_empty() || body.checks.len() > MAX_CHECKS {
        return Err(ApiError::invalid_field("/checks", &format!("must have 1 to {MAX_CHECKS} items")));
    }
    let questions: Vec<_> = body.checks.into_iter().map(|asked| (asked.permission, asked.resource)).collect();
    decided(app, || app.store.rights_check(actor.change.clone(), questions.clone())).await
}
