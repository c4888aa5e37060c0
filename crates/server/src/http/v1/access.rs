//! `/bootstrap`, `/principals`, `/api-keys`, `/workspaces`, `/grants`

use courant_api::access::{
    ApiKeyCreate, ApiKeyView, GrantCreate, GrantView, PrincipalCreate, PrincipalPatch, PrincipalView, TenantBootstrap,
    TenantBootstrapped, WorkspaceCreate, WorkspaceMove, WorkspacePatch, WorkspaceView,
};
use courant_api::{ApiKeyId, ErrorCode, GrantId, Page, Permission, PrincipalId, WorkspaceId};
use courant_store::{Change, Idempotency};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::list::{List, ListQuery};
use super::{changed, versioned};
use crate::app::App;
use crate::clock;
use crate::http::{Access, ApiError, Cx, Endpoint, Entry, Gate, Input, Reply, neighbourhood};
use crate::ops::{Actor, access};
use crate::secrets::equal;

const PRINCIPALS: List = List("principals");
const API_KEYS: List = List("api-keys");
const GRANTS: List = List("grants");
const WORKSPACES: List = List("workspaces");

const TENANT: &str = "the tenant";
const ITSELF: &str = "the workspace, or the tenant";

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    vec![
        Endpoint::post("/api/v1/bootstrap", bootstrap)
            .tag("access")
            .summary("Makes a tenant with its first principal and a key")
            .description("The bearer credential is the server's `COURANT_BOOTSTRAP_SECRET`; without one it is refused.")
            .access(Access::Caller)
            .created(),
        Endpoint::get("/api/v1/principals", principals)
            .tag("access")
            .summary("Lists principals")
            .access(Access::On(&[P::PrincipalsRead], TENANT))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/principals", principal_create)
            .tag("access")
            .summary("Creates a principal, without keys or grants")
            .access(Access::On(&[P::PrincipalsManage], TENANT))
            .etag()
            .created(),
        Endpoint::get("/api/v1/principals/{id}", principal_get)
            .tag("access")
            .summary("Reads a principal")
            .missing("principal")
            .access(Access::On(&[P::PrincipalsRead], TENANT))
            .etag(),
        Endpoint::patch("/api/v1/principals/{id}", principal_update)
            .tag("access")
            .summary("Renames, disables or enables a principal")
            .missing("principal")
            .access(Access::On(&[P::PrincipalsManage], TENANT)),
        Endpoint::get("/api/v1/api-keys", keys)
            .tag("access")
            .summary("Lists API keys, without their secrets")
            .access(Access::On(&[P::ApiKeysRead], TENANT))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/api-keys", key_create)
            .tag("access")
            .summary("Makes an API key; the key itself is shown this once")
            .description("The caller must hold every grant of the key's principal.")
            .access(Access::On(&[P::ApiKeysManage], TENANT))
            .errors(&[E::NotFound])
            .created(),
        Endpoint::post("/api/v1/api-keys/{id}:revoke", key_revoke)
            .tag("access")
            .summary("Revokes an API key; it stops working within five seconds")
            .missing("API key")
            .access(Access::On(&[P::ApiKeysManage], TENANT)),
        Endpoint::get("/api/v1/grants", grants)
            .tag("access")
            .summary("Lists grants")
            .access(Access::On(&[P::GrantsRead], TENANT))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/grants", grant_create)
            .tag("access")
            .summary("Grants a permission to a principal")
            .description("The caller must hold the permission on that resource.")
            .access(Access::On(&[P::GrantsManage], TENANT))
            .errors(&[E::NotFound, E::Conflict])
            .created(),
        Endpoint::delete("/api/v1/grants/{id}", grant_delete)
            .tag("access")
            .summary("Takes a grant back; it stops counting within five seconds")
            .missing("grant")
            .versioned(false)
            .access(Access::On(&[P::GrantsManage], TENANT)),
        Endpoint::get("/api/v1/workspaces", workspaces)
            .tag("access")
            .summary("Lists workspaces")
            .access(Access::On(&[P::WorkspacesRead], TENANT))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/workspaces", workspace_create)
            .tag("access")
            .summary("Creates a workspace")
            .access(Access::On(&[P::WorkspacesManage], "the parent workspace, or the tenant"))
            .errors(&[E::NotFound, E::Conflict])
            .etag()
            .created(),
        Endpoint::get("/api/v1/workspaces/{id}", workspace_get)
            .tag("access")
            .summary("Reads a workspace")
            .missing("workspace")
            .access(Access::On(&[P::WorkspacesRead], ITSELF))
            .etag(),
        Endpoint::patch("/api/v1/workspaces/{id}", workspace_update)
            .tag("access")
            .summary("Renames a workspace")
            .missing("workspace")
            .access(Access::On(&[P::WorkspacesManage], ITSELF)),
        Endpoint::post("/api/v1/workspaces/{id}:move", workspace_move)
            .tag("access")
            .summary("Puts a workspace under another parent")
            .missing("workspace")
            .access(Access::On(&[P::WorkspacesManage], "the workspace and its new parent, or the tenant"))
            .errors(&[E::Conflict])
            .versioned(true)
            .etag(),
        Endpoint::post("/api/v1/workspaces/{id}:archive", workspace_archive)
            .tag("access")
            .summary("Archives a workspace that has no active ones below it")
            .missing("workspace")
            .access(Access::On(&[P::WorkspacesManage], ITSELF))
            .errors(&[E::Conflict])
            .versioned(true)
            .etag(),
    ]
}

/// Lets in who knows the bootstrap secret. Once a client has guessed wrong too often, its next guesses are not even looked
/// at for a while: a limit that still let the right one through would not slow guessing down.
#[derive(Debug)]
struct Bootstrap;

impl Gate<App> for Bootstrap {
    type Caller = ();
    const PUBLIC: bool = false;

    async fn admit(app: &App, entry: &Entry<'_>) -> Result<(), ApiError> {
        let Some(given) = entry.credential else { return Err(ApiError::unauthenticated()) };
        let client = entry.request.client.map(neighbourhood);
        app.wrong_secrets.look(&client).map_err(ApiError::rate_limited)?;
        match &app.bootstrap_secret {
            Some(secret) if equal(secret.expose().as_bytes(), given.as_bytes()) => Ok(()),
            _ => {
                app.wrong_secrets.take(client).map_err(ApiError::rate_limited)?;
                Err(ApiError::unauthenticated())
            }
        }
    }
}

async fn bootstrap(
    cx: Cx<App, Bootstrap>,
    input: Input<(), (), TenantBootstrap>,
) -> Result<Reply<TenantBootstrapped>, ApiError> {
    let change = Change {
        request_id: Some(cx.request.request_id),
        correlation_id: Some(cx.request.correlation_id),
        idempotency: cx.idempotency.map(|i| Idempotency { key: i.key, fingerprint: i.fingerprint }),
        ..Change::by_server(Uuid::nil().into(), clock::now())
    };
    let done = access::tenant_bootstrap(&cx.app.store, Some(change), input.body).await?;
    Ok(changed(StatusCode::CREATED, done))
}

macro_rules! by_id {
    ($name:ident, $id:ty, $doc:literal) => {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct $name {
            #[doc = $doc]
            id: $id,
        }
    };
}

by_id!(ByPrincipal, PrincipalId, "The principal's id.");
by_id!(ByKey, ApiKeyId, "The key's id.");
by_id!(ByGrant, GrantId, "The grant's id.");
by_id!(ByWorkspace, WorkspaceId, "The workspace's id.");

async fn principals(cx: Cx<App>, input: Input<(), ListQuery, ()>) -> Result<Reply<Page<PrincipalView>>, ApiError> {
    let rows = access::principal_list(&cx.app, &cx.caller, input.query.key(PRINCIPALS)?, input.query.limit()).await?;
    Ok(Reply::ok(PRINCIPALS.page(rows)))
}

async fn principal_create(
    cx: Cx<App>,
    input: Input<(), (), PrincipalCreate>,
) -> Result<Reply<PrincipalView>, ApiError> {
    let done = access::principal_create(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

async fn principal_get(cx: Cx<App>, input: Input<ByPrincipal, (), ()>) -> Result<Reply<PrincipalView>, ApiError> {
    let view = access::principal_get(&cx.app, &cx.caller, input.path.id).await?;
    let version = view.version;
    Ok(Reply::ok(view).etag(version))
}

async fn principal_update(
    cx: Cx<App>,
    input: Input<ByPrincipal, (), PrincipalPatch>,
) -> Result<Reply<PrincipalView>, ApiError> {
    let done = access::principal_update(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn keys(cx: Cx<App>, input: Input<(), ListQuery, ()>) -> Result<Reply<Page<ApiKeyView>>, ApiError> {
    let rows = access::api_key_list(&cx.app, &cx.caller, input.query.key(API_KEYS)?, input.query.limit()).await?;
    Ok(Reply::ok(API_KEYS.page(rows)))
}

async fn key_create(cx: Cx<App>, input: Input<(), (), ApiKeyCreate>) -> Result<Reply<ApiKeyView>, ApiError> {
    let done = access::api_key_create(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(changed(StatusCode::CREATED, done))
}

async fn key_revoke(cx: Cx<App>, input: Input<ByKey, (), ()>) -> Result<Reply<ApiKeyView>, ApiError> {
    let done = access::api_key_revoke(&cx.app, Actor::of(&cx), input.path.id).await?;
    Ok(changed(StatusCode::OK, done))
}

async fn grants(cx: Cx<App>, input: Input<(), ListQuery, ()>) -> Result<Reply<Page<GrantView>>, ApiError> {
    let rows = access::grant_list(&cx.app, &cx.caller, input.query.key(GRANTS)?, input.query.limit()).await?;
    Ok(Reply::ok(GRANTS.page(rows)))
}

async fn grant_create(cx: Cx<App>, input: Input<(), (), GrantCreate>) -> Result<Reply<GrantView>, ApiError> {
    let done = access::grant_create(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(changed(StatusCode::CREATED, done))
}

async fn grant_delete(cx: Cx<App>, input: Input<ByGrant, (), ()>) -> Result<Reply<()>, ApiError> {
    access::grant_delete(&cx.app, Actor::of(&cx), input.path.id).await?;
    Ok(Reply::no_content())
}

async fn workspaces(cx: Cx<App>, input: Input<(), ListQuery, ()>) -> Result<Reply<Page<WorkspaceView>>, ApiError> {
    let rows = access::workspace_list(&cx.app, &cx.caller, input.query.key(WORKSPACES)?, input.query.limit()).await?;
    Ok(Reply::ok(WORKSPACES.page(rows)))
}

async fn workspace_create(
    cx: Cx<App>,
    input: Input<(), (), WorkspaceCreate>,
) -> Result<Reply<WorkspaceView>, ApiError> {
    let done = access::workspace_create(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

async fn workspace_get(cx: Cx<App>, input: Input<ByWorkspace, (), ()>) -> Result<Reply<WorkspaceView>, ApiError> {
    let view = access::workspace_get(&cx.app, &cx.caller, input.path.id).await?;
    let version = view.version;
    Ok(Reply::ok(view).etag(version))
}

async fn workspace_update(
    cx: Cx<App>,
    input: Input<ByWorkspace, (), WorkspacePatch>,
) -> Result<Reply<WorkspaceView>, ApiError> {
    let done = access::workspace_update(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn workspace_move(
    cx: Cx<App>,
    input: Input<ByWorkspace, (), WorkspaceMove>,
) -> Result<Reply<WorkspaceView>, ApiError> {
    let done = access::workspace_move(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn workspace_archive(cx: Cx<App>, input: Input<ByWorkspace, (), ()>) -> Result<Reply<WorkspaceView>, ApiError> {
    let done = access::workspace_archive(&cx.app, Actor::of(&cx), input.path.id).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}
