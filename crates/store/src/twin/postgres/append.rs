//! Differs because many writers append at once: the statement takes a lock that readers measure the horizon by, and
//! takes all rows in one trip through array parameters.

use deadpool_postgres::Object;

use crate::Error;
use crate::db::{Appended, Dialect, NewEvent, Statement, Value};

/// One INSERT fed by a materialised CTE that is joined, so that it runs, and runs first: it takes a shared lock whose
/// key is the journal's tag (19022) and the sequence's last value, and only then are positions drawn. So every
/// position that this transaction draws is greater than the `L` in its lock's key, and a reader that sees the lock
/// stays below. It also makes sure that the commit is synchronous: a lost one would hand its positions out again.
pub(crate) static APPEND: Statement = Statement::only(
    "append.postgres",
    Dialect::Postgres,
    "WITH watermark AS MATERIALIZED (
        SELECT pg_advisory_xact_lock_shared(
                (19022::bigint << 48) | coalesce(pg_sequence_last_value('event_seq_seq'::regclass), 0)),
            set_config('synchronous_commit',
                CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
                true)
    )
    INSERT INTO event (tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, actor_id,
        session_id, correlation_id, causation_id, request_id, payload, occurred_at)
    SELECT e.tenant_id, e.id, e.type, e.schema_version, e.entity_type, e.entity_id, e.workspace_id, e.actor_id,
        e.session_id, e.correlation_id, e.causation_id, e.request_id, e.payload, e.occurred_at
    FROM watermark, unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::uuid[],
        $8::uuid[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[])
        WITH ORDINALITY AS e(tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, actor_id,
            session_id, correlation_id, causation_id, request_id, payload, occurred_at, place)
    ORDER BY e.place
    RETURNING id, seq",
);

/// An append that is ready to be sent ahead of its COMMIT.
pub(crate) struct Append {
    statement: tokio_postgres::Statement,
    columns: Vec<Value>,
}

impl Append {
    pub(crate) async fn prepare(client: &Object, events: &[NewEvent]) -> Result<Self, Error> {
        APPEND.count(Dialect::Postgres);
        let statement = client.prepare_cached(APPEND.text(Dialect::Postgres)).await?;
        let uuids = |f: fn(&NewEvent) -> Option<uuid::Uuid>| Value::Uuids(events.iter().map(f).collect());
        let texts = |f: fn(&NewEvent) -> Option<String>| Value::Texts(events.iter().map(f).collect());
        let ints = |f: fn(&NewEvent) -> i64| Value::Ints(events.iter().map(f).collect());
        let columns = vec![
            uuids(|e| Some(e.tenant_id.uuid())),
            uuids(|e| Some(e.id.uuid())),
            texts(|e| Some(e.event_type.clone())),
            ints(|e| i64::from(e.schema_version)),
            texts(|e| Some(e.entity_type.clone())),
            texts(|e| Some(e.entity_id.clone())),
            uuids(|e| e.workspace_id.map(Into::into)),
            uuids(|e| e.actor_id.map(Into::into)),
            texts(|e| e.session_id.clone()),
            texts(|e| e.correlation_id.clone()),
            texts(|e| e.causation_id.clone()),
            texts(|e| e.request_id.clone()),
            texts(|e| Some(e.payload.clone())),
            ints(|e| e.occurred_at.micros()),
        ];
        Ok(Self { statement, columns })
    }

    pub(crate) async fn run(&self, client: &Object) -> Result<Vec<Appended>, Error> {
        let params: Vec<_> = self.columns.iter().map(|p| p as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
        let rows = client.query(&self.statement, &params).await?;
        rows.iter()
            .map(|row| {
                let id: uuid::Uuid = row.try_get(0)?;
                Ok(Appended { id: id.into(), seq: row.try_get(1)? })
            })
            .collect()
    }
}
