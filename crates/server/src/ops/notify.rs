//! Integrations and deliveries.

use std::sync::Arc;

use courant_api::announced::AnnouncedType;
use courant_api::filter::parse_prefixes;
use courant_api::notify::{
    AttemptView, DeliveriesRetried, DeliveriesRetry, DeliveryView, IntegrationCreate, IntegrationPatch,
    IntegrationTested, IntegrationView, JOURNAL_EVENT, MAX_RETRIED, RetryOutcome, RetryResult, TargetAnswer,
    TestOutcome, is_integration_name,
};
use courant_api::{DeliveryId, IntegrationId, Permission, Resource, TenantId, WorkspaceId};
use courant_core::announce::{Told, journal_sample, sample};
use courant_core::delivery::{Failure, Verdict};
use courant_core::redact::redact_and_cut;
use courant_cronspec::Schedule;
use courant_providers::{ConfigError, Provider, provider};
use courant_store::{AttemptQuery, Caller, Changed, DeliveryQuery, Edit, Edited, Error, Integration, Page, PageKey};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::deployments::labels;
use super::{Actor, decided, found_any, place, require, require_any, text};
use crate::app::App;
use crate::attempt::{Tried, attempt};
use crate::clock;
use crate::http::ApiError;
use crate::ids::new_id;
use crate::secrets::{KeyRing, SealContext, random};

/// Longest part of a target's answer that a test shows, in characters.
const MAX_ANSWER_CHARS: usize = 4096;
/// Most types that a retry of many names.
const MAX_EVENT_TYPES: usize = 50;

/// What a delivery or a test announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Tested {
    /// An announced type.
    Announced(AnnouncedType),
    /// Any event of the journal.
    Journal,
}

impl Tested {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Announced(announced) => announced.as_str(),
            Self::Journal => JOURNAL_EVENT,
        }
    }
}

impl TryFrom<String> for Tested {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == JOURNAL_EVENT {
            return Ok(Self::Journal);
        }
        text.parse().map(Self::Announced).map_err(|()| "is neither an announced type nor journal_event")
    }
}

impl JsonSchema for Tested {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DeliveryEventType".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let all = AnnouncedType::ALL.iter().map(|announced| announced.as_str()).chain([JOURNAL_EVENT]);
        schemars::json_schema!({ "type": "string", "enum": all.collect::<Vec<_>>() })
    }
}

/// A caller of an org route belongs to that org; another org looks like a missing one.
pub fn of_org(caller: &Caller, org: TenantId) -> Result<(), ApiError> {
    if caller.tenant_id == org { Ok(()) } else { Err(ApiError::not_found("org")) }
}

fn named(name: &str) -> Resource {
    Resource::NotificationIntegration(name.to_owned())
}

fn invalid(field: &str, message: impl Into<String>) -> Error {
    Error::Invalid { field: field.to_owned(), message: message.into() }
}

fn config_error(root: &str, error: &ConfigError) -> Error {
    invalid(&format!("{root}{}", error.pointer), error.message.clone())
}

fn check_name(name: &str) -> Result<(), Error> {
    if is_integration_name(name) {
        return Ok(());
    }
    Err(invalid("/name", "must have 1 to 100 letters, digits, '.', '_', '-' and inner spaces"))
}

fn check_prefixes(prefixes: &[String]) -> Result<(), Error> {
    if prefixes.iter().any(|p| p.contains(',')) {
        return Err(invalid("/journalTypes", "a prefix holds no comma"));
    }
    parse_prefixes(prefixes).map(|_| ()).map_err(|e| invalid("/journalTypes", e.to_string()))
}

fn known_provider(name: &str) -> Result<&'static dyn Provider, Error> {
    provider(name).ok_or_else(|| {
        let known: Vec<_> = courant_providers::all().iter().map(|p| p.provider_type()).collect();
        invalid("/provider", format!("is none of {}", known.join(", ")))
    })
}

fn check_schedule(schedule: &str) -> Result<(), Error> {
    let parsed = schedule.parse::<Schedule>();
    parsed.map(drop).map_err(|fault| invalid("/findingsDigestSchedule", fault.to_string()))
}

/// Each once, in canonical order.
fn canonical(events: &[AnnouncedType]) -> Vec<AnnouncedType> {
    AnnouncedType::ALL.iter().copied().filter(|announced| events.contains(announced)).collect()
}

/// What an integration tells about the journal, its saver must be able to read.
fn reading(prefixes: &[String], workspace: Option<WorkspaceId>) -> Option<Resource> {
    (!prefixes.is_empty()).then(|| place(workspace))
}

fn seal(
    ring: &KeyRing,
    org: TenantId,
    integration: IntegrationId,
    auth: &Map<String, Value>,
) -> Result<Option<Vec<u8>>, Error> {
    if auth.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_vec(auth).map_err(|e| Error::Corrupt(e.to_string()))?;
    Ok(Some(ring.seal(&SealContext { org, integration }, &text)))
}

/// The secrets of an integration; an empty map when it has none.
pub fn open(ring: &KeyRing, org: TenantId, integration: &Integration) -> Result<Map<String, Value>, Error> {
    let Some(sealed) = &integration.auth_sealed else { return Ok(Map::new()) };
    let context = SealContext { org, integration: integration.id };
    let opened = ring.open(&context, sealed).map_err(|e| Error::Corrupt(e.to_string()))?;
    serde_json::from_slice(&opened).map_err(|_| Error::Corrupt("stored secret is not JSON".into()))
}

/// Creates an integration.
pub async fn integration_create(
    app: &App,
    actor: Actor,
    body: IntegrationCreate,
) -> Result<Changed<IntegrationView>, ApiError> {
    check_name(&body.name)?;
    let provider = known_provider(&body.provider)?;
    check_prefixes(&body.journal_types)?;
    labels("/stackLabelSelector", &body.stack_label_selector)?;
    body.findings_digest_schedule.as_deref().map_or(Ok(()), check_schedule)?;
    provider.validate_config(&body.provider_config).map_err(|e| config_error("/providerConfig", &e))?;
    let (auth, generated) = provider.complete_auth_config(body.auth_config, random());
    provider.validate_auth_config(&auth).map_err(|e| config_error("/authConfig", &e))?;
    require(app, &actor.caller, Permission::NotificationIntegrationCreate, &named(&body.name)).await?;
    if let Some(place) = reading(&body.journal_types, body.workspace_id) {
        require(app, &actor.caller, Permission::EventsRead, &place).await?;
    }
    let (id, org, now) = (IntegrationId(new_id()), actor.caller.tenant_id, actor.change.now);
    let integration = Integration {
        enabled: body.enabled.unwrap_or(true),
        paused: body.paused.unwrap_or(false),
        events: canonical(&body.events),
        stack_label_selector: body.stack_label_selector,
        changes_only: body.changes_only.unwrap_or(false),
        findings_digest_schedule: body.findings_digest_schedule,
        journal_types: body.journal_types,
        workspace_id: body.workspace_id,
        provider_config: body.provider_config,
        auth_sealed: seal(&app.ring, org, id, &auth)?,
        ..Integration::new(id, body.name, body.provider, actor.caller.principal_id, now)
    };
    Ok(app.store.integration_create(actor.change, integration, generated).await?)
}

/// One integration.
pub async fn integration_get(app: &App, caller: &Caller, id: IntegrationId) -> Result<IntegrationView, ApiError> {
    decided(app, || app.store.integration_get(caller, id)).await
}

/// The integrations that the caller may read.
pub async fn integration_list(
    app: &App,
    caller: &Caller,
    key: PageKey,
    limit: i64,
) -> Result<Page<IntegrationView>, ApiError> {
    require_any(caller, Permission::NotificationIntegrationRead)?;
    let page = decided(app, || app.store.integration_list(caller, key, limit)).await?;
    found_any(app, caller, Permission::NotificationIntegrationRead, page.items.is_empty() && key.is_none()).await?;
    Ok(page)
}

/// Changes an integration.
pub async fn integration_update(
    app: &App,
    actor: Actor,
    id: IntegrationId,
    patch: IntegrationPatch,
) -> Result<Changed<IntegrationView>, ApiError> {
    // What can be judged without the row is, before anybody looks at it.
    patch.name.as_deref().map_or(Ok(()), check_name)?;
    patch.journal_types.as_deref().map_or(Ok(()), check_prefixes)?;
    patch.stack_label_selector.as_ref().map_or(Ok(()), |all| labels("/stackLabelSelector", all))?;
    patch.findings_digest_schedule.iter().flatten().try_for_each(|schedule| check_schedule(schedule))?;
    let ring = Arc::clone(&app.ring);
    let caller = actor.caller.clone();
    let edit: Edit = Arc::new(move |old| edited(&ring, &caller, old, &patch));
    let changed = decided(app, || app.store.integration_update(actor.change.clone(), id, Arc::clone(&edit))).await?;
    // It may have been resumed.
    app.wake_outbox();
    Ok(changed)
}

fn edited(ring: &KeyRing, caller: &Caller, old: &Integration, patch: &IntegrationPatch) -> Result<Edited, Error> {
    let provider = known_provider(&old.provider)?;
    let (mut new, mut reads) = (old.clone(), None);
    if let Some(name) = &patch.name {
        new.name.clone_from(name);
    }
    if let Some(enabled) = patch.enabled {
        new.enabled = enabled;
        new.disabled_reason = None;
    }
    new.paused = patch.paused.unwrap_or(old.paused);
    if let Some(events) = &patch.events {
        new.events = canonical(events);
    }
    if let Some(labels) = &patch.stack_label_selector {
        new.stack_label_selector.clone_from(labels);
    }
    new.changes_only = patch.changes_only.unwrap_or(old.changes_only);
    if let Some(schedule) = &patch.findings_digest_schedule {
        new.findings_digest_schedule.clone_from(schedule);
    }
    if let Some(config) = &patch.provider_config {
        provider.validate_config(config).map_err(|e| config_error("/providerConfig", &e))?;
        new.provider_config.clone_from(config);
    }
    if let Some(incoming) = &patch.auth_config {
        let auth = provider.merge_auth_config(&open(ring, caller.tenant_id, old)?, incoming);
        provider.validate_auth_config(&auth).map_err(|e| config_error("/authConfig", &e))?;
        new.auth_sealed = seal(ring, caller.tenant_id, old.id, &auth)?;
    }
    if patch.journal_types.is_some() || patch.workspace_id.is_some() {
        if let Some(prefixes) = &patch.journal_types {
            new.journal_types.clone_from(prefixes);
        }
        new.workspace_id = patch.workspace_id.unwrap_or(old.workspace_id);
        reads = reading(&new.journal_types, new.workspace_id);
        new.saved_by = caller.principal_id;
    }
    Ok(Edited { integration: new, reads })
}

/// Deletes an integration.
pub async fn integration_delete(app: &App, actor: Actor, id: IntegrationId) -> Result<Changed<()>, ApiError> {
    decided(app, || app.store.integration_delete(actor.change.clone(), id)).await
}

/// Tells an integration something made up, now and past the outbox, with its stored secret.
pub async fn integration_test(
    app: &App,
    caller: &Caller,
    id: IntegrationId,
    event_type: Option<Tested>,
) -> Result<IntegrationTested, ApiError> {
    let integration = decided(app, || app.store.integration_to_try(caller, id)).await?;
    let told =
        Told { id: new_id().into(), org_id: caller.tenant_id, at: clock::now(), base_url: app.base_url.as_deref() };
    // What is verified is what it will receive.
    let tested = event_type.or_else(|| integration.events.first().copied().map(Tested::Announced));
    let notification = match tested {
        Some(Tested::Announced(announced)) => sample(told, announced),
        Some(Tested::Journal) | None => journal_sample(told, &integration.journal_types),
    };
    let Tried { verdict, answer } = attempt(app, caller.tenant_id, &integration, &notification).await;
    let error = match verdict {
        Verdict::Sent => None,
        Verdict::Retry { error, .. } | Verdict::Permanent { error } | Verdict::DisableIntegration { error } => {
            Some(error.text)
        }
    };
    Ok(IntegrationTested {
        outcome: if error.is_none() { TestOutcome::Sent } else { TestOutcome::Failed },
        error,
        event_type: notification.event_type,
        answer: answer.map(|answer| TargetAnswer {
            status: answer.status(),
            body: redact_and_cut(&answer.body(), MAX_ANSWER_CHARS),
        }),
    })
}

/// What was tried lately at the integrations that the caller may read.
pub async fn attempt_list(
    app: &App,
    caller: &Caller,
    query: AttemptQuery,
    key: PageKey,
    limit: i64,
) -> Result<Page<AttemptView>, ApiError> {
    require_any(caller, Permission::NotificationIntegrationRead)?;
    if let Some(id) = query.integration_id {
        integration_get(app, caller, id).await?;
    }
    let page = decided(app, || app.store.attempt_list(caller, query, key, limit)).await?;
    let nothing = page.items.is_empty() && key.is_none();
    let about_one = query.integration_id.is_some();
    found_any(app, caller, Permission::NotificationIntegrationRead, nothing && !about_one).await?;
    // Of what is gone there may be attempts; of what has none it must be there.
    if let Some(id) = query.delivery_id.filter(|_| nothing) {
        decided(app, || app.store.delivery_seen(caller, id)).await?;
    }
    if let Some(id) = query.event_id.filter(|_| nothing) {
        app.store.event_get(caller.tenant_id, id).await?;
    }
    Ok(page)
}

/// The dead-letter view: stored deliveries of the integrations that the caller may read.
pub async fn delivery_list(
    app: &App,
    caller: &Caller,
    query: DeliveryQuery,
    key: PageKey,
    limit: i64,
) -> Result<Page<DeliveryView>, ApiError> {
    require_any(caller, Permission::NotificationIntegrationRead)?;
    if let Some(id) = query.integration_id {
        integration_get(app, caller, id).await?;
    }
    let page = decided(app, || app.store.delivery_list(caller, query.clone(), key, limit)).await?;
    found_any(app, caller, Permission::NotificationIntegrationRead, page.items.is_empty() && key.is_none()).await?;
    Ok(page)
}

/// Queues a dead delivery again.
pub async fn delivery_retry(app: &App, actor: Actor, id: DeliveryId) -> Result<Changed<RetryResult>, ApiError> {
    require_any(&actor.caller, Permission::NotificationIntegrationUpdate)?;
    let changed = decided(app, || app.store.delivery_requeue(actor.change.clone(), id)).await?;
    if changed == Changed::Now(RetryResult { outcome: RetryOutcome::Requeued }) {
        app.wake_outbox();
    }
    Ok(changed)
}

/// Queues all dead deliveries again that match.
pub async fn deliveries_retry(
    app: &App,
    actor: Actor,
    wish: DeliveriesRetry,
) -> Result<Changed<DeliveriesRetried>, ApiError> {
    if wish.limit.is_some_and(|limit| !(1..=MAX_RETRIED).contains(&limit)) {
        return Err(ApiError::invalid_field("/limit", &format!("must lie between 1 and {MAX_RETRIED}")));
    }
    if wish.event_types.len() > MAX_EVENT_TYPES {
        return Err(ApiError::invalid_field("/eventTypes", &format!("must have at most {MAX_EVENT_TYPES} types")));
    }
    for (at, name) in wish.event_types.iter().enumerate() {
        text::name(&format!("/eventTypes/{at}"), name, 100)?;
    }
    if let Some(error) = &wish.last_error {
        text::prose("/lastError", error, Failure::MAX_TEXT)?;
    }
    let update = Permission::NotificationIntegrationUpdate;
    require_any(&actor.caller, update)?;
    if let Some(id) = wish.integration_id {
        decided(app, || app.store.integration_to_try(&actor.caller, id)).await?;
    }
    let changed = decided(app, || app.store.deliveries_requeue(actor.change.clone(), wish.clone())).await?;
    let nothing = matches!(&changed, Changed::Now(retried) if retried.matched == 0);
    found_any(app, &actor.caller, update, nothing && wish.integration_id.is_none()).await?;
    if matches!(&changed, Changed::Now(retried) if retried.requeued > 0) {
        app.wake_outbox();
    }
    Ok(changed)
}
