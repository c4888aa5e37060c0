//! Logins of issuers, and the principals that they stand for.

use courant_api::access::{IdentityBindingCreate, IdentityBindingView};
use courant_api::{IdentityBindingId, Page};
use reqwest::Method;

use crate::error::ClientError;
use crate::http::{Call, Client, PageQuery};

impl Client {
    /// Which logins stand for which principals, newest first.
    pub async fn identity_bindings(&self, page: &PageQuery) -> Result<Page<IdentityBindingView>, ClientError> {
        self.list("/identity-bindings", page).await
    }

    /// One binding.
    pub async fn identity_binding(&self, id: IdentityBindingId) -> Result<IdentityBindingView, ClientError> {
        self.send(Call::get(format!("/identity-bindings/{id}"))).await
    }

    /// Binds a login to a principal.
    pub async fn bind_identity(&self, body: &IdentityBindingCreate) -> Result<IdentityBindingView, ClientError> {
        self.send(Call::post("/identity-bindings").body(body)?).await
    }

    /// Ends what a login stands for.
    pub async fn unbind_identity(&self, id: IdentityBindingId) -> Result<(), ClientError> {
        self.send_only(Call::new(Method::DELETE, format!("/identity-bindings/{id}"))).await
    }
}
