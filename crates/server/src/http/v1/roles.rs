//! `/roles`, `/authz:check`

use courant_api::access::{
    AuthzCheck, AuthzChecked, RoleAssignmentCreate, RoleAssignmentView, RoleCreate, RoleHolder, RolePatch, RoleView,
};
use courant_api::{ErrorCode, Page, Permission, RoleAssignmentId, RoleId, WorkspaceId};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{List, ListQuery};
use super::{changed, versioned};
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, roles};

const ROLES: List = List("roles");
const ASSIGNMENTS: List = List("role-assignments");
const HOLDERS: List = List("role-principals");

const TENANT: &str = "the tenant";
const ITS_WORKSPACE: &str = "the role's workspace, or the tenant";
const THERE: &str = "the assignment's workspace, or the tenant";

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    vec![
        Endpoint::get("/api/v1/roles", list)
            .tag("access")
            .summary("Lists roles")
            .access(Access::On(&[P::RolesRead], TENANT))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/roles", create)
            .tag("access")
            .summary("Creates a role, without grants or holders")
            .access(Access::On(&[P::RolesManage], ITS_WORKSPACE))
            .errors(&[E::NotFound, E::Conflict])
            .etag()
            .created(),
        Endpoint::get("/api/v1/roles/{id}", get)
            .tag("access")
            .summary("Reads a role")
            .missing("role")
            .access(Access::On(&[P::RolesRead], ITS_WORKSPACE))
            .etag(),
        Endpoint::patch("/api/v1/roles/{id}", update)
            .tag("access")
            .summary("Renames a role")
            .missing("role")
            .access(Access::On(&[P::RolesManage], ITS_WORKSPACE)),
        Endpoint::get("/api/v1/roles/{id}/assignments", assignments)
            .tag("access")
            .summary("Lists who has a role, and where")
            .missing("role")
            .access(Access::On(&[P::RolesRead], ITS_WORKSPACE))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/roles/{id}/assignments", assign)
            .tag("access")
            .summary("Assigns a role to a principal, on the tenant or a workspace")
            .description(
                "The role's grants count for the principal within that workspace's subtree. The caller must hold each of \
                 them there.",
            )
            .missing("role")
            .access(Access::On(&[P::RolesManage], THERE))
            .errors(&[E::Conflict])
            .created(),
        Endpoint::delete("/api/v1/roles/{id}/assignments/{assignment_id}", revoke)
            .tag("access")
            .summary("Takes a role away from a principal; it stops counting within five seconds")
            .missing("role assignment")
            .versioned(false)
            .access(Access::On(&[P::RolesManage], THERE)),
        Endpoint::get("/api/v1/roles/{id}/principals", holders)
            .tag("access")
            .summary("Lists who holds a role at a place")
            .description(
                "Those who have it on the tenant, on the workspace or on one of its ancestors; without a workspace, on the \
                 tenant. The same rule decides who may decide an approval.",
            )
            .missing("role")
            .access(Access::OneOf(&[P::OrgRead, P::PrincipalsRead], "the workspace, or the tenant"))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/authz:check", check)
            .tag("access")
            .summary("Says what the caller may do")
            .description(
                "Each question is answered by the gate that the routes have: true when a request that needs just this would pass \
                 it now.",
            )
            .access(Access::Caller)
            .errors(&[E::AuthorizationUnavailable]),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByRole {
    /// The role's id.
    id: RoleId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByAssignment {
    /// The role's id.
    id: RoleId,
    /// The assignment's id.
    assignment_id: RoleAssignmentId,
}

/// Where holders are looked for, and which page of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HoldersQuery {
    /// The workspace; absent: the tenant.
    workspace_id: Option<WorkspaceId>,
    /// Go on after this page: the `nextCursor` of the one before.
    cursor: Option<String>,
    /// Most items: 1 to 200.
    #[schemars(range(min = 1, max = 200), extend("default" = 50))]
    limit: Option<i64>,
}

async fn list(cx: Cx<App>, input: Input<(), ListQuery, ()>) -> Result<Reply<Page<RoleView>>, ApiError> {
    let rows = roles::role_list(&cx.app, &cx.caller, input.query.key(ROLES)?, input.query.limit()).await?;
    Ok(Reply::ok(ROLES.page(rows)))
}

async fn create(cx: Cx<App>, input: Input<(), (), RoleCreate>) -> Result<Reply<RoleView>, ApiError> {
    let done = roles::role_create(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

async fn get(cx: Cx<App>, input: Input<ByRole, (), ()>) -> Result<Reply<RoleView>, ApiError> {
    let view = roles::role_get(&cx.app, &cx.caller, input.path.id).await?;
    let version = view.version;
    Ok(Reply::ok(view).etag(version))
}

async fn update(cx: Cx<App>, input: Input<ByRole, (), RolePatch>) -> Result<Reply<RoleView>, ApiError> {
    let done = roles::role_update(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn assignments(
    cx: Cx<App>,
    input: Input<ByRole, ListQuery, ()>,
) -> Result<Reply<Page<RoleAssignmentView>>, ApiError> {
    let (key, limit) = (input.query.key(ASSIGNMENTS)?, input.query.limit());
    let rows = roles::role_assignment_list(&cx.app, &cx.caller, input.path.id, key, limit).await?;
    Ok(Reply::ok(ASSIGNMENTS.page(rows)))
}

async fn assign(
    cx: Cx<App>,
    input: Input<ByRole, (), RoleAssignmentCreate>,
) -> Result<Reply<RoleAssignmentView>, ApiError> {
    let done = roles::role_assign(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(changed(StatusCode::CREATED, done))
}

async fn revoke(cx: Cx<App>, input: Input<ByAssignment, (), ()>) -> Result<Reply<()>, ApiError> {
    roles::role_revoke(&cx.app, Actor::of(&cx), input.path.id, input.path.assignment_id).await?;
    Ok(Reply::no_content())
}

async fn holders(cx: Cx<App>, input: Input<ByRole, HoldersQuery, ()>) -> Result<Reply<Page<RoleHolder>>, ApiError> {
    let HoldersQuery { workspace_id, cursor, limit } = input.query;
    let page = ListQuery { cursor, limit };
    let (key, limit) = (page.key(HOLDERS)?, page.limit());
    let rows = roles::role_holders(&cx.app, &cx.caller, input.path.id, workspace_id, key, limit).await?;
    Ok(Reply::ok(HOLDERS.page(rows)))
}

async fn check(cx: Cx<App>, input: Input<(), (), AuthzCheck>) -> Result<Reply<AuthzChecked>, ApiError> {
    Ok(changed(StatusCode::OK, roles::authz_check(&cx.app, Actor::of(&cx), input.body).await?))
}
