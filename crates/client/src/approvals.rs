//! Approvals: requested, decided, cancelled.

use courant_api::approvals::{
    ApprovalDecide, ApprovalRequest, ApprovalStatus, ApprovalView, DecisionToken, DecisionTokenCreate,
};
use courant_api::{ApprovalId, Page, RoleId, TaskId, WorkspaceId};

use crate::error::ClientError;
use crate::http::{Call, Client, PageQuery, Query};

/// Which approvals, and which page of them; filters that are given all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalsQuery {
    /// Those with one of these statuses; none: whatever their status.
    pub statuses: Vec<ApprovalStatus>,
    /// Those of this workspace and of all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Those about this task.
    pub task_id: Option<TaskId>,
    /// Those that this role decides.
    pub required_role_id: Option<RoleId>,
    /// Which page.
    pub page: PageQuery,
}

impl ApprovalsQuery {
    fn add_to(&self, query: &mut Query) {
        for status in &self.statuses {
            query.add("status", status);
        }
        query.add_some("workspaceId", self.workspace_id.as_ref());
        query.add_some("taskId", self.task_id.as_ref());
        query.add_some("requiredRoleId", self.required_role_id.as_ref());
        self.page.add_to(query);
    }
}

impl Client {
    /// The tenant's approvals, newest first.
    pub async fn approvals(&self, query: &ApprovalsQuery) -> Result<Page<ApprovalView>, ClientError> {
        let mut call = Call::get("/approvals");
        query.add_to(&mut call.query);
        self.send(call).await
    }

    /// What this client's principal may decide now.
    pub async fn approvals_to_decide(&self, page: &PageQuery) -> Result<Page<ApprovalView>, ClientError> {
        self.list("/me/approvals", page).await
    }

    /// One approval.
    pub async fn approval(&self, id: ApprovalId) -> Result<ApprovalView, ClientError> {
        self.send(Call::get(format!("/approvals/{id}"))).await
    }

    /// Requests a decision.
    pub async fn request_approval(&self, body: &ApprovalRequest) -> Result<ApprovalView, ClientError> {
        self.send(Call::post("/approvals").body(body)?).await
    }

    /// Says yes.
    pub async fn approve(&self, id: ApprovalId, body: &ApprovalDecide) -> Result<ApprovalView, ClientError> {
        self.send(Call::post(format!("/approvals/{id}:approve")).body(body)?).await
    }

    /// Says no.
    pub async fn reject(&self, id: ApprovalId, body: &ApprovalDecide) -> Result<ApprovalView, ClientError> {
        self.send(Call::post(format!("/approvals/{id}:reject")).body(body)?).await
    }

    /// Asks no more.
    pub async fn cancel_approval(&self, id: ApprovalId) -> Result<ApprovalView, ClientError> {
        self.send(Call::post(format!("/approvals/{id}:cancel"))).await
    }

    /// Makes a token with which one principal decides one approval.
    pub async fn create_decision_token(
        &self,
        id: ApprovalId,
        body: &DecisionTokenCreate,
    ) -> Result<DecisionToken, ClientError> {
        self.send(Call::post(format!("/approvals/{id}/decision-tokens")).body(body)?).await
    }
}
