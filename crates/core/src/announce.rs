//! Which integrations hear of an event, and what they are told. It must never send, store or look anything up.

use std::collections::{BTreeMap, HashSet};

use courant_api::event::Event;
use courant_api::notify::{EventDetail, JOURNAL_EVENT, Notification, Subject};
use courant_api::{DeliveryId, IntegrationId, WorkspaceId, filter};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Longest name of a subject, in characters.
const MAX_NAME: usize = 200;

/// The ids of a workspace and of everything below it.
pub type WorkspaceScope = HashSet<WorkspaceId>;

/// What an enabled integration wants to hear of.
#[derive(Clone, Debug)]
pub struct Route {
    /// The integration.
    pub integration_id: IntegrationId,
    /// Prefixes of event types; none at all want nothing.
    pub journal_types: Vec<String>,
    /// Only events of these workspaces; absent: of the whole tenant.
    pub workspace: Option<WorkspaceScope>,
    /// Where the journal ended when the integration was created: it hears only of what came after.
    pub created_seq: i64,
}

/// Whether the integration hears of the event. Nobody hears of their own changes and failures, so that an
/// integration cannot feed itself.
pub fn matches(route: &Route, event: &Event) -> bool {
    event.sequence > route.created_seq
        && !route.journal_types.is_empty()
        && filter::matches(&route.journal_types, &event.event_type)
        && in_scope(route.workspace.as_ref(), event.workspace_id)
        && !is_about(event, route.integration_id)
}

/// What the integrations that hear of the event are told. `id` is the delivery's and stays through every attempt.
pub fn notification(id: DeliveryId, event: &Event) -> Notification {
    Notification {
        id,
        event_type: JOURNAL_EVENT.to_owned(),
        event_id: Some(event.id),
        sequence: Some(event.sequence),
        org_id: event.tenant_id,
        occurred_at: event.occurred_at,
        subject: Subject {
            kind: event.entity_type.clone(),
            id: event.entity_id.clone(),
            name: name_in(event.payload.text())
                .unwrap_or_else(|| event.entity_id.clone())
                .chars()
                .take(MAX_NAME)
                .collect(),
        },
        labels: BTreeMap::new(),
        url: None,
        event: Some(EventDetail {
            event_type: event.event_type.clone(),
            schema_version: event.schema_version,
            entity_type: event.entity_type.clone(),
            entity_id: event.entity_id.clone(),
            workspace_id: event.workspace_id,
            actor_id: event.actor_id,
            correlation_id: event.correlation_id.clone(),
            causation_id: event.causation_id.clone(),
            payload: event.payload.clone(),
        }),
    }
}

/// Whether the death of a delivery made from an event of this type is itself an event. Deaths of notifications about
/// notifications are not, else two broken integrations would tell of each other for ever.
pub fn may_journal_death(event_type_of_cause: &str) -> bool {
    !event_type_of_cause.starts_with("notification_")
}

fn in_scope(scope: Option<&WorkspaceScope>, workspace: Option<WorkspaceId>) -> bool {
    scope.is_none_or(|scope| workspace.is_some_and(|id| scope.contains(&id)))
}

fn is_about(event: &Event, integration: IntegrationId) -> bool {
    (event.entity_type == "notification_integration" && event.entity_id.parse() == Ok(integration))
        || (event.event_type.starts_with("notification_delivery.")
            && integration_in(event.payload.text()) == Some(integration))
}

fn integration_in(payload: &str) -> Option<IntegrationId> {
    #[derive(Deserialize)]
    struct OfIntegration {
        #[serde(rename = "integrationId")]
        integration_id: IntegrationId,
    }
    serde_json::from_str::<OfIntegration>(payload).ok().map(|of| of.integration_id)
}

/// The first field that people would call the entity's name.
fn name_in(payload: &str) -> Option<String> {
    /// Left unread, so that a field which is no text does not hide the next one.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Names<'a> {
        #[serde(borrow)]
        name: Option<&'a RawValue>,
        #[serde(borrow)]
        title: Option<&'a RawValue>,
        #[serde(borrow)]
        display_name: Option<&'a RawValue>,
        #[serde(borrow)]
        public_id: Option<&'a RawValue>,
    }
    let names: Names<'_> = serde_json::from_str(payload).ok()?;
    [names.name, names.title, names.display_name, names.public_id]
        .into_iter()
        .flatten()
        .filter_map(|raw| serde_json::from_str::<String>(raw.get()).ok())
        .find(|name| !name.trim().is_empty())
}

#[cfg(test)]
mod tests;
