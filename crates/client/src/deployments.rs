//! Stacks, deployments and their runs, and findings.

use courant_api::deployments::{
    DeploymentCreate, DeploymentRunComplete, DeploymentRunStart, DeploymentRunView, DeploymentStatus, DeploymentView,
    FindingsView, StackCreate, StackPatch, StackView,
};
use courant_api::{DeploymentId, DeploymentRunId, Page, StackId, TenantId, WorkspaceId};
use reqwest::Method;

use crate::error::ClientError;
use crate::http::{Call, Client, PageQuery};

/// Which stacks, and which page of them; filters that are given all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StacksQuery {
    /// Those of this workspace and of all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Those with this name.
    pub name: Option<String>,
    /// Which page.
    pub page: PageQuery,
}

/// Which deployments, and which page of them; filters that are given all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentsQuery {
    /// Those with one of these statuses; none: whatever their status.
    pub statuses: Vec<DeploymentStatus>,
    /// Those of this stack.
    pub stack_id: Option<StackId>,
    /// Those of stacks of this workspace and of all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Which page.
    pub page: PageQuery,
}

impl Client {
    /// The org's stacks, newest first.
    pub async fn stacks(&self, org: TenantId, query: &StacksQuery) -> Result<Page<StackView>, ClientError> {
        let mut call = Call::get(of(org, "/stacks"));
        call.query.add_some("workspaceId", query.workspace_id.as_ref());
        call.query.add_some("name", query.name.as_ref());
        query.page.add_to(&mut call.query);
        self.send(call).await
    }

    /// One stack.
    pub async fn stack(&self, org: TenantId, id: StackId) -> Result<StackView, ClientError> {
        self.send(Call::get(of(org, &format!("/stacks/{id}")))).await
    }

    /// Creates a stack.
    pub async fn create_stack(&self, org: TenantId, body: &StackCreate) -> Result<StackView, ClientError> {
        self.send(Call::post(of(org, "/stacks")).body(body)?).await
    }

    /// Changes or moves a stack, only if it still has `version` when one is given.
    pub async fn update_stack(
        &self,
        org: TenantId,
        id: StackId,
        version: Option<i64>,
        body: &StackPatch,
    ) -> Result<StackView, ClientError> {
        let path = of(org, &format!("/stacks/{id}"));
        self.send(Call::new(Method::PATCH, path).if_version(version).body(body)?).await
    }

    /// Deletes a stack, only if it still has `version` when one is given.
    pub async fn delete_stack(&self, org: TenantId, id: StackId, version: Option<i64>) -> Result<(), ClientError> {
        self.send_only(Call::new(Method::DELETE, of(org, &format!("/stacks/{id}"))).if_version(version)).await
    }

    /// What is wrong with the org's stacks as they depend on one another.
    pub async fn findings(&self, org: TenantId) -> Result<FindingsView, ClientError> {
        self.send(Call::get(of(org, "/findings"))).await
    }

    /// The org's deployments, newest first.
    pub async fn deployments(
        &self,
        org: TenantId,
        query: &DeploymentsQuery,
    ) -> Result<Page<DeploymentView>, ClientError> {
        let mut call = Call::get(of(org, "/deployments"));
        for status in &query.statuses {
            call.query.add("status", status);
        }
        call.query.add_some("stackId", query.stack_id.as_ref());
        call.query.add_some("workspaceId", query.workspace_id.as_ref());
        query.page.add_to(&mut call.query);
        self.send(call).await
    }

    /// One deployment.
    pub async fn deployment(&self, org: TenantId, id: DeploymentId) -> Result<DeploymentView, ClientError> {
        self.send(Call::get(of(org, &format!("/deployments/{id}")))).await
    }

    /// Creates a deployment of a stack.
    pub async fn create_deployment(
        &self,
        org: TenantId,
        body: &DeploymentCreate,
    ) -> Result<DeploymentView, ClientError> {
        self.send(Call::post(of(org, "/deployments")).body(body)?).await
    }

    /// Lets a deployment that waits go on.
    pub async fn confirm_deployment(&self, org: TenantId, id: DeploymentId) -> Result<DeploymentView, ClientError> {
        self.send(Call::post(of(org, &format!("/deployments/{id}:confirm")))).await
    }

    /// Stops a deployment.
    pub async fn cancel_deployment(&self, org: TenantId, id: DeploymentId) -> Result<DeploymentView, ClientError> {
        self.send(Call::post(of(org, &format!("/deployments/{id}:cancel")))).await
    }

    /// Leaves out a deployment none of whose runs is under way.
    pub async fn skip_deployment(&self, org: TenantId, id: DeploymentId) -> Result<DeploymentView, ClientError> {
        self.send(Call::post(of(org, &format!("/deployments/{id}:skip")))).await
    }

    /// Makes a deployment of what the preview of a pull request has shown; the new deployment.
    pub async fn promote_deployment(&self, org: TenantId, id: DeploymentId) -> Result<DeploymentView, ClientError> {
        self.send(Call::post(of(org, &format!("/deployments/{id}:promote")))).await
    }

    /// The runs of a deployment, newest first.
    pub async fn deployment_runs(
        &self,
        org: TenantId,
        id: DeploymentId,
        page: &PageQuery,
    ) -> Result<Page<DeploymentRunView>, ClientError> {
        let mut call = Call::get(of(org, &format!("/deployments/{id}/runs")));
        page.add_to(&mut call.query);
        self.send(call).await
    }

    /// Begins a run of a deployment. Of a command's text only its length is kept.
    pub async fn start_deployment_run(
        &self,
        org: TenantId,
        id: DeploymentId,
        body: &DeploymentRunStart,
    ) -> Result<DeploymentRunView, ClientError> {
        self.send(Call::post(of(org, &format!("/deployments/{id}/runs"))).body(body)?).await
    }

    /// Says that a run's runner is there.
    pub async fn heartbeat_deployment_run(
        &self,
        org: TenantId,
        id: DeploymentRunId,
    ) -> Result<DeploymentRunView, ClientError> {
        self.send(Call::post(of(org, &format!("/runs/{id}:heartbeat")))).await
    }

    /// Ends a run, and takes its deployment on.
    pub async fn complete_deployment_run(
        &self,
        org: TenantId,
        id: DeploymentRunId,
        body: &DeploymentRunComplete,
    ) -> Result<DeploymentRunView, ClientError> {
        self.send(Call::post(of(org, &format!("/runs/{id}:complete"))).body(body)?).await
    }
}

fn of(org: TenantId, path: &str) -> String {
    format!("/orgs/{org}{path}")
}
