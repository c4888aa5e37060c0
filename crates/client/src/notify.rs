//! Notification integrations and deliveries.

use courant_api::notify::{
    DeliveryStatus, DeliveryView, IntegrationCreate, IntegrationPatch, IntegrationView, RetryResult,
};
use courant_api::{DeliveryId, IntegrationId, Page, TenantId};
use reqwest::Method;

use crate::error::ClientError;
use crate::http::{Call, Client, PageQuery};

impl Client {
    /// The org's integrations that the caller may read.
    pub async fn integrations(&self, org: TenantId, page: &PageQuery) -> Result<Page<IntegrationView>, ClientError> {
        let mut call = Call::get(integrations(org));
        page.add_to(&mut call.query);
        self.send(call).await
    }

    /// Makes an integration. A secret that the server made is null when the answer that showed it was lost and the
    /// call repeated itself.
    pub async fn create_integration(
        &self,
        org: TenantId,
        body: &IntegrationCreate,
    ) -> Result<IntegrationView, ClientError> {
        self.send(Call::post(integrations(org)).body(body)?).await
    }

    /// One integration.
    pub async fn integration(&self, org: TenantId, id: IntegrationId) -> Result<IntegrationView, ClientError> {
        self.send(Call::get(integration(org, id))).await
    }

    /// Changes an integration, only if it still has `version` when one is given.
    pub async fn update_integration(
        &self,
        org: TenantId,
        id: IntegrationId,
        version: Option<i64>,
        body: &IntegrationPatch,
    ) -> Result<IntegrationView, ClientError> {
        self.send(Call::new(Method::PATCH, integration(org, id)).if_version(version).body(body)?).await
    }

    /// Deletes an integration, only if it still has `version` when one is given.
    pub async fn delete_integration(
        &self,
        org: TenantId,
        id: IntegrationId,
        version: Option<i64>,
    ) -> Result<(), ClientError> {
        self.send_only(Call::new(Method::DELETE, integration(org, id)).if_version(version)).await
    }

    /// Deliveries that are under way or have failed, of the given statuses; none given: of every status.
    pub async fn deliveries(
        &self,
        org: TenantId,
        statuses: &[DeliveryStatus],
        page: &PageQuery,
    ) -> Result<Page<DeliveryView>, ClientError> {
        let mut call = Call::get(format!("/orgs/{org}/notification-deliveries"));
        for status in statuses {
            call.query.add("status", status.as_str());
        }
        page.add_to(&mut call.query);
        self.send(call).await
    }

    /// Makes a dead delivery due again.
    pub async fn retry_delivery(&self, org: TenantId, id: DeliveryId) -> Result<RetryResult, ClientError> {
        self.send(Call::post(format!("/orgs/{org}/notification-deliveries/{id}/retry"))).await
    }
}

fn integrations(org: TenantId) -> String {
    format!("/orgs/{org}/notification-integrations")
}

fn integration(org: TenantId, id: IntegrationId) -> String {
    format!("/orgs/{org}/notification-integrations/{id}")
}
