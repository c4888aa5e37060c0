//! Integrations. Their rights hang on their name, so each is judged on the row: one that the caller may not touch is
//! answered exactly as one that is not there.

use std::collections::BTreeMap;
use std::sync::Arc;

use courant_api::announced::AnnouncedType;
use courant_api::events::notify::{
    INTEGRATION_CREATED, INTEGRATION_DELETED, INTEGRATION_DISABLED, INTEGRATION_UPDATED, IntegrationChange,
    IntegrationDeleted,
};
use courant_api::notify::{IntegrationHealth, IntegrationView};
use courant_api::{IntegrationId, Permission, PrincipalId, Resource, TenantId, Timestamp, WorkspaceId};
use courant_core::place::Lies;
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use super::history;
use crate::access::{allows_names, guard, workspaces};
use crate::change::{Change, Changed, to_json};
use crate::db::{Row, Tx, params, statements};
use crate::{Caller, Error, Page, PageKey, Store, count};

/// A stored integration, its secrets sealed.
#[derive(Clone, Debug, PartialEq)]
pub struct Integration {
    /// Its id.
    pub id: IntegrationId,
    /// Its name.
    pub name: String,
    /// Its provider.
    pub provider: String,
    /// Whether it gets notifications.
    pub enabled: bool,
    /// Whether its deliveries wait.
    pub paused: bool,
    /// Why the server disabled it.
    pub disabled_reason: Option<String>,
    /// What is announced to it, in canonical order.
    pub events: Vec<AnnouncedType>,
    /// Of that, only what is about a stack with these labels.
    pub stack_label_selector: BTreeMap<String, String>,
    /// Of that, nothing whose plan proves that nothing changes.
    pub changes_only: bool,
    /// When it is sent a report of findings.
    pub findings_digest_schedule: Option<String>,
    /// Prefixes of the journal types it wants.
    pub journal_types: Vec<String>,
    /// Only this workspace and below.
    pub workspace_id: Option<WorkspaceId>,
    /// The provider's settings.
    pub provider_config: Map<String, Json>,
    /// The provider's secrets, sealed for (tenant, id).
    pub auth_sealed: Option<Vec<u8>>,
    /// Whose right to read events it stands on.
    pub saved_by: PrincipalId,
    /// Grows with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When a person last changed it: from then on it waits for its first report.
    pub edited_at: Timestamp,
}

/// An integration's secrets as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// Whose.
    pub tenant_id: TenantId,
    /// Of which integration.
    pub integration_id: IntegrationId,
    /// The envelope.
    pub sealed: Vec<u8>,
}

/// The new state of an integration.
#[derive(Debug)]
pub struct Edited {
    /// The state.
    pub integration: Integration,
    /// Where the editor must be able to read events, when what the integration tells of them was set.
    pub reads: Option<Resource>,
}

impl From<Integration> for Edited {
    fn from(integration: Integration) -> Self {
        Self { integration, reads: None }
    }
}

/// Makes the new state of an integration from its locked row.
pub type Edit = Arc<dyn Fn(&Integration) -> Result<Edited, Error> + Send + Sync>;

macro_rules! columns {
    () => {
        "i.id, i.name, i.provider, i.enabled, i.paused, i.disabled_reason, i.journal_types, i.workspace_id, \
         i.provider_config, i.auth_sealed, i.saved_by, i.version, i.created_at, i.updated_at, i.events, i.stack_labels, \
         i.changes_only, i.digest_schedule, i.edited_at"
    };
}

/// The health, after the columns of the integration.
macro_rules! health {
    () => {
        ", h.last_success_at, h.last_error_at, h.last_error, h.consecutive_failures \
         FROM integration i LEFT JOIN integration_health h ON h.integration_id = i.id"
    };
}
const HEALTH: usize = 19;

statements! { "integrations":
    INSERT = "INSERT INTO integration (id, tenant_id, name, provider, enabled, paused, disabled_reason, journal_types,
            workspace_id, provider_config, auth_sealed, saved_by, version, created_at, updated_at, created_event_id, events,
            stack_labels, changes_only, digest_schedule, edited_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $14)";
    GET = concat!("SELECT ", columns!(), " FROM integration i WHERE i.tenant_id = $1 AND i.id = $2");
    SHOW = concat!("SELECT ", columns!(), health!(), " WHERE i.tenant_id = $1 AND i.id = $2");
    LOCK = concat!("SELECT ", columns!(), " FROM integration i WHERE i.tenant_id = $1 AND i.id = $2 {for update}");
    LIST = concat!("SELECT ", columns!(), health!(), " WHERE i.tenant_id = $1 AND i.id < $2 ORDER BY i.id DESC LIMIT $3");
    BY_IDS = concat!("SELECT ", columns!(), " FROM integration i WHERE i.id IN {uuids $1}");
    UPDATE = "UPDATE integration SET name = $3, enabled = $4, paused = $5, disabled_reason = $6, journal_types = $7,
            workspace_id = $8, provider_config = $9, auth_sealed = $10, saved_by = $11, version = $12, updated_at = $13,
            events = $14, stack_labels = $15, changes_only = $16, digest_schedule = $17, edited_at = $18
        WHERE tenant_id = $1 AND id = $2";
    SEALED = "SELECT i.tenant_id, i.id, i.auth_sealed FROM integration i WHERE i.auth_sealed IS NOT NULL AND i.id > $1
        ORDER BY i.id LIMIT $2";
    RESEAL = "UPDATE integration SET auth_sealed = $4 WHERE tenant_id = $1 AND id = $2 AND auth_sealed = $3";
    DELETE_DELIVERIES = "DELETE FROM delivery WHERE tenant_id = $1 AND integration_id = $2";
    DELETE = "DELETE FROM integration WHERE tenant_id = $1 AND id = $2";
}

impl Integration {
    /// A new one that is on and wants nothing yet.
    pub fn new(id: IntegrationId, name: String, provider: String, saved_by: PrincipalId, now: Timestamp) -> Self {
        Self {
            id,
            name,
            provider,
            enabled: true,
            paused: false,
            disabled_reason: None,
            events: Vec::new(),
            stack_label_selector: BTreeMap::new(),
            changes_only: false,
            findings_digest_schedule: None,
            journal_types: Vec::new(),
            workspace_id: None,
            provider_config: Map::new(),
            auth_sealed: None,
            saved_by,
            version: 1,
            created_at: now,
            updated_at: now,
            edited_at: now,
        }
    }

    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let corrupt = |what: &str| Error::Corrupt(format!("integration.{what}"));
        Ok(Self {
            id: row.get(0)?,
            name: row.get(1)?,
            provider: row.get(2)?,
            enabled: row.get(3)?,
            paused: row.get(4)?,
            disabled_reason: row.get(5)?,
            journal_types: serde_json::from_str(&row.get::<String>(6)?).map_err(|_| corrupt("journal_types"))?,
            workspace_id: row.get(7)?,
            provider_config: serde_json::from_str(&row.get::<String>(8)?).map_err(|_| corrupt("provider_config"))?,
            auth_sealed: row.get(9)?,
            saved_by: row.get(10)?,
            version: row.get(11)?,
            created_at: row.get(12)?,
            updated_at: row.get(13)?,
            events: serde_json::from_str(&row.get::<String>(14)?).map_err(|_| corrupt("events"))?,
            stack_label_selector: serde_json::from_str(&row.get::<String>(15)?).map_err(|_| corrupt("stack_labels"))?,
            changes_only: row.get(16)?,
            findings_digest_schedule: row.get(17)?,
            edited_at: row.get(18)?,
        })
    }

    /// As people see it.
    pub fn view(&self, health: IntegrationHealth) -> IntegrationView {
        IntegrationView {
            id: self.id,
            name: self.name.clone(),
            provider: self.provider.clone(),
            enabled: self.enabled,
            paused: self.paused,
            disabled_reason: self.disabled_reason.clone(),
            events: self.events.clone(),
            journal_types: self.journal_types.clone(),
            workspace_id: self.workspace_id,
            stack_label_selector: self.stack_label_selector.clone(),
            changes_only: self.changes_only,
            findings_digest_schedule: self.findings_digest_schedule.clone(),
            provider_config: self.provider_config.clone(),
            has_auth_config: self.auth_sealed.is_some(),
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
            generated_secret: None,
            health,
        }
    }

    fn resource(&self) -> Resource {
        Resource::NotificationIntegration(self.name.clone())
    }

    /// Names of the fields in which another state differs.
    fn changes(&self, new: &Self) -> Vec<String> {
        let differences = [
            ("name", self.name != new.name),
            ("enabled", self.enabled != new.enabled),
            ("paused", self.paused != new.paused),
            ("events", self.events != new.events),
            ("stackLabelSelector", self.stack_label_selector != new.stack_label_selector),
            ("changesOnly", self.changes_only != new.changes_only),
            ("findingsDigestSchedule", self.findings_digest_schedule != new.findings_digest_schedule),
            ("journalTypes", self.journal_types != new.journal_types),
            ("workspaceId", self.workspace_id != new.workspace_id),
            ("providerConfig", self.provider_config != new.provider_config),
            ("authConfig", self.auth_sealed != new.auth_sealed),
        ];
        differences.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect()
    }
}

/// The locked row, if the actor holds `permission` on its name.
async fn lock(tx: &mut Tx, change: &Change, id: IntegrationId, permission: Permission) -> Result<Integration, Error> {
    const ABSENT: Error = Error::NotFound("notification integration");
    let row = tx.query_opt(&LOCK, params![change.tenant_id, id]).await?.ok_or(ABSENT)?;
    let integration = Integration::read(&row)?;
    if !change.rights.allows_on(permission, &integration.resource())? {
        return Err(ABSENT);
    }
    change.check_version(integration.version)?;
    Ok(integration)
}

pub(super) async fn save(tx: &mut Tx, tenant: TenantId, i: &Integration) -> Result<(), Error> {
    let row = params![
        tenant,
        i.id,
        &i.name,
        i.enabled,
        i.paused,
        i.disabled_reason.as_ref(),
        to_json(&i.journal_types)?,
        i.workspace_id,
        to_json(&i.provider_config)?,
        i.auth_sealed.as_deref(),
        i.saved_by,
        i.version,
        i.updated_at,
        to_json(&i.events)?,
        to_json(&i.stack_label_selector)?,
        i.changes_only,
        i.findings_digest_schedule.as_deref(),
        i.edited_at
    ];
    tx.execute(&UPDATE, row).await.map(|_| ()).map_err(|e| e.unique_means(NAME_TAKEN))
}

const NAME_TAKEN: &str = "an integration of this name exists";

impl Store {
    /// Creates an integration. It gets the events that follow its own creation.
    pub async fn integration_create(
        &self,
        change: Change,
        new: Integration,
        generated_secret: Option<String>,
    ) -> Result<Changed<IntegrationView>, Error> {
        self.db
            .change(change, (new, generated_secret), |tx, (change, (new, generated_secret))| {
                Box::pin(async move {
                    if let Some(workspace) = new.workspace_id {
                        workspaces::exists(tx, change.tenant_id, workspace).await?;
                    }
                    let payload = IntegrationChange {
                        name: new.name.clone(),
                        provider: new.provider.clone(),
                        changes: Vec::new(),
                    };
                    let created = change.event(&INTEGRATION_CREATED, new.id, Lies::NOWHERE, &payload)?;
                    let row = params![
                        new.id,
                        change.tenant_id,
                        &new.name,
                        &new.provider,
                        new.enabled,
                        new.paused,
                        new.disabled_reason.as_ref(),
                        to_json(&new.journal_types)?,
                        new.workspace_id,
                        to_json(&new.provider_config)?,
                        new.auth_sealed.as_deref(),
                        new.saved_by,
                        new.version,
                        new.created_at,
                        new.updated_at,
                        created.id,
                        to_json(&new.events)?,
                        to_json(&new.stack_label_selector)?,
                        new.changes_only,
                        new.findings_digest_schedule.as_deref()
                    ];
                    tx.execute(&INSERT, row).await.map_err(|e| e.unique_means(NAME_TAKEN))?;
                    tx.append(created);
                    Ok(IntegrationView {
                        generated_secret: generated_secret.clone(),
                        ..new.view(IntegrationHealth::default())
                    })
                })
            })
            .await
    }

    /// One integration that the caller may read.
    pub async fn integration_get(&self, caller: &Caller, id: IntegrationId) -> Result<IntegrationView, Error> {
        let tenant = caller.tenant_id;
        let found = self.db.read((tenant, id), |tx, (tenant, id)| {
            Box::pin(async move {
                let row = tx.query_opt(&SHOW, params![*tenant, *id]).await?;
                row.map(|row| Ok::<_, Error>((Integration::read(&row)?, history::health(&row, HEALTH)?))).transpose()
            })
        });
        match found.await? {
            Some((i, health)) if caller.rights.allows_on(Permission::NotificationIntegrationRead, &i.resource())? => {
                Ok(i.view(health))
            }
            _ => Err(Error::NotFound("notification integration")),
        }
    }

    /// One integration that the caller may update, with its sealed secrets: to try it out.
    pub async fn integration_to_try(&self, caller: &Caller, id: IntegrationId) -> Result<Integration, Error> {
        let tenant = caller.tenant_id;
        let found = self.db.read((tenant, id), |tx, (tenant, id)| {
            Box::pin(async move {
                tx.query_opt(&GET, params![*tenant, *id]).await?.map(|row| Integration::read(&row)).transpose()
            })
        });
        match found.await? {
            Some(i) if caller.rights.allows_on(Permission::NotificationIntegrationUpdate, &i.resource())? => Ok(i),
            _ => Err(Error::NotFound("notification integration")),
        }
    }

    /// Integrations that the caller may read, newest first.
    pub async fn integration_list(
        &self,
        caller: &Caller,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<IntegrationView>, Error> {
        self.db
            .read((caller.clone(), key, limit), |tx, (caller, key, limit)| {
                Box::pin(async move {
                    let mut items = Vec::new();
                    let mut before = key.unwrap_or(Uuid::max());
                    loop {
                        let rows = tx.query(&LIST, params![caller.tenant_id, before, *limit + 1]).await?;
                        let read = Permission::NotificationIntegrationRead;
                        let shown = allows_names(&caller.rights, read, rows.iter().map(|row| row.get(1)))?;
                        for (row, shown) in rows.iter().zip(shown) {
                            before = row.get(0)?;
                            if shown {
                                if count(&items) == *limit {
                                    let next = items.last().map(|i: &IntegrationView| i.id.uuid());
                                    return Ok(Page { items, next });
                                }
                                items.push(Integration::read(row)?.view(history::health(row, HEALTH)?));
                            }
                        }
                        if count(&rows) <= *limit {
                            return Ok(Page { items, next: None });
                        }
                    }
                })
            })
            .await
    }

    /// Changes an integration by `edit`; without a difference nothing happens. A new name must be one that the actor
    /// may update, too.
    pub async fn integration_update(
        &self,
        change: Change,
        id: IntegrationId,
        edit: Edit,
    ) -> Result<Changed<IntegrationView>, Error> {
        self.db
            .change(change, (id, edit), |tx, (change, (id, edit))| {
                Box::pin(async move {
                    let old = lock(tx, change, *id, Permission::NotificationIntegrationUpdate).await?;
                    let Edited { integration: mut new, reads } = edit(&old)?;
                    if let Some(place) = reads {
                        guard(tx, change, Permission::EventsRead, &place).await?;
                    }
                    let changes = old.changes(&new);
                    if changes.is_empty() {
                        return Ok(old.view(history::health_of(tx, *id).await?));
                    }
                    guard(tx, change, Permission::NotificationIntegrationUpdate, &new.resource()).await?;
                    if let Some(workspace) = new.workspace_id {
                        workspaces::exists(tx, change.tenant_id, workspace).await?;
                    }
                    new.version += 1;
                    new.updated_at = change.now;
                    new.edited_at = change.now;
                    save(tx, change.tenant_id, &new).await?;
                    let kind = if old.enabled && !new.enabled { &INTEGRATION_DISABLED } else { &INTEGRATION_UPDATED };
                    let payload = IntegrationChange { name: new.name.clone(), provider: new.provider.clone(), changes };
                    tx.append(change.event(kind, *id, Lies::NOWHERE, &payload)?);
                    Ok(new.view(history::health_of(tx, *id).await?))
                })
            })
            .await
    }

    /// The sealed secrets of all tenants' integrations after this one, at most `limit`.
    pub async fn secrets_sealed(&self, after: Option<IntegrationId>, limit: i64) -> Result<Vec<SealedSecret>, Error> {
        self.db
            .read((after, limit), |tx, (after, limit)| {
                Box::pin(async move {
                    let after = after.map_or(Uuid::nil(), IntegrationId::uuid);
                    let rows = tx.query(&SEALED, params![after, *limit]).await?;
                    let read = |row: &Row| {
                        Ok(SealedSecret { tenant_id: row.get(0)?, integration_id: row.get(1)?, sealed: row.get(2)? })
                    };
                    rows.iter().map(read).collect()
                })
            })
            .await
    }

    /// Puts the same secret, sealed anew, in the place of an old envelope; whether that was still there. It changes nothing
    /// that anybody sees.
    pub async fn secret_reseal(&self, old: SealedSecret, sealed: Vec<u8>) -> Result<bool, Error> {
        let done = self.db.write((old, sealed), |tx, (old, sealed)| {
            Box::pin(async move {
                let row = params![old.tenant_id, old.integration_id, old.sealed.as_slice(), sealed.as_slice()];
                Ok(tx.execute(&RESEAL, row).await? == 1)
            })
        });
        Ok(done.await?.value)
    }

    /// Deletes an integration with its unsent deliveries.
    pub async fn integration_delete(&self, change: Change, id: IntegrationId) -> Result<Changed<()>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| {
                Box::pin(async move {
                    let old = lock(tx, change, *id, Permission::NotificationIntegrationDelete).await?;
                    let deleted = tx.execute(&DELETE_DELIVERIES, params![change.tenant_id, *id]).await?;
                    history::forget(tx, *id).await?;
                    tx.execute(&DELETE, params![change.tenant_id, *id]).await?;
                    let payload = IntegrationDeleted {
                        name: old.name,
                        provider: old.provider,
                        changes: Vec::new(),
                        deleted_deliveries: i64::try_from(deleted).unwrap_or(i64::MAX),
                    };
                    tx.append(change.event(&INTEGRATION_DELETED, *id, Lies::NOWHERE, &payload)?);
                    Ok(())
                })
            })
            .await
    }
}
