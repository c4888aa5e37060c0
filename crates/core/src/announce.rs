//! Which integrations hear of an event, as what, and what they are told. It must never send, store or look anything up.

use std::collections::{BTreeMap, HashSet};

use courant_api::announced::{
    AnnouncedApproval, AnnouncedDependent, AnnouncedDeployment, AnnouncedStack, AnnouncedTask, AnnouncedType,
};
use courant_api::event::Event;
use courant_api::notify::{EventDetail, JOURNAL_EVENT, Notification, Subject};
use courant_api::{DeliveryId, IntegrationId, TenantId, WorkspaceId, filter};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::deployment::proves_no_changes;
use crate::links;

mod report;

pub use report::{Told, journal_sample, report, sample};

/// Longest name of a subject, in characters.
const MAX_NAME: usize = 200;

/// The ids of a workspace and of everything below it.
pub type WorkspaceScope = HashSet<WorkspaceId>;

/// What an enabled integration wants to hear of.
#[derive(Clone, Debug)]
pub struct Route {
    /// The integration.
    pub integration_id: IntegrationId,
    /// What is announced to it.
    pub events: Vec<AnnouncedType>,
    /// Of those, only what is about a stack with all these labels.
    pub stack_labels: BTreeMap<String, String>,
    /// Of those, no end of a deployment whose plan is proof that nothing changes.
    pub changes_only: bool,
    /// Prefixes of event types; it hears of all these events.
    pub journal_types: Vec<String>,
    /// Only events of these workspaces; absent: of the whole tenant.
    pub workspace: Option<WorkspaceScope>,
    /// Where the journal ended when the integration was created: it hears only of what came after.
    pub created_seq: i64,
}

/// As what an integration hears of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// As one of the announced types.
    Announced(AnnouncedType),
    /// As an event of the journal.
    Journal,
}

/// What is announced of an event, read from its payload.
#[derive(Debug)]
enum Detail {
    Deployment(AnnouncedDeployment),
    Stack(AnnouncedStack),
    Approval(AnnouncedApproval),
    Task(AnnouncedTask),
    Dependent(AnnouncedDependent),
}

/// An event as routing sees it: read once, whoever wants it.
#[derive(Debug)]
pub struct News<'e> {
    event: &'e Event,
    announced: Option<(AnnouncedType, Detail)>,
    labels: BTreeMap<String, String>,
    url: Option<String>,
}

/// What the payloads of deployments and stacks say beside the detail.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OfStack {
    stack_labels: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    url: Option<String>,
}

impl<'e> News<'e> {
    /// The event. One whose payload is not what its type says is announced to nobody, and told as any other event is.
    pub fn of(event: &'e Event) -> Self {
        let announced = AnnouncedType::of_event(&event.event_type);
        let announced = announced.and_then(|announced| Some((announced, Detail::of(announced, event)?)));
        let of_stack = match &announced {
            Some((_, Detail::Deployment(_) | Detail::Dependent(_) | Detail::Stack(_))) => {
                read(event).unwrap_or_default()
            }
            _ => OfStack::default(),
        };
        let labels = if of_stack.stack_labels.is_empty() { of_stack.labels } else { of_stack.stack_labels };
        Self { event, announced, labels, url: of_stack.url }
    }

    /// As what an integration hears of it, if at all. Nobody hears of their own changes and failures, so that an
    /// integration cannot feed itself. What reaches it both ways is announced.
    pub fn reaches(&self, route: &Route) -> Option<As> {
        let event = self.event;
        if event.sequence <= route.created_seq
            || !in_scope(route.workspace.as_ref(), event.workspace_id)
            || is_about(event, route.integration_id)
        {
            return None;
        }
        match &self.announced {
            Some((announced, detail)) if self.is_wanted(route, *announced, detail) => Some(As::Announced(*announced)),
            _ if !route.journal_types.is_empty() && filter::matches(&route.journal_types, &event.event_type) => {
                Some(As::Journal)
            }
            _ => None,
        }
    }

    fn is_wanted(&self, route: &Route, announced: AnnouncedType, detail: &Detail) -> bool {
        let has_labels = route.stack_labels.iter().all(|(key, value)| self.labels.get(key) == Some(value));
        route.events.contains(&announced) && has_labels && !(route.changes_only && changes_nothing(announced, detail))
    }

    /// What those are told who hear of it. `id` is the delivery's and stays through every attempt; `base_url` is where
    /// people find this server.
    pub fn notification(&self, id: DeliveryId, heard_as: As, base_url: Option<&str>) -> Notification {
        let event = self.event;
        let mut notification = Notification {
            id,
            event_type: JOURNAL_EVENT.to_owned(),
            event_id: Some(event.id),
            sequence: Some(event.sequence),
            org_id: event.tenant_id,
            occurred_at: event.occurred_at,
            subject: subject(&event.entity_type, &event.entity_id, name_in(event.payload.text())),
            labels: BTreeMap::new(),
            url: None,
            deployment: None,
            stack: None,
            approval: None,
            task: None,
            dependent: None,
            findings: None,
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
        };
        if let (As::Announced(announced), Some((_, detail))) = (heard_as, &self.announced) {
            announced.as_str().clone_into(&mut notification.event_type);
            notification.labels.clone_from(&self.labels);
            notification.url =
                self.url.clone().or_else(|| page(base_url?, event.tenant_id, &event.entity_type, &event.entity_id));
            detail.tell(&mut notification);
        }
        notification
    }
}

impl Detail {
    fn of(announced: AnnouncedType, event: &Event) -> Option<Self> {
        use AnnouncedType as T;
        match announced {
            T::DeploymentSucceeded
            | T::DeploymentFailed
            | T::DeploymentCancelled
            | T::DeploymentAutoSkipped
            | T::DeploymentAwaitingConfirmation
            | T::PreviewSucceeded
            | T::PreviewFailed
            | T::PreviewCancelled
            | T::PreviewAutoSkipped
            | T::PreviewAwaitingConfirmation
            | T::RunCommandExecuted
            | T::PullRequestPromoted => read(event).map(Self::Deployment),
            T::DependentTriggerFailed => read(event).map(Self::Dependent),
            T::StackCreated | T::StackUpdated | T::StackDeleted => read(event).map(Self::Stack),
            T::ApprovalRequested
            | T::ApprovalApproved
            | T::ApprovalRejected
            | T::ApprovalCancelled
            | T::ApprovalExpired => read(event).map(Self::Approval),
            T::TaskVerificationFailed | T::TaskCompleted => read(event).map(Self::Task),
            T::ExploreFindingsChanged => None,
        }
    }

    /// Puts it into a notification, with the name that people know its subject by.
    fn tell(&self, notification: &mut Notification) {
        let name = match self {
            Self::Deployment(deployment) => Some(deployment.stack_name.clone()),
            Self::Stack(stack) => Some(stack.name.clone()),
            Self::Approval(approval) => words([approval.task_public_id.as_deref(), approval.task_title.as_deref()])
                .or_else(|| approval.artifact_name.clone()),
            Self::Task(task) => words([Some(&task.public_id), task.title.as_deref()]),
            Self::Dependent(dependent) => {
                "stack".clone_into(&mut notification.subject.kind);
                notification.subject.id = dependent.dependent_stack_id.to_string();
                Some(dependent.dependent_stack_name.clone())
            }
        };
        let Subject { kind, id, .. } = &notification.subject;
        notification.subject = subject(kind, id, name);
        match self {
            Self::Deployment(deployment) => notification.deployment = Some(deployment.clone()),
            Self::Stack(stack) => notification.stack = Some(stack.clone()),
            Self::Approval(approval) => notification.approval = Some(approval.clone()),
            Self::Task(task) => notification.task = Some(task.clone()),
            Self::Dependent(dependent) => notification.dependent = Some(dependent.clone()),
        }
    }
}

/// Whether the death of a delivery made from an event of this type is itself an event. Deaths of notifications about
/// notifications are not, else two broken integrations would tell of each other for ever.
pub fn may_journal_death(event_type_of_cause: &str) -> bool {
    !event_type_of_cause.starts_with("notification_")
}

/// Whether a plan is proof that what is announced changes nothing. A failure always matters.
fn changes_nothing(announced: AnnouncedType, detail: &Detail) -> bool {
    use AnnouncedType as T;
    let about_changes = matches!(
        announced,
        T::DeploymentSucceeded
            | T::DeploymentCancelled
            | T::DeploymentAutoSkipped
            | T::DeploymentAwaitingConfirmation
            | T::PreviewSucceeded
            | T::PreviewCancelled
            | T::PreviewAutoSkipped
            | T::PreviewAwaitingConfirmation
    );
    match detail {
        Detail::Deployment(deployment) => about_changes && proves_no_changes(deployment.plan_summary.as_ref()),
        Detail::Stack(_) | Detail::Approval(_) | Detail::Task(_) | Detail::Dependent(_) => false,
    }
}

/// The page of an entity that has one.
fn page(base_url: &str, org: TenantId, kind: &str, id: &str) -> Option<String> {
    let part = match kind {
        "deployment" => "deployments",
        "stack" => "stacks",
        "approval" => "approvals",
        _ => return None,
    };
    Some(links::of(base_url, org, part, id))
}

fn read<T: DeserializeOwned>(event: &Event) -> Option<T> {
    serde_json::from_str(event.payload.text()).ok()
}

fn subject(kind: &str, id: &str, name: Option<String>) -> Subject {
    let name = name.unwrap_or_else(|| id.to_owned()).chars().take(MAX_NAME).collect();
    Subject { kind: kind.to_owned(), id: id.to_owned(), name }
}

/// The parts that there are.
fn words(parts: [Option<&str>; 2]) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
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
