//! Roles, and what this client's key may do.

use courant_api::access::{
    AuthzCheck, AuthzChecked, RoleAssignmentCreate, RoleAssignmentView, RoleCreate, RoleHolder, RolePatch, RoleView,
};
use courant_api::{Page, RoleAssignmentId, RoleId, WorkspaceId};
use reqwest::Method;

use crate::error::ClientError;
use crate::http::{Call, Client, PageQuery};

impl Client {
    /// The tenant's roles.
    pub async fn roles(&self, page: &PageQuery) -> Result<Page<RoleView>, ClientError> {
        self.list("/roles", page).await
    }

    /// One role.
    pub async fn role(&self, id: RoleId) -> Result<RoleView, ClientError> {
        self.send(Call::get(format!("/roles/{id}"))).await
    }

    /// Makes a role.
    pub async fn create_role(&self, body: &RoleCreate) -> Result<RoleView, ClientError> {
        self.send(Call::post("/roles").body(body)?).await
    }

    /// Renames a role, only if it still has `version` when one is given.
    pub async fn update_role(
        &self,
        id: RoleId,
        version: Option<i64>,
        body: &RolePatch,
    ) -> Result<RoleView, ClientError> {
        self.send(Call::new(Method::PATCH, format!("/roles/{id}")).if_version(version).body(body)?).await
    }

    /// Who has a role, and where.
    pub async fn role_assignments(
        &self,
        id: RoleId,
        page: &PageQuery,
    ) -> Result<Page<RoleAssignmentView>, ClientError> {
        self.list(format!("/roles/{id}/assignments"), page).await
    }

    /// Assigns a role.
    pub async fn assign_role(
        &self,
        id: RoleId,
        body: &RoleAssignmentCreate,
    ) -> Result<RoleAssignmentView, ClientError> {
        self.send(Call::post(format!("/roles/{id}/assignments")).body(body)?).await
    }

    /// Takes a role away.
    pub async fn revoke_role(&self, id: RoleId, assignment: RoleAssignmentId) -> Result<(), ClientError> {
        self.send_only(Call::new(Method::DELETE, format!("/roles/{id}/assignments/{assignment}"))).await
    }

    /// Who holds a role on a workspace, or on the tenant.
    pub async fn role_holders(
        &self,
        id: RoleId,
        workspace_id: Option<WorkspaceId>,
        page: &PageQuery,
    ) -> Result<Page<RoleHolder>, ClientError> {
        let mut call = Call::get(format!("/roles/{id}/principals"));
        page.add_to(&mut call.query);
        call.query.add_some("workspaceId", workspace_id.as_ref());
        self.send(call).await
    }

    /// What this client may do.
    pub async fn check(&self, body: &AuthzCheck) -> Result<AuthzChecked, ClientError> {
        self.send(Call::post("/authz:check").body(body)?).await
    }
}
