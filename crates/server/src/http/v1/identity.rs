//! `/identity-bindings`

use courant_api::access::{IdentityBindingCreate, IdentityBindingView};
use courant_api::{ErrorCode, IdentityBindingId, Page, Permission};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::changed;
use super::list::{List, ListQuery};
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, identity};

const BINDINGS: List = List("identity-bindings");
const TENANT: &str = "the tenant";

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    vec![
        Endpoint::get("/api/v1/identity-bindings", list)
            .tag("access")
            .summary("Lists which logins stand for which principals")
            .access(Access::On(&[P::IdentityBindingsRead], TENANT))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/identity-bindings", create)
            .tag("access")
            .summary("Binds a login of a configured issuer to a principal")
            .description(
                "Tokens of that issuer whose `sub` is this login then act as the principal, as far as their scopes go. A login \
                 stands for one principal. The caller must hold every grant of the principal.",
            )
            .access(Access::On(&[P::IdentityBindingsManage], TENANT))
            .errors(&[E::NotFound, E::Conflict])
            .created(),
        Endpoint::get("/api/v1/identity-bindings/{id}", get)
            .tag("access")
            .summary("Reads an identity binding")
            .missing("identity binding")
            .access(Access::On(&[P::IdentityBindingsRead], TENANT)),
        Endpoint::delete("/api/v1/identity-bindings/{id}", delete)
            .tag("access")
            .summary("Ends what a login stands for; its tokens stop working within five seconds")
            .missing("identity binding")
            .versioned(false)
            .access(Access::On(&[P::IdentityBindingsManage], TENANT)),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById {
    /// The binding's id.
    id: IdentityBindingId,
}

async fn list(cx: Cx<App>, input: Input<(), ListQuery, ()>) -> Result<Reply<Page<IdentityBindingView>>, ApiError> {
    let (key, limit) = (input.query.key(BINDINGS)?, input.query.limit());
    Ok(Reply::ok(BINDINGS.page(identity::identity_binding_list(&cx.app, &cx.caller, key, limit).await?)))
}

async fn create(
    cx: Cx<App>,
    input: Input<(), (), IdentityBindingCreate>,
) -> Result<Reply<IdentityBindingView>, ApiError> {
    Ok(changed(StatusCode::CREATED, identity::identity_bind(&cx.app, Actor::of(&cx), input.body).await?))
}

async fn get(cx: Cx<App>, input: Input<ById, (), ()>) -> Result<Reply<IdentityBindingView>, ApiError> {
    Ok(Reply::ok(identity::identity_binding_get(&cx.app, &cx.caller, input.path.id).await?))
}

async fn delete(cx: Cx<App>, input: Input<ById, (), ()>) -> Result<Reply<()>, ApiError> {
    identity::identity_unbind(&cx.app, Actor::of(&cx), input.path.id).await?;
    Ok(Reply::no_content())
}
