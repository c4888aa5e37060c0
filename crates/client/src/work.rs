//! Tasks, and what is said and done on them.

use courant_api::work::{
    Because, ClaimView, CommentCreate, CommentView, RunStart, RunSucceed, RunSuspend, RunView, TaskClaim, TaskComplete,
    TaskCreate, TaskPatch, TaskStatus, TaskView, VerificationFail, VerificationPass, VerificationStart,
    VerificationView,
};
use courant_api::{ClaimId, GoalId, Page, PrincipalId, RunId, TaskId, VerificationId, WorkspaceId};
use reqwest::Method;

use crate::error::ClientError;
use crate::http::{Call, Client, PageQuery, Query};

/// Which tasks, and which page of them; filters that are given all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TasksQuery {
    /// Those with one of these statuses; none: whatever their status.
    pub statuses: Vec<TaskStatus>,
    /// Those of this workspace and of all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Those that this principal is to do.
    pub assignee_id: Option<PrincipalId>,
    /// Those that are for this goal.
    pub goal_id: Option<GoalId>,
    /// Which page.
    pub page: PageQuery,
}

impl TasksQuery {
    fn add_to(&self, query: &mut Query) {
        for status in &self.statuses {
            query.add("status", status);
        }
        query.add_some("workspaceId", self.workspace_id.as_ref());
        query.add_some("assigneeId", self.assignee_id.as_ref());
        query.add_some("goalId", self.goal_id.as_ref());
        self.page.add_to(query);
    }
}

impl Client {
    /// The tenant's tasks, newest first.
    pub async fn tasks(&self, query: &TasksQuery) -> Result<Page<TaskView>, ClientError> {
        let mut call = Call::get("/tasks");
        query.add_to(&mut call.query);
        self.send(call).await
    }

    /// One task.
    pub async fn task(&self, id: TaskId) -> Result<TaskView, ClientError> {
        self.send(Call::get(format!("/tasks/{id}"))).await
    }

    /// Makes a task.
    pub async fn create_task(&self, body: &TaskCreate) -> Result<TaskView, ClientError> {
        self.send(Call::post("/tasks").body(body)?).await
    }

    /// Changes or moves a task, only if it still has `version` when one is given.
    pub async fn update_task(
        &self,
        id: TaskId,
        version: Option<i64>,
        body: &TaskPatch,
    ) -> Result<TaskView, ClientError> {
        self.send(Call::new(Method::PATCH, format!("/tasks/{id}")).if_version(version).body(body)?).await
    }

    /// Claims a task, or extends the claim that this client's principal has.
    pub async fn claim_task(&self, id: TaskId, body: &TaskClaim) -> Result<ClaimView, ClientError> {
        self.send(Call::post(format!("/tasks/{id}:claim")).body(body)?).await
    }

    /// Completes a task; a claimed one with its claim's fencing token.
    pub async fn complete_task(&self, id: TaskId, body: &TaskComplete) -> Result<TaskView, ClientError> {
        self.send(Call::post(format!("/tasks/{id}:complete")).body(body)?).await
    }

    /// Gives a claimed task back.
    pub async fn release_claim(&self, id: ClaimId, body: &Because) -> Result<ClaimView, ClientError> {
        self.send(Call::post(format!("/claims/{id}:release")).body(body)?).await
    }

    /// The comments on a task, newest first.
    pub async fn task_comments(&self, id: TaskId, page: &PageQuery) -> Result<Page<CommentView>, ClientError> {
        self.list(format!("/tasks/{id}/comments"), page).await
    }

    /// Comments on a task.
    pub async fn comment_on_task(&self, id: TaskId, body: &CommentCreate) -> Result<CommentView, ClientError> {
        self.send(Call::post(format!("/tasks/{id}/comments")).body(body)?).await
    }

    /// A task's runs, newest first.
    pub async fn task_runs(&self, id: TaskId, page: &PageQuery) -> Result<Page<RunView>, ClientError> {
        let mut call = Call::get("/runs");
        call.query.add("taskId", &id);
        page.add_to(&mut call.query);
        self.send(call).await
    }

    /// One run.
    pub async fn run(&self, id: RunId) -> Result<RunView, ClientError> {
        self.send(Call::get(format!("/runs/{id}"))).await
    }

    /// Begins a run under a claim.
    pub async fn start_run(&self, body: &RunStart) -> Result<RunView, ClientError> {
        self.send(Call::post("/runs").body(body)?).await
    }

    /// Says that a run reached its end.
    pub async fn succeed_run(&self, id: RunId, body: &RunSucceed) -> Result<RunView, ClientError> {
        self.send(Call::post(format!("/runs/{id}:succeed")).body(body)?).await
    }

    /// Says that a run failed.
    pub async fn fail_run(&self, id: RunId, body: &Because) -> Result<RunView, ClientError> {
        self.send(Call::post(format!("/runs/{id}:fail")).body(body)?).await
    }

    /// Stops a run.
    pub async fn cancel_run(&self, id: RunId, body: &Because) -> Result<RunView, ClientError> {
        self.send(Call::post(format!("/runs/{id}:cancel")).body(body)?).await
    }

    /// Says that a run waits.
    pub async fn suspend_run(&self, id: RunId, body: &RunSuspend) -> Result<RunView, ClientError> {
        self.send(Call::post(format!("/runs/{id}:suspend")).body(body)?).await
    }

    /// A task's verifications, newest first.
    pub async fn task_verifications(
        &self,
        id: TaskId,
        page: &PageQuery,
    ) -> Result<Page<VerificationView>, ClientError> {
        self.list(format!("/tasks/{id}/verifications"), page).await
    }

    /// Begins a round of checks on a task.
    pub async fn start_verification(
        &self,
        id: TaskId,
        body: &VerificationStart,
    ) -> Result<VerificationView, ClientError> {
        self.send(Call::post(format!("/tasks/{id}/verifications")).body(body)?).await
    }

    /// Says that every check passed.
    pub async fn pass_verification(
        &self,
        id: VerificationId,
        body: &VerificationPass,
    ) -> Result<VerificationView, ClientError> {
        self.send(Call::post(format!("/verifications/{id}:pass")).body(body)?).await
    }

    /// Says that a check failed.
    pub async fn fail_verification(
        &self,
        id: VerificationId,
        body: &VerificationFail,
    ) -> Result<VerificationView, ClientError> {
        self.send(Call::post(format!("/verifications/{id}:fail")).body(body)?).await
    }
}
