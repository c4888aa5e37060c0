//! `/artifacts`, `/goals`, `/rules`, `/projects`

use courant_api::resources::{
    ArtifactView, GoalStatus, GoalView, ProjectPatch, ProjectStatus, ProjectView, RulePatch, RuleStatus, RuleView,
};
use courant_api::{ArtifactId, ErrorCode, GoalId, Page, Permission, ProjectId, RuleId, TaskId, WorkspaceId};
use courant_store::{Editable, ProjectEdit, Resource, ResourceQuery, RuleEdit};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::list::{List, ListQuery};
use super::versioned;
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::Actor;
use crate::ops::resources::{self, Bounded};

const PLACE: &str = "its workspace, or the tenant";

/// A kind of resource as these routes show it.
trait Exposed: Resource {
    type Id: DeserializeOwned + JsonSchema + Into<Uuid> + Send + Sync + 'static;
    type Query: DeserializeOwned + JsonSchema + Into<(ResourceQuery, ListQuery)> + Send + Sync + 'static;
    const LIST: List;

    fn shown_version(&self) -> i64;
}

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    use Permission as P;
    let many = |endpoint: Endpoint<App>| {
        endpoint
            .tag("work")
            .description("Of a workspace and all below it, or of the whole tenant; newest first.")
            .errors(&[E::NotFound, E::InvalidCursor])
    };
    let new = |endpoint: Endpoint<App>| endpoint.tag("work").errors(&[E::NotFound]).etag().created();
    let one = |endpoint: Endpoint<App>| endpoint.tag("work").etag();
    vec![
        many(Endpoint::get("/api/v1/artifacts", list::<ArtifactView>))
            .summary("Lists artifacts")
            .access(Access::On(&[P::ArtifactsRead], PLACE)),
        new(Endpoint::post("/api/v1/artifacts", create::<ArtifactView>))
            .summary("Records an artifact")
            .description(
                "Courant keeps where an artifact is, never its content. It lies in the workspace that it names, or else in that of \
                 its task.",
            )
            .access(Access::On(&[P::ArtifactsCreate], PLACE)),
        one(Endpoint::get("/api/v1/artifacts/{id}", get::<ArtifactView>))
            .summary("Reads an artifact")
            .missing("artifact")
            .access(Access::On(&[P::ArtifactsRead], PLACE)),
        many(Endpoint::get("/api/v1/goals", list::<GoalView>))
            .summary("Lists goals")
            .access(Access::On(&[P::GoalsRead], PLACE)),
        new(Endpoint::post("/api/v1/goals", create::<GoalView>))
            .summary("Creates a goal")
            .access(Access::On(&[P::GoalsManage], PLACE)),
        one(Endpoint::get("/api/v1/goals/{id}", get::<GoalView>))
            .summary("Reads a goal")
            .missing("goal")
            .access(Access::On(&[P::GoalsRead], PLACE)),
        one(Endpoint::patch("/api/v1/goals/{id}", update::<GoalView>))
            .summary("Changes or moves a goal")
            .missing("goal")
            .access(Access::On(&[P::GoalsManage], PLACE)),
        many(Endpoint::get("/api/v1/rules", list::<RuleView>))
            .summary("Lists rules")
            .access(Access::On(&[P::RulesRead], PLACE)),
        new(Endpoint::post("/api/v1/rules", create::<RuleView>))
            .summary("Creates a rule")
            .description("It is disabled until it is enabled. Courant keeps rules and tells of them; it does not evaluate them.")
            .access(Access::On(&[P::RulesManage], PLACE))
            .errors(&[E::NotFound, E::Conflict]),
        one(Endpoint::get("/api/v1/rules/{id}", get::<RuleView>))
            .summary("Reads a rule")
            .missing("rule")
            .access(Access::On(&[P::RulesRead], PLACE)),
        one(Endpoint::patch("/api/v1/rules/{id}", update_rule))
            .summary("Changes or moves a rule")
            .missing("rule")
            .access(Access::On(&[P::RulesManage], PLACE))
            .errors(&[E::IllegalTransition]),
        one(Endpoint::post("/api/v1/rules/{id}:enable", enable_rule))
            .summary("Lets a rule count")
            .missing("rule")
            .access(Access::On(&[P::RulesManage], PLACE))
            .errors(&[E::IllegalTransition]),
        one(Endpoint::post("/api/v1/rules/{id}:disable", disable_rule))
            .summary("Lets a rule count no more for now")
            .missing("rule")
            .access(Access::On(&[P::RulesManage], PLACE))
            .errors(&[E::IllegalTransition]),
        one(Endpoint::post("/api/v1/rules/{id}:archive", archive_rule))
            .summary("Ends a rule; an archived one stays so")
            .missing("rule")
            .access(Access::On(&[P::RulesManage], PLACE)),
        many(Endpoint::get("/api/v1/projects", list::<ProjectView>))
            .summary("Lists projects")
            .access(Access::On(&[P::ProjectsRead], PLACE)),
        new(Endpoint::post("/api/v1/projects", create::<ProjectView>))
            .summary("Creates a project")
            .access(Access::On(&[P::ProjectsManage], PLACE))
            .errors(&[E::NotFound, E::Conflict]),
        one(Endpoint::get("/api/v1/projects/{id}", get::<ProjectView>))
            .summary("Reads a project")
            .missing("project")
            .access(Access::On(&[P::ProjectsRead], PLACE)),
        one(Endpoint::patch("/api/v1/projects/{id}", update_project))
            .summary("Renames or moves a project")
            .missing("project")
            .access(Access::On(&[P::ProjectsManage], PLACE))
            .errors(&[E::IllegalTransition]),
        one(Endpoint::post("/api/v1/projects/{id}:archive", archive_project))
            .summary("Ends a project; an archived one stays so")
            .missing("project")
            .access(Access::On(&[P::ProjectsManage], PLACE)),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById<I> {
    /// Its id.
    id: I,
}

/// Declares the query of a kind's list.
macro_rules! query {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $type:ty,)* } $filter:expr) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct $name {
            /// Only those of this workspace and all below it.
            workspace_id: Option<WorkspaceId>,
            $($(#[$fdoc])* #[serde(default)] $field: $type,)*
            /// The `nextCursor` of the page before.
            cursor: Option<String>,
            /// Most rows in the page; 50 when absent.
            #[schemars(range(min = 1, max = 200))]
            limit: Option<i64>,
        }

        impl From<$name> for (ResourceQuery, ListQuery) {
            fn from(query: $name) -> Self {
                let $name { workspace_id, $($field,)* cursor, limit } = query;
                let filter: fn($($type),*) -> ResourceQuery = $filter;
                (ResourceQuery { workspace_id, ..filter($($field),*) }, ListQuery { cursor, limit })
            }
        }
    };
}

fn in_states<S: ToString>(statuses: &[S]) -> ResourceQuery {
    ResourceQuery { statuses: statuses.iter().map(ToString::to_string).collect(), ..ResourceQuery::default() }
}

query! {
    /// Which artifacts, and which page of them.
    ArtifactsQuery {
        /// Only those of this task.
        task_id: Option<TaskId>,
    }
    |task_id| ResourceQuery { task_id, ..ResourceQuery::default() }
}

query! {
    /// Which goals, and which page of them.
    GoalsQuery {
        /// Only goals in one of these states, repeatable.
        status: Vec<GoalStatus>,
    }
    |status| in_states(&status)
}

query! {
    /// Which rules, and which page of them.
    RulesQuery {
        /// Only rules in one of these states, repeatable.
        status: Vec<RuleStatus>,
    }
    |status| in_states(&status)
}

query! {
    /// Which projects, and which page of them.
    ProjectsQuery {
        /// Only projects in one of these states, repeatable.
        status: Vec<ProjectStatus>,
    }
    |status| in_states(&status)
}

/// Says how a kind is shown.
macro_rules! exposed {
    ($($view:ty: $id:ty, $query:ty, $list:literal;)+) => {$(
        impl Exposed for $view {
            type Id = $id;
            type Query = $query;
            const LIST: List = List($list);

            fn shown_version(&self) -> i64 {
                self.version
            }
        }
    )+};
}

exposed! {
    ArtifactView: ArtifactId, ArtifactsQuery, "artifacts";
    GoalView: GoalId, GoalsQuery, "goals";
    RuleView: RuleId, RulesQuery, "rules";
    ProjectView: ProjectId, ProjectsQuery, "projects";
}

async fn list<R: Exposed>(cx: Cx<App>, input: Input<(), R::Query, ()>) -> Result<Reply<Page<R>>, ApiError> {
    let (query, page) = input.query.into();
    let rows = resources::list::<R>(&cx.app, &cx.caller, query, page.key(R::LIST)?, page.limit()).await?;
    Ok(Reply::ok(R::LIST.page(rows)))
}

async fn create<R>(cx: Cx<App>, input: Input<(), (), R::New>) -> Result<Reply<R>, ApiError>
where
    R: Exposed,
    R::New: Bounded,
{
    let done = resources::create::<R>(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, R::shown_version))
}

async fn get<R: Exposed>(cx: Cx<App>, input: Input<ById<R::Id>, (), ()>) -> Result<Reply<R>, ApiError> {
    let view = resources::get::<R>(&cx.app, &cx.caller, input.path.id.into()).await?;
    let version = view.shown_version();
    Ok(Reply::ok(view).etag(version))
}

async fn edit<R>(cx: Cx<App>, id: Uuid, edit: R::Edit) -> Result<Reply<R>, ApiError>
where
    R: Exposed + Editable,
    R::Edit: Bounded,
{
    let done = resources::update::<R>(&cx.app, Actor::of(&cx), id, edit).await?;
    Ok(versioned(StatusCode::OK, done, R::shown_version))
}

async fn update<R>(cx: Cx<App>, input: Input<ById<R::Id>, (), R::Edit>) -> Result<Reply<R>, ApiError>
where
    R: Exposed + Editable,
    R::Edit: Bounded,
{
    edit(cx, input.path.id.into(), input.body).await
}

async fn update_rule(cx: Cx<App>, input: Input<ById<RuleId>, (), RulePatch>) -> Result<Reply<RuleView>, ApiError> {
    edit(cx, input.path.id.into(), RuleEdit::Patch(input.body)).await
}

async fn enable_rule(cx: Cx<App>, input: Input<ById<RuleId>, (), ()>) -> Result<Reply<RuleView>, ApiError> {
    edit(cx, input.path.id.into(), RuleEdit::Enable).await
}

async fn disable_rule(cx: Cx<App>, input: Input<ById<RuleId>, (), ()>) -> Result<Reply<RuleView>, ApiError> {
    edit(cx, input.path.id.into(), RuleEdit::Disable).await
}

async fn archive_rule(cx: Cx<App>, input: Input<ById<RuleId>, (), ()>) -> Result<Reply<RuleView>, ApiError> {
    edit(cx, input.path.id.into(), RuleEdit::Archive).await
}

async fn update_project(
    cx: Cx<App>,
    input: Input<ById<ProjectId>, (), ProjectPatch>,
) -> Result<Reply<ProjectView>, ApiError> {
    edit(cx, input.path.id.into(), ProjectEdit::Patch(input.body)).await
}

async fn archive_project(cx: Cx<App>, input: Input<ById<ProjectId>, (), ()>) -> Result<Reply<ProjectView>, ApiError> {
    edit(cx, input.path.id.into(), ProjectEdit::Archive).await
}
