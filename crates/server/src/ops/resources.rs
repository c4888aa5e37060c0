//! Plain versioned resources: created, read, listed, changed, whatever their kind.

use courant_api::access::MAX_NAME_CHARS;
use courant_api::resources::{
    ArtifactCreate, GoalCreate, GoalPatch, KEY_PATTERN, MAX_DEFINITION_BYTES, MAX_URI_CHARS, MAX_WORD_CHARS,
    ProjectCreate, RuleCreate, is_key,
};
use courant_api::work::MAX_TEXT_CHARS;
use courant_store::{Caller, Changed, Editable, Page, PageKey, ProjectEdit, Resource, ResourceQuery, RuleEdit};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Actor, decided, place, require, text};
use crate::app::App;
use crate::http::ApiError;

/// What somebody sends, within its bounds.
pub trait Bounded: Clone + Send + Sync {
    /// Refuses what lies beyond them.
    fn check(&self) -> Result<(), ApiError>;
}

/// Creates a resource.
pub async fn create<R>(app: &App, actor: Actor, new: R::New) -> Result<Changed<R>, ApiError>
where
    R: Resource,
    R::New: Bounded,
{
    new.check()?;
    decided(app, || app.store.resource_create::<R>(actor.change.clone(), new.clone())).await
}

/// One resource.
pub async fn get<R: Resource>(app: &App, caller: &Caller, id: Uuid) -> Result<R, ApiError> {
    let (resource, workspace) = app.store.resource_get::<R>(caller.tenant_id, id).await?;
    require(app, caller, R::KIND.read, &place(workspace)).await?;
    Ok(resource)
}

/// Resources of a kind, newest first: of a workspace and all below it, or of the whole tenant.
pub async fn list<R: Resource>(
    app: &App,
    caller: &Caller,
    query: ResourceQuery,
    key: PageKey,
    limit: i64,
) -> Result<Page<R>, ApiError> {
    if let Some(workspace) = query.workspace_id {
        app.store.workspace_get(caller.tenant_id, workspace).await?;
    }
    if let Some(task) = query.task_id {
        app.store.task_get(caller.tenant_id, task).await?;
    }
    require(app, caller, R::KIND.read, &place(query.workspace_id)).await?;
    Ok(app.store.resource_list(caller.tenant_id, query, key, limit).await?)
}

/// Changes or moves a resource.
pub async fn update<R>(app: &App, actor: Actor, id: Uuid, edit: R::Edit) -> Result<Changed<R>, ApiError>
where
    R: Editable,
    R::Edit: Bounded,
{
    edit.check()?;
    decided(app, || app.store.resource_update::<R>(actor.change.clone(), id, edit.clone())).await
}

/// A key of a rule, a project or a skill.
pub(super) fn key(pointer: &str, key: &str) -> Result<(), ApiError> {
    if is_key(key) { Ok(()) } else { Err(ApiError::invalid_field(pointer, &format!("must match {KEY_PATTERN}"))) }
}

/// A kind, a version or a code: a short name.
pub(super) fn word(pointer: &str, word: &str) -> Result<(), ApiError> {
    text::name(pointer, word, MAX_WORD_CHARS)
}

fn definition(definition: &Map<String, Value>) -> Result<(), ApiError> {
    text::json("/definition", definition, MAX_DEFINITION_BYTES)
}

fn name(pointer: &str, name: &str) -> Result<(), ApiError> {
    text::name(pointer, name, MAX_NAME_CHARS)
}

impl Bounded for ArtifactCreate {
    fn check(&self) -> Result<(), ApiError> {
        word("/type", &self.r#type)?;
        name("/name", &self.name)?;
        if let Some(uri) = &self.uri {
            text::name("/uri", uri, MAX_URI_CHARS)?;
            if uri.chars().any(char::is_whitespace) {
                return Err(ApiError::invalid_field("/uri", "must not hold white space"));
            }
        }
        Ok(())
    }
}

impl Bounded for GoalCreate {
    fn check(&self) -> Result<(), ApiError> {
        name("/title", &self.title)?;
        self.description.as_ref().map_or(Ok(()), |text| text::prose("/description", text, MAX_TEXT_CHARS))
    }
}

impl Bounded for GoalPatch {
    fn check(&self) -> Result<(), ApiError> {
        self.title.as_ref().map_or(Ok(()), |title| name("/title", title))?;
        let description = self.description.as_ref().and_then(Option::as_ref);
        description.map_or(Ok(()), |text| text::prose("/description", text, MAX_TEXT_CHARS))
    }
}

impl Bounded for RuleCreate {
    fn check(&self) -> Result<(), ApiError> {
        key("/key", &self.key)?;
        definition(&self.definition)
    }
}

impl Bounded for RuleEdit {
    fn check(&self) -> Result<(), ApiError> {
        match self {
            Self::Patch(patch) => patch.definition.as_ref().map_or(Ok(()), definition),
            Self::Enable | Self::Disable | Self::Archive => Ok(()),
        }
    }
}

impl Bounded for ProjectCreate {
    fn check(&self) -> Result<(), ApiError> {
        key("/key", &self.key)?;
        name("/name", &self.name)
    }
}

impl Bounded for ProjectEdit {
    fn check(&self) -> Result<(), ApiError> {
        match self {
            Self::Patch(patch) => patch.name.as_ref().map_or(Ok(()), |text| name("/name", text)),
            Self::Archive => Ok(()),
        }
    }
}
