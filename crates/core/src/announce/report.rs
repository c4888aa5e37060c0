//! The report of findings, and notifications that look as real ones do, for tests of an integration. Neither stands for an
//! event of the journal.

use std::collections::BTreeMap;

use courant_api::announced::{AnnouncedFindings, AnnouncedType};
use courant_api::deployments::FindingCounts;
use courant_api::event::{Event, Json};
use courant_api::events::{core_type, core_types};
use courant_api::notify::{EventDetail, Notification, Subject};
use courant_api::{DeliveryId, EventId, TenantId, Timestamp, filter};
use serde::Serialize;
use serde_json::{Value, json};

use super::{As, News};
use crate::links;

/// Who is told what, and when.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The delivery, or the test.
    pub id: DeliveryId,
    /// Whose.
    pub org_id: TenantId,
    /// When.
    pub at: Timestamp,
    /// Where people find this server.
    pub base_url: Option<&'a str>,
}

/// What the report of an org's findings says.
pub fn report(told: Told<'_>, findings: AnnouncedFindings) -> Notification {
    let announced = AnnouncedType::ExploreFindingsChanged;
    let payload = json_of(&findings);
    let org = told.org_id.to_string();
    Notification {
        id: told.id,
        event_type: announced.as_str().to_owned(),
        event_id: None,
        sequence: None,
        org_id: told.org_id,
        occurred_at: told.at,
        subject: Subject { kind: "org".to_owned(), id: org.clone(), name: "Dependency findings".to_owned() },
        labels: BTreeMap::new(),
        url: told.base_url.map(|base| links::findings(base, told.org_id)),
        deployment: None,
        stack: None,
        approval: None,
        task: None,
        dependent: None,
        findings: Some(findings),
        event: Some(EventDetail {
            event_type: announced.event_type().to_owned(),
            schema_version: 1,
            entity_type: "org".to_owned(),
            entity_id: org,
            workspace_id: None,
            actor_id: None,
            correlation_id: None,
            causation_id: None,
            payload,
        }),
    }
}

/// A notification of an announced type, made of the catalogue's example.
pub fn sample(told: Told<'_>, announced: AnnouncedType) -> Notification {
    let Some(kind) = core_type(announced.event_type()) else {
        let counts = |cycles| FindingCounts { cycles: Some(cycles), orphans: Some(2), duplicates: 0 };
        let findings = AnnouncedFindings { counts: counts(3), previous: Some(counts(1)), unchecked: Vec::new() };
        return report(told, findings);
    };
    let mut payload = kind.current().example();
    if let Some(fields) = payload.as_object_mut() {
        let about = plausible(announced);
        fields.extend(about.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
    }
    synthetic(told, announced.event_type(), As::Announced(announced), &payload)
}

/// A notification of a journal event that matches these prefixes, the first of the catalogue that does, or of a type that it
/// could have.
pub fn journal_sample(told: Told<'_>, prefixes: &[String]) -> Notification {
    let known = core_types().find(|kind| filter::matches(prefixes, kind.name));
    let prefix = prefixes.first().map_or("", String::as_str);
    let made_up = if prefix.ends_with('.') { format!("{prefix}tested") } else { prefix.to_owned() };
    let name = known.map_or(made_up.as_str(), |kind| kind.name);
    let payload = known.map_or_else(|| json!({ "name": "A test" }), |kind| kind.current().example());
    synthetic(told, name, As::Journal, &payload)
}

/// What the example of a deployment lacks to be one of this type.
fn plausible(announced: AnnouncedType) -> Value {
    use AnnouncedType as T;
    let status = match announced {
        T::DeploymentFailed | T::PreviewFailed => json!({ "status": "failed", "error": "exit code 1", "url": null }),
        T::DeploymentCancelled | T::PreviewCancelled => json!({ "status": "cancelled", "url": null }),
        T::DeploymentAutoSkipped | T::PreviewAutoSkipped => {
            json!({ "status": "skipped", "skippedReason": "superseded", "url": null })
        }
        T::DeploymentAwaitingConfirmation | T::PreviewAwaitingConfirmation => {
            json!({ "status": "awaiting_confirmation", "url": null })
        }
        T::RunCommandExecuted => json!({ "status": "running", "mode": "raw", "planSummary": null, "url": null }),
        T::PullRequestPromoted => {
            json!({ "origin": { "kind": "pull_request", "number": 12, "title": null, "branch": null, "url": null }, "url": null })
        }
        T::DeploymentSucceeded | T::PreviewSucceeded | T::DependentTriggerFailed => json!({ "url": null }),
        _ => json!({}),
    };
    let preview = matches!(
        announced,
        T::PreviewSucceeded
            | T::PreviewFailed
            | T::PreviewCancelled
            | T::PreviewAutoSkipped
            | T::PreviewAwaitingConfirmation
            | T::PullRequestPromoted
    );
    let mut about = status;
    if preview {
        about["mode"] = "plan_unlocked".into();
        about["readOnly"] = true.into();
    }
    about
}

/// The JSON of what has no map with keys other than text, and so can always be written.
#[expect(clippy::expect_used, reason = "see above")]
fn json_of<T: Serialize>(value: &T) -> Json {
    Json::of(value).expect("a value that is JSON")
}

fn synthetic(told: Told<'_>, name: &str, heard_as: As, payload: &Value) -> Notification {
    let event = Event {
        sequence: 0,
        id: EventId(told.id.uuid()),
        tenant_id: told.org_id,
        event_type: name.to_owned(),
        schema_version: core_type(name).map_or(1, |kind| kind.current().version),
        entity_type: core_type(name).map_or_else(|| "test".to_owned(), |kind| kind.entity_type.to_owned()),
        entity_id: told.id.to_string(),
        workspace_id: None,
        actor_id: None,
        session_id: None,
        correlation_id: None,
        causation_id: None,
        request_id: None,
        payload: json_of(payload),
        occurred_at: told.at,
        cursor: String::new(),
    };
    let notification = News::of(&event).notification(told.id, heard_as, told.base_url);
    Notification { event_id: None, sequence: None, ..notification }
}
