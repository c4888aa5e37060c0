//! A journal event as a CloudEvent 1.0 in structured JSON (CloudEvents specification 1.0.2, JSON format).

use serde::Serialize;

use crate::event::Json;
use crate::notify::{EventDetail, Notification};
use crate::{Event, Timestamp};

/// A CloudEvent; extensions without a value are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CloudEvent {
    specversion: &'static str,
    id: String,
    source: String,
    #[serde(rename = "type")]
    event_type: String,
    subject: String,
    time: Timestamp,
    datacontenttype: &'static str,
    tenantid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspaceid: Option<String>,
    entitytype: String,
    entityid: String,
    schemaversion: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    actorid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlationid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causationid: Option<String>,
    data: Json,
}

impl CloudEvent {
    /// The CloudEvent of a journal event; `source` defaults to `/control-plane/tenants/<tenantId>`.
    pub fn from_event(event: &Event, source: Option<&str>) -> Self {
        let detail = EventDetail {
            event_type: event.event_type.clone(),
            schema_version: event.schema_version,
            entity_type: event.entity_type.clone(),
            entity_id: event.entity_id.clone(),
            workspace_id: event.workspace_id,
            actor_id: event.actor_id,
            correlation_id: event.correlation_id.clone(),
            causation_id: event.causation_id.clone(),
            payload: event.payload.clone(),
        };
        Self::new(event.id.to_string(), event.tenant_id, event.occurred_at, &detail, source)
    }

    /// The CloudEvent of the journal event inside a notification; none when it carries no event. A report
    /// or a test stands for no event of the journal, and has the notification's id.
    pub fn from_notification(notification: &Notification) -> Option<Self> {
        let detail = notification.event.as_ref()?;
        let id = notification.event_id.map_or_else(|| notification.id.to_string(), |id| id.to_string());
        Some(Self::new(id, notification.org_id, notification.occurred_at, detail, None))
    }

    fn new(id: String, tenant: crate::TenantId, time: Timestamp, event: &EventDetail, source: Option<&str>) -> Self {
        Self {
            specversion: "1.0",
            id,
            source: source.map_or_else(|| format!("/control-plane/tenants/{tenant}"), str::to_owned),
            event_type: event.event_type.clone(),
            subject: format!("{}/{}", event.entity_type, event.entity_id),
            time,
            datacontenttype: "application/json",
            tenantid: tenant.to_string(),
            workspaceid: event.workspace_id.map(|id| id.to_string()),
            entitytype: event.entity_type.clone(),
            entityid: event.entity_id.clone(),
            schemaversion: event.schema_version,
            actorid: event.actor_id.map(|id| id.to_string()),
            correlationid: event.correlation_id.clone(),
            causationid: event.causation_id.clone(),
            data: event.payload.clone(),
        }
    }
}
