//! The gates of every route: may this caller do this?
//!
//! Where an external decision point decides, a unit of work that meets an open question changes nothing; the question
//! is put and the unit begins again. Without a decision nobody passes.

use courant_api::{ErrorCode, Permission, Resource};
use courant_store::{Caller, Error};

use crate::app::App;
use crate::http::ApiError;

/// Questions lead to further ones: to a page of a list there may be several batches, to a change one guard after another.
const ROUNDS: usize = 200;

/// Does the work, with every question that it meets decided.
pub(super) async fn decided<T, W>(app: &App, work: impl Fn() -> W) -> Result<T, ApiError>
where
    W: Future<Output = Result<T, Error>>,
{
    for _ in 0..ROUNDS {
        match work().await {
            Err(Error::Undecided(questions)) => app.decide(questions).await?,
            done => return done.map_err(ApiError::from),
        }
    }
    Err(ApiError::authorization_unavailable("a request led to too many questions"))
}

/// Refuses a caller without `permission` on `resource`.
pub(super) async fn require(
    app: &App,
    caller: &Caller,
    permission: Permission,
    resource: &Resource,
) -> Result<(), ApiError> {
    require_one_of(app, caller, &[permission], resource).await
}

/// Refuses a caller with none of the permissions on `resource`; the refusal names the first.
pub(super) async fn require_one_of(
    app: &App,
    caller: &Caller,
    permissions: &[Permission],
    resource: &Resource,
) -> Result<(), ApiError> {
    for &permission in permissions {
        if decided(app, || app.store.allows(&caller.rights, permission, resource)).await? {
            return Ok(());
        }
    }
    Err(caller.rights.denied(permissions[0], resource.clone()).into())
}

/// Refuses a caller who holds `permission` on nothing. An external decision point is asked about rows alone; then
/// [`found_any`] has the last word.
pub(super) fn require_any(caller: &Caller, permission: Permission) -> Result<(), ApiError> {
    match caller.rights.on_anything(permission) {
        Some(false) if !caller.rights.reaches(permission) => Err(Error::BeyondScope(permission).into()),
        Some(false) => {
            let message = format!("{permission} is required on some integration");
            Err(ApiError::new(ErrorCode::PermissionDenied, message))
        }
        Some(true) | None => Ok(()),
    }
}

/// After a list that showed nothing: refuses whom nothing could have been shown, when only now that can be said.
pub(super) async fn found_any(
    app: &App,
    caller: &Caller,
    permission: Permission,
    found_nothing: bool,
) -> Result<(), ApiError> {
    if found_nothing && caller.rights.on_anything(permission).is_none() {
        return require(app, caller, permission, &Resource::Tenant).await;
    }
    Ok(())
}
