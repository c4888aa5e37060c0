//! The journal and the catalogue of event types.
//!
//! Appending must never be able to append twice: an event without an id gets one before it is first sent.

use std::borrow::Cow;

use courant_api::catalog::{EventTypeRegister, EventTypeView};
use courant_api::event::{EventPage, EventsAppended};
use courant_api::filter::is_type_name;
use courant_api::{Event, EventAppend, EventId, Page, WorkspaceId};
use reqwest::Method;
use serde::Serialize;

use crate::error::ClientError;
use crate::http::{Call, Client, PageQuery, Query, new_id};

/// Which events, and which page of them. At most one of `cursor` and `tail`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsQuery {
    /// Prefixes of event types; none: every type.
    pub types: Vec<String>,
    /// Only events of this workspace and what lies below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Only events about this kind of entity.
    pub entity_type: Option<String>,
    /// Only events about this entity; needs `entity_type`.
    pub entity_id: Option<String>,
    /// Read after this position; absent: from the first event.
    pub cursor: Option<String>,
    /// The newest so many events that match, at most 1000; `limit` does not apply then.
    pub tail: Option<u32>,
    /// Most events in the page: 1 to 1000; 50 when absent.
    pub limit: Option<u32>,
    /// Seconds to hold an empty page open until an event comes: 0 to 30.
    pub wait: Option<u32>,
}

impl EventsQuery {
    fn add_to(&self, query: &mut Query) {
        for prefix in &self.types {
            query.add("types", prefix);
        }
        query.add_some("workspaceId", self.workspace_id.as_ref());
        query.add_some("entityType", self.entity_type.as_ref());
        query.add_some("entityId", self.entity_id.as_ref());
        query.add_some("cursor", self.cursor.as_ref());
        query.add_some("tail", self.tail.as_ref());
        query.add_some("limit", self.limit.as_ref());
        query.add_some("wait", self.wait.as_ref());
    }
}

/// The body of an append, over events that are borrowed where they are complete.
#[derive(Serialize)]
struct Append<'a> {
    events: Vec<Cow<'a, EventAppend>>,
}

impl Client {
    /// A page of the journal.
    pub async fn events(&self, query: &EventsQuery) -> Result<EventPage, ClientError> {
        let mut call = Call::get("/events");
        query.add_to(&mut call.query);
        self.send(call).await
    }

    /// One event.
    pub async fn event(&self, id: EventId) -> Result<Event, ClientError> {
        self.send(Call::get(format!("/events/{id}"))).await
    }

    /// Appends events, all or none: 1 to 500. `until_readable` waits until readers see them, and gives their cursors.
    ///
    /// An event without an id gets one here, so that this call can repeat itself. To make a later call with the same
    /// events safe too, give them ids.
    pub async fn append(&self, events: &[EventAppend], until_readable: bool) -> Result<EventsAppended, ClientError> {
        let events = events.iter().map(|event| match event.id {
            Some(_) => Cow::Borrowed(event),
            None => Cow::Owned(EventAppend { id: Some(new_id().into()), ..event.clone() }),
        });
        let mut call = Call::new(Method::POST, "/events").repeatable().body(&Append { events: events.collect() })?;
        if until_readable {
            call.query.add("until", "readable");
        }
        self.send(call).await
    }

    /// The catalogue.
    pub async fn event_types(&self, page: &PageQuery) -> Result<Page<EventTypeView>, ClientError> {
        let mut call = Call::get("/event-types");
        page.add_to(&mut call.query);
        self.send(call).await
    }

    /// One event type with every version.
    pub async fn event_type(&self, name: &str) -> Result<EventTypeView, ClientError> {
        self.send(Call::get(format!("/event-types/{}", type_name(name)?))).await
    }

    /// Registers a custom event type (version 1) or its next version.
    pub async fn register_event_type(
        &self,
        name: &str,
        version: u32,
        body: &EventTypeRegister,
    ) -> Result<EventTypeView, ClientError> {
        let path = format!("/event-types/{}/versions/{version}", type_name(name)?);
        self.send(Call::new(Method::PUT, path).body(body)?).await
    }
}

/// A name that can stand in a path: one that no event type can have is not asked for.
fn type_name(name: &str) -> Result<&str, ClientError> {
    is_type_name(name)
        .then_some(name)
        .ok_or_else(|| ClientError::Invalid(format!("{name:?} cannot be the name of an event type")))
}
