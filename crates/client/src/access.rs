//! Tenants, principals, keys, workspaces and grants.

use courant_api::access::{
    ApiKeyCreate, ApiKeyView, GrantCreate, GrantView, PrincipalCreate, PrincipalPatch, PrincipalView, TenantBootstrap,
    TenantBootstrapped, WorkspaceCreate, WorkspaceMove, WorkspacePatch, WorkspaceView,
};
use courant_api::{ApiKeyId, GrantId, Page, PrincipalId, WorkspaceId};
use reqwest::Method;
use serde::de::DeserializeOwned;

use crate::error::ClientError;
use crate::http::{Call, Client, Credential, PageQuery};

impl Client {
    /// Makes a tenant with its first principal and a key. `secret` is the server's bootstrap secret, sent in place of
    /// this client's key. The key is null when the answer that showed it was lost and the call repeated itself.
    pub async fn bootstrap(&self, secret: &str, body: &TenantBootstrap) -> Result<TenantBootstrapped, ClientError> {
        self.send(Call::post("/bootstrap").credential(Credential::new(secret)?).body(body)?).await
    }

    /// The tenant's principals.
    pub async fn principals(&self, page: &PageQuery) -> Result<Page<PrincipalView>, ClientError> {
        self.list("/principals", page).await
    }

    /// One principal.
    pub async fn principal(&self, id: PrincipalId) -> Result<PrincipalView, ClientError> {
        self.send(Call::get(format!("/principals/{id}"))).await
    }

    /// Makes a principal.
    pub async fn create_principal(&self, body: &PrincipalCreate) -> Result<PrincipalView, ClientError> {
        self.send(Call::post("/principals").body(body)?).await
    }

    /// Changes a principal, only if it still has `version` when one is given.
    pub async fn update_principal(
        &self,
        id: PrincipalId,
        version: Option<i64>,
        body: &PrincipalPatch,
    ) -> Result<PrincipalView, ClientError> {
        self.send(Call::new(Method::PATCH, format!("/principals/{id}")).if_version(version).body(body)?).await
    }

    /// The tenant's API keys, without their secrets.
    pub async fn api_keys(&self, page: &PageQuery) -> Result<Page<ApiKeyView>, ClientError> {
        self.list("/api-keys", page).await
    }

    /// Makes an API key. It is null when the answer that showed it was lost and the call repeated itself: revoke that
    /// one and make another.
    pub async fn create_api_key(&self, body: &ApiKeyCreate) -> Result<ApiKeyView, ClientError> {
        self.send(Call::post("/api-keys").body(body)?).await
    }

    /// Ends an API key.
    pub async fn revoke_api_key(&self, id: ApiKeyId) -> Result<ApiKeyView, ClientError> {
        self.send(Call::post(format!("/api-keys/{id}:revoke"))).await
    }

    /// The tenant's workspaces.
    pub async fn workspaces(&self, page: &PageQuery) -> Result<Page<WorkspaceView>, ClientError> {
        self.list("/workspaces", page).await
    }

    /// One workspace.
    pub async fn workspace(&self, id: WorkspaceId) -> Result<WorkspaceView, ClientError> {
        self.send(Call::get(format!("/workspaces/{id}"))).await
    }

    /// Makes a workspace.
    pub async fn create_workspace(&self, body: &WorkspaceCreate) -> Result<WorkspaceView, ClientError> {
        self.send(Call::post("/workspaces").body(body)?).await
    }

    /// Changes a workspace, only if it still has `version` when one is given.
    pub async fn update_workspace(
        &self,
        id: WorkspaceId,
        version: Option<i64>,
        body: &WorkspacePatch,
    ) -> Result<WorkspaceView, ClientError> {
        self.send(Call::new(Method::PATCH, format!("/workspaces/{id}")).if_version(version).body(body)?).await
    }

    /// Moves a workspace under another parent, or to the top.
    pub async fn move_workspace(&self, id: WorkspaceId, body: &WorkspaceMove) -> Result<WorkspaceView, ClientError> {
        self.send(Call::post(format!("/workspaces/{id}:move")).body(body)?).await
    }

    /// Archives a workspace.
    pub async fn archive_workspace(&self, id: WorkspaceId) -> Result<WorkspaceView, ClientError> {
        self.send(Call::post(format!("/workspaces/{id}:archive"))).await
    }

    /// The tenant's grants.
    pub async fn grants(&self, page: &PageQuery) -> Result<Page<GrantView>, ClientError> {
        self.list("/grants", page).await
    }

    /// Grants a permission.
    pub async fn create_grant(&self, body: &GrantCreate) -> Result<GrantView, ClientError> {
        self.send(Call::post("/grants").body(body)?).await
    }

    /// Takes a grant back.
    pub async fn delete_grant(&self, id: GrantId) -> Result<(), ClientError> {
        self.send_only(Call::new(Method::DELETE, format!("/grants/{id}"))).await
    }

    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: impl Into<String>,
        page: &PageQuery,
    ) -> Result<Page<T>, ClientError> {
        let mut call = Call::get(path);
        page.add_to(&mut call.query);
        self.send(call).await
    }
}
