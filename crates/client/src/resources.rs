//! Artifacts, goals, rules, projects and skill invocations.

use courant_api::resources::{
    ArtifactCreate, ArtifactView, GoalCreate, GoalPatch, GoalStatus, GoalView, ProjectCreate, ProjectPatch,
    ProjectStatus, ProjectView, RuleCreate, RulePatch, RuleStatus, RuleView, SkillFail, SkillInvocationView,
    SkillInvoke, SkillRetry, SkillStatus,
};
use courant_api::{ArtifactId, GoalId, Page, ProjectId, RuleId, SkillInvocationId, TaskId, WorkspaceId};
use reqwest::Method;

use crate::error::ClientError;
use crate::http::{Call, Client, PageQuery};

/// Which resources of a kind, and which page of them; filters that are given all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcesQuery<S> {
    /// Those with one of these statuses; none: whatever their status.
    pub statuses: Vec<S>,
    /// Those of this workspace and of all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Which page.
    pub page: PageQuery,
}

impl<S> Default for ResourcesQuery<S> {
    fn default() -> Self {
        Self { statuses: Vec::new(), workspace_id: None, page: PageQuery::default() }
    }
}

impl<S: std::fmt::Display> ResourcesQuery<S> {
    fn call(&self, path: &'static str) -> Call {
        let mut call = Call::get(path);
        for status in &self.statuses {
            call.query.add("status", status);
        }
        call.query.add_some("workspaceId", self.workspace_id.as_ref());
        self.page.add_to(&mut call.query);
        call
    }
}

/// Which artifacts, and which page of them; filters that are given all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactsQuery {
    /// Those of this task.
    pub task_id: Option<TaskId>,
    /// Those of this workspace and of all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Which page.
    pub page: PageQuery,
}

/// Which skill invocations, and which page of them; filters that are given all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillInvocationsQuery {
    /// Those with one of these statuses; none: whatever their status.
    pub statuses: Vec<SkillStatus>,
    /// Those for this task.
    pub task_id: Option<TaskId>,
    /// Those of this skill.
    pub skill: Option<String>,
    /// Those for tasks of this workspace and of all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Which page.
    pub page: PageQuery,
}

impl Client {
    /// The tenant's artifacts, newest first.
    pub async fn artifacts(&self, query: &ArtifactsQuery) -> Result<Page<ArtifactView>, ClientError> {
        let mut call = Call::get("/artifacts");
        call.query.add_some("taskId", query.task_id.as_ref());
        call.query.add_some("workspaceId", query.workspace_id.as_ref());
        query.page.add_to(&mut call.query);
        self.send(call).await
    }

    /// One artifact.
    pub async fn artifact(&self, id: ArtifactId) -> Result<ArtifactView, ClientError> {
        self.send(Call::get(format!("/artifacts/{id}"))).await
    }

    /// Records an artifact.
    pub async fn create_artifact(&self, body: &ArtifactCreate) -> Result<ArtifactView, ClientError> {
        self.send(Call::post("/artifacts").body(body)?).await
    }

    /// The tenant's goals, newest first.
    pub async fn goals(&self, query: &ResourcesQuery<GoalStatus>) -> Result<Page<GoalView>, ClientError> {
        self.send(query.call("/goals")).await
    }

    /// One goal.
    pub async fn goal(&self, id: GoalId) -> Result<GoalView, ClientError> {
        self.send(Call::get(format!("/goals/{id}"))).await
    }

    /// Creates a goal.
    pub async fn create_goal(&self, body: &GoalCreate) -> Result<GoalView, ClientError> {
        self.send(Call::post("/goals").body(body)?).await
    }

    /// Changes or moves a goal, only if it still has `version` when one is given.
    pub async fn update_goal(
        &self,
        id: GoalId,
        version: Option<i64>,
        body: &GoalPatch,
    ) -> Result<GoalView, ClientError> {
        self.send(Call::new(Method::PATCH, format!("/goals/{id}")).if_version(version).body(body)?).await
    }

    /// The tenant's rules, newest first.
    pub async fn rules(&self, query: &ResourcesQuery<RuleStatus>) -> Result<Page<RuleView>, ClientError> {
        self.send(query.call("/rules")).await
    }

    /// One rule.
    pub async fn rule(&self, id: RuleId) -> Result<RuleView, ClientError> {
        self.send(Call::get(format!("/rules/{id}"))).await
    }

    /// Creates a rule.
    pub async fn create_rule(&self, body: &RuleCreate) -> Result<RuleView, ClientError> {
        self.send(Call::post("/rules").body(body)?).await
    }

    /// Changes or moves a rule, only if it still has `version` when one is given.
    pub async fn update_rule(
        &self,
        id: RuleId,
        version: Option<i64>,
        body: &RulePatch,
    ) -> Result<RuleView, ClientError> {
        self.send(Call::new(Method::PATCH, format!("/rules/{id}")).if_version(version).body(body)?).await
    }

    /// Lets a rule count.
    pub async fn enable_rule(&self, id: RuleId) -> Result<RuleView, ClientError> {
        self.send(Call::post(format!("/rules/{id}:enable"))).await
    }

    /// Lets a rule count no more for now.
    pub async fn disable_rule(&self, id: RuleId) -> Result<RuleView, ClientError> {
        self.send(Call::post(format!("/rules/{id}:disable"))).await
    }

    /// Ends a rule.
    pub async fn archive_rule(&self, id: RuleId) -> Result<RuleView, ClientError> {
        self.send(Call::post(format!("/rules/{id}:archive"))).await
    }

    /// The tenant's projects, newest first.
    pub async fn projects(&self, query: &ResourcesQuery<ProjectStatus>) -> Result<Page<ProjectView>, ClientError> {
        self.send(query.call("/projects")).await
    }

    /// One project.
    pub async fn project(&self, id: ProjectId) -> Result<ProjectView, ClientError> {
        self.send(Call::get(format!("/projects/{id}"))).await
    }

    /// Creates a project.
    pub async fn create_project(&self, body: &ProjectCreate) -> Result<ProjectView, ClientError> {
        self.send(Call::post("/projects").body(body)?).await
    }

    /// Changes or moves a project, only if it still has `version` when one is given.
    pub async fn update_project(
        &self,
        id: ProjectId,
        version: Option<i64>,
        body: &ProjectPatch,
    ) -> Result<ProjectView, ClientError> {
        self.send(Call::new(Method::PATCH, format!("/projects/{id}")).if_version(version).body(body)?).await
    }

    /// Ends a project.
    pub async fn archive_project(&self, id: ProjectId) -> Result<ProjectView, ClientError> {
        self.send(Call::post(format!("/projects/{id}:archive"))).await
    }

    /// The tenant's skill invocations, newest first.
    pub async fn skill_invocations(
        &self,
        query: &SkillInvocationsQuery,
    ) -> Result<Page<SkillInvocationView>, ClientError> {
        let mut call = Call::get("/skill-invocations");
        for status in &query.statuses {
            call.query.add("status", status);
        }
        call.query.add_some("taskId", query.task_id.as_ref());
        call.query.add_some("skill", query.skill.as_ref());
        call.query.add_some("workspaceId", query.workspace_id.as_ref());
        query.page.add_to(&mut call.query);
        self.send(call).await
    }

    /// One skill invocation.
    pub async fn skill_invocation(&self, id: SkillInvocationId) -> Result<SkillInvocationView, ClientError> {
        self.send(Call::get(format!("/skill-invocations/{id}"))).await
    }

    /// Wants a skill used for a task.
    pub async fn invoke_skill(&self, body: &SkillInvoke) -> Result<SkillInvocationView, ClientError> {
        self.send(Call::post("/skill-invocations").body(body)?).await
    }

    /// Claims a skill invocation for this client's principal.
    pub async fn claim_skill_invocation(&self, id: SkillInvocationId) -> Result<SkillInvocationView, ClientError> {
        self.send(Call::post(format!("/skill-invocations/{id}:claim"))).await
    }

    /// Has a skill invocation tried again.
    pub async fn retry_skill_invocation(
        &self,
        id: SkillInvocationId,
        body: &SkillRetry,
    ) -> Result<SkillInvocationView, ClientError> {
        self.send(Call::post(format!("/skill-invocations/{id}:retry")).body(body)?).await
    }

    /// Says that a skill invocation is done.
    pub async fn succeed_skill_invocation(&self, id: SkillInvocationId) -> Result<SkillInvocationView, ClientError> {
        self.send(Call::post(format!("/skill-invocations/{id}:succeed"))).await
    }

    /// Says that a skill invocation was tried in vain.
    pub async fn fail_skill_invocation(
        &self,
        id: SkillInvocationId,
        body: &SkillFail,
    ) -> Result<SkillInvocationView, ClientError> {
        self.send(Call::post(format!("/skill-invocations/{id}:fail")).body(body)?).await
    }

    /// Wants a skill invocation no more.
    pub async fn cancel_skill_invocation(&self, id: SkillInvocationId) -> Result<SkillInvocationView, ClientError> {
        self.send(Call::post(format!("/skill-invocations/{id}:cancel"))).await
    }
}
