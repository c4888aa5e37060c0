//! The baselines: the drivers that the store is built on, with prepared statements and nothing in between.

pub(crate) mod notify;
pub(crate) mod order;
pub(crate) mod postgres;
pub(crate) mod sqlite;

use anyhow::Result;
use courant_store::{Options, Store};

use crate::place::{Engine, Place};

pub(crate) const INSERT_COLUMNS: &str = "tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, \
    actor_id, session_id, correlation_id, causation_id, request_id, payload, occurred_at";
pub(crate) const SELECT_COLUMNS: &str = "seq, id, tenant_id, type, schema_version, entity_type, entity_id, \
    workspace_id, actor_id, session_id, correlation_id, causation_id, request_id, payload, occurred_at";

/// A database with our tables and indexes and without our guards: what somebody would have who just inserts.
pub(crate) async fn tables(engine: Engine) -> Result<Place> {
    let place = Place::new(engine).await?;
    drop(Store::open(&Options::server(place.url())).await?);
    match engine {
        Engine::Postgres => {
            let client = postgres::Connection::open(place.url()).await?;
            client.batch("DROP TRIGGER event_no_change ON event; DROP TRIGGER event_no_truncate ON event").await?;
        }
        Engine::Sqlite => {
            let connection = sqlite::connect(place.url())?;
            connection.execute_batch(
                "DROP TRIGGER event_no_update; DROP TRIGGER event_no_delete; DROP TRIGGER event_no_replace",
            )?;
        }
    }
    Ok(place)
}

/// A row of a page, as it is read and written out without us.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageRow {
    pub(crate) sequence: i64,
    pub(crate) id: uuid::Uuid,
    pub(crate) tenant_id: uuid::Uuid,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) schema_version: i64,
    pub(crate) entity_type: String,
    pub(crate) entity_id: String,
    pub(crate) workspace_id: Option<uuid::Uuid>,
    pub(crate) actor_id: Option<uuid::Uuid>,
    pub(crate) session_id: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) causation_id: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) payload: Box<serde_json::value::RawValue>,
    pub(crate) occurred_at: courant_api::Timestamp,
}
