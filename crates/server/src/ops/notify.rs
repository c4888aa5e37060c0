//! Integrations and deliveries.

use std::sync::Arc;

use courant_api::announced::AnnouncedType;
use courant_api::filter::parse_prefixes;
use courant_api::notify::{
    DeliveryStatus, DeliveryView, IntegrationCreate, IntegrationPatch, IntegrationView, RetryOutcome, RetryResult,
    is_integration_name,
};
use courant_api::{DeliveryId, IntegrationId, Permission, Resource, TenantId, WorkspaceId};
use courant_cronspec::Schedule;
use courant_providers::{ConfigError, Provider, provider};
use courant_store::{Caller, Changed, Edit, Edited, Error, Integration, Page, PageKey};
use serde_json::{Map, Value};

use super::deployments::labels;
use super::{Actor, decided, found_any, place, require, require_any};
use crate::app::App;
use crate::http::ApiError;
use crate::ids::new_id;
use crate::secrets::{KeyRing, SealContext, random};

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

/// The dead-letter view: stored deliveries of the integrations that the caller may read.
pub async fn delivery_list(
    app: &App,
    caller: &Caller,
    statuses: Vec<DeliveryStatus>,
    key: PageKey,
    limit: i64,
) -> Result<Page<DeliveryView>, ApiError> {
    require_any(caller, Permission::NotificationIntegrationRead)?;
    let page = decided(app, || app.store.delivery_list(caller, statuses.clone(), key, limit)).await?;
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
