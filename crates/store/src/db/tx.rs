//! A unit of work at work: statements, and the events that close it.

use std::future::Future;
use std::pin::Pin;

use courant_api::{EventId, PrincipalId, TenantId, Timestamp, WorkspaceId};
use futures_util::future::{join, join_all};

use super::sql::{Dialect, Statement};
use super::value::{Row, Value};
use crate::Error;
use crate::twin;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An event about to be appended.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub tenant_id: TenantId,
    pub id: EventId,
    pub event_type: String,
    pub schema_version: u32,
    pub entity_type: String,
    pub entity_id: String,
    pub workspace_id: Option<WorkspaceId>,
    pub actor_id: Option<PrincipalId>,
    pub session_id: Option<String>,
    pub correlation_id: Option<String>,
    pub causation_id: Option<String>,
    pub request_id: Option<String>,
    pub payload: String,
    pub occurred_at: Timestamp,
}

/// Where an appended event came to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub id: EventId,
    pub seq: i64,
}

/// The connection of one unit of work.
pub struct Tx {
    pub(super) connection: Connection,
    pub(super) events: Vec<NewEvent>,
    writes: bool,
    #[cfg(feature = "testing")]
    pub(super) fault: Option<super::Fault>,
}

pub(super) enum Connection {
    Postgres {
        client: deadpool_postgres::Object,
        begun: bool,
    },
    Sqlite(rusqlite::Connection),
    /// Handed back.
    Gone,
}

impl Tx {
    pub(super) fn new(connection: Connection, writes: bool) -> Self {
        Self {
            connection,
            events: Vec::new(),
            writes,
            #[cfg(feature = "testing")]
            fault: None,
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self.connection {
            Connection::Sqlite(_) => Dialect::Sqlite,
            Connection::Postgres { .. } | Connection::Gone => Dialect::Postgres,
        }
    }

    /// Appends an event. All events of a unit are written together as its last act, so that each stands after
    /// whatever lock the unit waited for: cause before effect.
    pub fn append(&mut self, event: NewEvent) {
        debug_assert!(self.writes, "a reading unit cannot append");
        self.events.push(event);
    }

    /// How many events this unit has appended so far.
    pub fn appended_count(&self) -> usize {
        self.events.len()
    }

    /// Where a test's fault may strike.
    #[cfg_attr(
        not(feature = "testing"),
        expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "only tests have faults")
    )]
    pub(super) fn step(&self) -> Result<(), Error> {
        #[cfg(feature = "testing")]
        if let Some(fault) = &self.fault {
            return fault.step();
        }
        Ok(())
    }

    /// The rows of a statement.
    pub async fn query(&mut self, statement: &'static Statement, params: &[Value]) -> Result<Vec<Row>, Error> {
        statement.count(self.dialect());
        self.step()?;
        #[cfg(feature = "testing")]
        if super::examine::is_on() && !self.writes {
            return super::examine::query(&mut self.connection, statement, params).await;
        }
        let writes = self.writes;
        match &mut self.connection {
            Connection::Postgres { client, begun } => {
                let prepared = client.prepare_cached(statement.text(Dialect::Postgres)).await?;
                let params: Vec<_> = params.iter().map(|p| p as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
                let rows = if writes && !*begun {
                    *begun = true;
                    let (begin, rows) = join(client.batch_execute("BEGIN"), client.query(&prepared, &params)).await;
                    begin?;
                    rows?
                } else {
                    client.query(&prepared, &params).await?
                };
                Ok(rows.into_iter().map(Row::Pg).collect())
            }
            Connection::Sqlite(connection) => {
                let mut prepared = connection.prepare_cached(statement.text(Dialect::Sqlite))?;
                let columns = prepared.column_count();
                let mut rows = prepared.query(rusqlite::params_from_iter(params))?;
                let mut out = Vec::new();
                while let Some(row) = rows.next()? {
                    let cells: Result<Vec<_>, _> = (0..columns).map(|i| row.get(i)).collect();
                    out.push(Row::Lite(cells?));
                }
                Ok(out)
            }
            Connection::Gone => Err(Error::gone()),
        }
    }

    /// The first row, if any.
    pub async fn query_opt(&mut self, statement: &'static Statement, params: &[Value]) -> Result<Option<Row>, Error> {
        Ok(self.query(statement, params).await?.into_iter().next())
    }

    /// The first row of a statement that always has one.
    pub async fn query_one(&mut self, statement: &'static Statement, params: &[Value]) -> Result<Row, Error> {
        self.query_opt(statement, params).await?.ok_or_else(|| Error::Corrupt(format!("{}: no row", statement.name)))
    }

    /// Runs a statement that answers nothing; how many rows it touched.
    pub async fn execute(&mut self, statement: &'static Statement, params: &[Value]) -> Result<u64, Error> {
        let touched = self.execute_each(statement, std::slice::from_ref(&params.to_vec())).await?;
        Ok(touched.into_iter().sum())
    }

    /// Runs a statement once for each row of parameters, in one trip to the database; how many rows each touched.
    pub async fn execute_each(
        &mut self,
        statement: &'static Statement,
        rows: &[Vec<Value>],
    ) -> Result<Vec<u64>, Error> {
        debug_assert!(self.writes, "a reading unit cannot execute {}", statement.name);
        statement.count(self.dialect());
        self.step()?;
        match &mut self.connection {
            Connection::Postgres { client, begun } => {
                let prepared = client.prepare_cached(statement.text(Dialect::Postgres)).await?;
                let client = &*client;
                let begin = async { if *begun { Ok(()) } else { client.batch_execute("BEGIN").await } };
                let all = join_all(rows.iter().map(|row| client.execute_raw(&prepared, row)));
                let (begin, touched) = join(begin, all).await;
                *begun = true;
                begin?;
                touched.into_iter().map(|t| t.map_err(Error::from)).collect()
            }
            Connection::Sqlite(connection) => {
                let mut prepared = connection.prepare_cached(statement.text(Dialect::Sqlite))?;
                rows.iter().map(|row| Ok(prepared.execute(rusqlite::params_from_iter(row))? as u64)).collect()
            }
            Connection::Gone => Err(Error::gone()),
        }
    }

    #[cfg(feature = "testing")]
    pub async fn prepare(&mut self, statement: &'static Statement) -> Result<(), Error> {
        let named = |e: String| Error::Corrupt(format!("{}: {e}", statement.name));
        match &mut self.connection {
            Connection::Postgres { client, .. } => client
                .prepare_cached(statement.text(Dialect::Postgres))
                .await
                .map(|_| ())
                .map_err(|e| named(format!("{e:?}"))),
            Connection::Sqlite(connection) => {
                connection.prepare_cached(statement.text(Dialect::Sqlite)).map(|_| ()).map_err(|e| named(e.to_string()))
            }
            Connection::Gone => Err(Error::gone()),
        }
    }

    /// Writes the buffered events and commits, on SQLite.
    pub(super) fn finish_sqlite(&mut self) -> Result<Vec<Appended>, Error> {
        self.step()?;
        let Connection::Sqlite(connection) = &mut self.connection else { return Err(Error::gone()) };
        let appended = twin::sqlite::append(connection, &self.events)?;
        #[cfg(feature = "testing")]
        if let Some(fault) = &self.fault {
            fault.step()?;
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(appended)
    }
}
