//! Custom event types and their versions.

use courant_api::TenantId;
use courant_api::catalog::{EventTypeRegister, EventTypeVersion, EventTypeView};
use courant_api::events::catalogue::{EVENT_TYPE_REGISTERED, EventTypeRegistered};
use courant_core::catalogue::incompatibilities;
use courant_core::place::Lies;
use serde_json::Value as Json;

use crate::access::tenants;
use crate::change::{Change, Changed, to_json};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Store};

statements! { "catalogue":
    GET = "SELECT name, entity_type, description, current_version FROM event_type WHERE tenant_id = $1 AND name = $2";
    LIST = "SELECT name, entity_type, description, current_version FROM event_type
        WHERE tenant_id = $1 AND name > $2 ORDER BY name LIMIT $3";
    VERSIONS = "SELECT name, version, schema_text FROM event_type_version
        WHERE tenant_id = $1 AND name IN {texts $2} ORDER BY name, version";
    CURRENT = "SELECT t.name, t.entity_type, t.current_version, v.schema_text FROM event_type t
        JOIN event_type_version v ON v.tenant_id = t.tenant_id AND v.name = t.name AND v.version = t.current_version
        WHERE t.tenant_id = $1 AND t.name IN {texts $2}";
    INSERT = "INSERT INTO event_type (tenant_id, name, entity_type, description, current_version, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    ADVANCE = "UPDATE event_type SET current_version = $3, description = $4 WHERE tenant_id = $1 AND name = $2";
    INSERT_VERSION = "INSERT INTO event_type_version (tenant_id, name, version, schema_text, created_at)
        VALUES ($1, $2, $3, $4, $5)";
}

/// A custom type as producers use it now.
#[derive(Clone, Debug)]
pub struct CurrentType {
    /// The type.
    pub name: String,
    /// The entity that its events are about.
    pub entity_type: String,
    /// The version that is appended.
    pub version: u32,
    /// JSON Schema of that version.
    pub schema: Json,
}

fn version(row: &Row, i: usize) -> Result<u32, Error> {
    row.get::<i64>(i)?.try_into().map_err(|_| Error::Corrupt("event_type version".into()))
}

fn schema(row: &Row, i: usize) -> Result<Json, Error> {
    serde_json::from_str(&row.get::<String>(i)?).map_err(|_| Error::Corrupt("event_type_version.schema_text".into()))
}

fn view(row: &Row) -> Result<EventTypeView, Error> {
    Ok(EventTypeView {
        event_type: row.get(0)?,
        entity_type: row.get(1)?,
        description: row.get(2)?,
        core: false,
        current_version: version(row, 3)?,
        versions: Vec::new(),
    })
}

/// Fills in the versions of types that are in order of their names.
async fn with_versions(
    tx: &mut Tx,
    tenant: TenantId,
    mut types: Vec<EventTypeView>,
) -> Result<Vec<EventTypeView>, Error> {
    let names: Vec<String> = types.iter().map(|t| t.event_type.clone()).collect();
    for row in tx.query(&VERSIONS, params![tenant, names]).await? {
        let name: String = row.get(0)?;
        if let Some(t) = types.iter_mut().find(|t| t.event_type == name) {
            t.versions.push(EventTypeVersion { version: version(&row, 1)?, schema: schema(&row, 2)? });
        }
    }
    Ok(types)
}

async fn get(tx: &mut Tx, tenant: TenantId, name: &str) -> Result<Option<EventTypeView>, Error> {
    let Some(row) = tx.query_opt(&GET, params![tenant, name]).await? else { return Ok(None) };
    Ok(with_versions(tx, tenant, vec![view(&row)?]).await?.pop())
}

impl Store {
    /// One custom type.
    pub async fn event_type_get(&self, tenant: TenantId, name: String) -> Result<EventTypeView, Error> {
        self.db
            .read((tenant, name), |tx, (tenant, name)| {
                Box::pin(async move { get(tx, *tenant, name).await?.ok_or(Error::NotFound("event type")) })
            })
            .await
    }

    /// Custom types in order of their names, after `after`.
    pub async fn event_type_list(
        &self,
        tenant: TenantId,
        after: String,
        limit: i64,
    ) -> Result<Vec<EventTypeView>, Error> {
        self.db
            .read((tenant, after, limit), |tx, (tenant, after, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, after, *limit]).await?;
                    with_versions(tx, *tenant, rows.iter().map(view).collect::<Result<_, _>>()?).await
                })
            })
            .await
    }

    /// The types of these names as producers use them now; names without a type are left out.
    pub async fn event_type_current(&self, tenant: TenantId, names: Vec<String>) -> Result<Vec<CurrentType>, Error> {
        self.db
            .read((tenant, names), |tx, (tenant, names)| {
                Box::pin(async move {
                    let rows = tx.query(&CURRENT, params![*tenant, names.clone()]).await?;
                    rows.iter()
                        .map(|row| {
                            Ok(CurrentType {
                                name: row.get(0)?,
                                entity_type: row.get(1)?,
                                version: version(row, 2)?,
                                schema: schema(row, 3)?,
                            })
                        })
                        .collect()
                })
            })
            .await
    }

    /// Registers version `number` of a type. The same schema under the same number is accepted again; a new number
    /// must be the next one and only add optional fields.
    pub async fn event_type_register(
        &self,
        change: Change,
        name: String,
        number: u32,
        new: EventTypeRegister,
    ) -> Result<Changed<EventTypeView>, Error> {
        self.db
            .change(change, (name, number, new), |tx, (change, (name, number, new))| {
                Box::pin(async move {
                    tenants::lock(tx, change.tenant_id).await?;
                    register(tx, change, name, *number, new).await?;
                    get(tx, change.tenant_id, name).await?.ok_or(Error::NotFound("event type"))
                })
            })
            .await
    }
}

async fn register(tx: &mut Tx, change: &Change, name: &str, number: u32, new: &EventTypeRegister) -> Result<(), Error> {
    let description = new.description.clone().unwrap_or_default();
    let old = get(tx, change.tenant_id, name).await?;
    let next = old.as_ref().map_or(1, |t| t.current_version + 1);
    if let Some(old) = &old {
        if old.entity_type != new.entity_type {
            return Err(Error::Conflict(format!("{name} belongs to the entity type {:?}", old.entity_type)));
        }
        if let Some(same) = old.versions.iter().find(|v| v.version == number) {
            return if same.schema == new.schema {
                Ok(())
            } else {
                Err(Error::Conflict(format!("version {number} of {name} is registered with another schema")))
            };
        }
    }
    if number != next {
        return Err(Error::Conflict(format!("the next version of {name} is {next}")));
    }
    if let Some(old) = &old {
        let current = old.versions.last().ok_or_else(|| Error::Corrupt(format!("{name} has no version")))?;
        let faults = incompatibilities(&current.schema, &new.schema);
        if !faults.is_empty() {
            return Err(Error::IncompatibleSchema { version: current.version, faults });
        }
        let description = new.description.as_ref().unwrap_or(&old.description);
        tx.execute(&ADVANCE, params![change.tenant_id, name, number, description]).await?;
    } else {
        let row = params![change.tenant_id, name, &new.entity_type, description, number, change.now];
        tx.execute(&INSERT, row).await?;
    }
    let row = params![change.tenant_id, name, number, to_json(&new.schema)?, change.now];
    tx.execute(&INSERT_VERSION, row).await?;
    let payload = EventTypeRegistered { event_type: name.to_owned(), version: number };
    tx.append(change.event(&EVENT_TYPE_REGISTERED, name, Lies::NOWHERE, &payload)?);
    Ok(())
}
