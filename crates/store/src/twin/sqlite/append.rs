//! Differs because there is one writer: its row ids are the order of commits, and a loop costs no trips.

use rusqlite::Connection;

use crate::Error;
use crate::db::{Appended, Dialect, NewEvent, Statement, Value};

pub(crate) static APPEND: Statement = Statement::only(
    "append.sqlite",
    Dialect::Sqlite,
    "INSERT INTO event (tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, actor_id,
        session_id, correlation_id, causation_id, request_id, payload, occurred_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
);

pub(crate) fn append(connection: &mut Connection, events: &[NewEvent]) -> Result<Vec<Appended>, Error> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    APPEND.count(Dialect::Sqlite);
    let mut insert = connection.prepare_cached(APPEND.text(Dialect::Sqlite))?;
    events
        .iter()
        .map(|e| {
            let row: [Value; 14] = [
                e.tenant_id.into(),
                e.id.into(),
                e.event_type.as_str().into(),
                e.schema_version.into(),
                e.entity_type.as_str().into(),
                e.entity_id.as_str().into(),
                e.workspace_id.into(),
                e.actor_id.into(),
                e.session_id.as_deref().into(),
                e.correlation_id.as_deref().into(),
                e.causation_id.as_deref().into(),
                e.request_id.as_deref().into(),
                e.payload.as_str().into(),
                e.occurred_at.into(),
            ];
            Ok(Appended { id: e.id, seq: insert.insert(rusqlite::params_from_iter(&row))? })
        })
        .collect()
}
