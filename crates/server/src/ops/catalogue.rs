//! The catalogue: core types from the binary, custom types from the store.

use courant_api::catalog::{EventTypeRegister, EventTypeView};
use courant_api::filter::is_type_name;
use courant_api::{ErrorCode, Permission, Resource, events};
use courant_core::catalogue::check_schema;
use courant_store::{Caller, Changed};

use super::error::fault_list;
use super::{Actor, require, text};
use crate::app::App;
use crate::http::ApiError;

/// Types in order of their names, after `after`; at most `limit`, and whether more follow.
pub async fn event_types_list(
    app: &App,
    caller: &Caller,
    after: String,
    limit: usize,
) -> Result<(Vec<EventTypeView>, bool), ApiError> {
    require(app, caller, Permission::EventTypesRead, &Resource::Tenant).await?;
    let rows = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    let mut types = app.store.event_type_list(caller.tenant_id, after.clone(), rows).await?;
    types.extend(events::core_types().filter(|t| t.name > after.as_str()).map(EventTypeView::from));
    types.sort_by(|a, b| a.event_type.cmp(&b.event_type));
    let more = types.len() > limit;
    types.truncate(limit);
    Ok((types, more))
}

/// One type.
pub async fn event_type_get(app: &App, caller: &Caller, name: String) -> Result<EventTypeView, ApiError> {
    require(app, caller, Permission::EventTypesRead, &Resource::Tenant).await?;
    match events::core_type(&name) {
        Some(core) => Ok(core.into()),
        None => Ok(app.store.event_type_get(caller.tenant_id, name).await?),
    }
}

/// Registers a custom type or its next version.
pub async fn event_type_register(
    app: &App,
    actor: Actor,
    name: String,
    version: u32,
    body: EventTypeRegister,
) -> Result<Changed<EventTypeView>, ApiError> {
    require(app, &actor.caller, Permission::EventTypesManage, &Resource::Tenant).await?;
    if !is_type_name(&name) {
        return Err(ApiError::invalid(format!(
            "{name:?} is not an event type: at least two lower-case segments of letters, digits and _, joined by dots, at most 100 characters"
        )));
    }
    if events::is_reserved(&name) {
        let message = format!("{name}: its first segment belongs to the core catalogue");
        return Err(ApiError::new(ErrorCode::ReservedEventType, message));
    }
    text::name("/entityType", &body.entity_type, 100)?;
    if let Some(description) = &body.description {
        text::line("/description", description, 1000)?;
    }
    if let Err(faults) = check_schema(&body.schema) {
        let message = faults.first().map_or_else(String::new, |f| format!("/schema{}: {}", f.pointer, f.message));
        return Err(ApiError::new(ErrorCode::InvalidSchema, message).detail("errors", fault_list(&faults)));
    }
    Ok(app.store.event_type_register(actor.change, name, version, body).await?)
}
