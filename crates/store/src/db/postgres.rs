//! PostgreSQL: a pool, units of work that a dropped request cannot cut, and the last act of each.

use std::sync::Arc;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, RecyclingMethod};
use futures_util::future::join;
use tokio_postgres::NoTls;

use super::connect::Target;
use super::tx::{Appended, BoxFuture, Connection, Tx};
use super::{ACQUIRE_TIMEOUT, Committed, Dialect, Ending};
use crate::Error;
use crate::journal::incarnation;
use crate::twin;

/// How often a unit runs again after a serialisation failure or a deadlock.
const ATTEMPTS: u32 = 5;

#[derive(Clone, Debug)]
pub struct Pool(deadpool_postgres::Pool, Arc<Target>);

impl Pool {
    pub async fn open(url: &str, connections: usize) -> Result<Self, Error> {
        let target = Target::parse(url)?;
        let config = target.config("courant");
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match target.tls() {
            Some(tls) => Manager::from_config(config, tls, recycling),
            None => Manager::from_config(config, NoTls, recycling),
        };
        let pool = deadpool_postgres::Pool::builder(manager)
            .max_size(connections)
            .runtime(deadpool_postgres::Runtime::Tokio1)
            .wait_timeout(Some(ACQUIRE_TIMEOUT))
            .create_timeout(Some(ACQUIRE_TIMEOUT))
            .post_create(Hook::async_fn(|client, _| Box::pin(check_server(client))))
            .build()
            .map_err(|e| Error::Configuration(e.to_string()))?;
        drop(pool.get().await?);
        Ok(Self(pool, Arc::new(target)))
    }

    /// What its connections are made to.
    pub fn target(&self) -> &Target {
        &self.1
    }

    pub async fn client(&self) -> Result<Object, Error> {
        Ok(self.0.get().await?)
    }

    /// Meets the journal once its tables are there; connections that are made later do so by themselves.
    pub async fn settle(&self) -> Result<(), Error> {
        let mut client = self.client().await?;
        Ok(settle(&mut client).await?)
    }

    #[expect(clippy::disallowed_methods, reason = "a unit of work runs to its end although its request is dropped")]
    pub async fn write<I, T, F>(&self, input: I, unit: F, ending: Ending) -> Result<Committed<T>, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, Error>> + Send + Sync + 'static,
    {
        let pool = self.clone();
        let work = async move {
            let mut attempt = 1;
            loop {
                match pool.attempt(&input, &unit, &ending).await {
                    Err(error) if error.is_worth_repeating() && attempt < ATTEMPTS => attempt += 1,
                    outcome => return outcome,
                }
            }
        };
        tokio::spawn(work).await.map_err(|e| Error::Panicked(e.to_string()))?
    }

    async fn attempt<I, T, F>(&self, input: &I, unit: &F, ending: &Ending) -> Result<Committed<T>, Error>
    where
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, Error>>,
    {
        let mut tx = Tx::new(Connection::Postgres { client: self.client().await?, begun: false }, true);
        #[cfg(feature = "testing")]
        tx.fault.clone_from(&ending.fault);
        match unit(&mut tx, input).await {
            Ok(value) => {
                let appended = tx.finish_postgres(ending).await?;
                ending.committed(&appended);
                Ok(Committed { value, appended })
            }
            Err(error) => {
                tx.roll_back().await;
                Err(error)
            }
        }
    }

    pub async fn read<I, T, F>(&self, input: I, unit: F) -> Result<T, Error>
    where
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, Error>>,
    {
        let mut tx = Tx::new(Connection::Postgres { client: self.client().await?, begun: false }, false);
        unit(&mut tx, &input).await
    }
}

impl Tx {
    /// Writes the buffered events and commits, in one trip.
    async fn finish_postgres(&mut self, ending: &Ending) -> Result<Vec<Appended>, Error> {
        self.step()?;
        let events = std::mem::take(&mut self.events);
        #[cfg(feature = "testing")]
        let fault = self.fault.clone();
        let Connection::Postgres { client, begun } = &mut self.connection else { return Err(Error::gone()) };
        if events.is_empty() {
            if *begun {
                commit(client).await?;
                *begun = false;
            }
            return Ok(Vec::new());
        }
        let insert = twin::postgres::Append::prepare(client, &events).await?;
        let open = *begun;
        *begun = true;
        let begin = async { if open { Ok(()) } else { client.batch_execute("BEGIN").await } };
        #[cfg(feature = "testing")]
        if ending.barrier.is_some() || fault.is_some() {
            begin.await?;
            let appended = insert.run(client).await?;
            fault.map_or(Ok(()), |fault| fault.step())?;
            let committing = match &ending.barrier {
                Some(barrier) => barrier.reach(&events).await,
                None => true,
            };
            if !committing {
                client.batch_execute("ROLLBACK").await?;
                *begun = false;
                return Err(Error::Unavailable("rolled back by the barrier".into()));
            }
            commit(client).await?;
            *begun = false;
            return Ok(appended);
        }
        #[cfg(not(feature = "testing"))]
        let _ = ending;
        let (begin, (appended, committed)) = join(begin, join(insert.run(client), commit(client))).await;
        begin?;
        // A failed insert makes the COMMIT behind it a rollback, which answers without an error.
        let appended = appended?;
        committed?;
        *begun = false;
        Ok(appended)
    }

    async fn roll_back(&mut self) {
        if let Connection::Postgres { client, begun } = &mut self.connection
            && *begun
            && client.batch_execute("ROLLBACK").await.is_ok()
        {
            *begun = false;
        }
    }
}

/// A connection that may still stand inside a transaction never goes back to the pool.
impl Drop for Tx {
    fn drop(&mut self) {
        if let Connection::Postgres { client, begun: true } = std::mem::replace(&mut self.connection, Connection::Gone)
        {
            drop(Object::take(client));
        }
    }
}

/// A COMMIT whose answer is lost may have happened.
async fn commit(client: &Object) -> Result<(), Error> {
    client.batch_execute("COMMIT").await.map_err(|error| match error.as_db_error() {
        Some(_) => Error::from(error),
        None => Error::OutcomeUnknown,
    })
}

/// What every new connection must show: a server that will do, which is the primary, and whose journal it is.
async fn check_server(client: &mut deadpool_postgres::ClientWrapper) -> Result<(), HookError> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
                to_regclass('journal_incarnation') IS NOT NULL",
            &[],
        )
        .await
        .map_err(HookError::Backend)?;
    let (version, standby, has_journal): (i32, bool, bool) = (row.get(0), row.get(1), row.get(2));
    if version < 140_000 {
        return Err(HookError::message("PostgreSQL 14 or later is needed"));
    }
    if standby {
        return Err(HookError::message("this PostgreSQL is a standby; the journal is read and written on the primary"));
    }
    if has_journal {
        settle(client).await.map_err(HookError::Backend)?;
    }
    Ok(())
}

/// What tells this database from a copy of it and from itself before a failover: the cluster, its timeline, the database.
const IDENTITY: &str = "SELECT format('%s/%s/%s', (SELECT system_identifier FROM pg_control_system()),
    left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
    (SELECT oid FROM pg_database WHERE datname = current_database()))";

/// Opens an incarnation of the journal when it is met on another database than the present one was opened on. It happens
/// before the connection is used for anything else, so no page and no append ever goes by the incarnation before.
async fn settle(client: &mut tokio_postgres::Client) -> Result<(), tokio_postgres::Error> {
    fn text(statement: &'static super::Statement) -> &'static str {
        statement.count(Dialect::Postgres);
        statement.text(Dialect::Postgres)
    }
    let here: String = client.query_one(IDENTITY, &[]).await?.get(0);
    let known: Option<String> = client.query_one(text(&incarnation::IDENTITY), &[]).await?.get(0);
    if known.as_ref() == Some(&here) {
        return Ok(());
    }
    let tag = i64::from(incarnation::fresh_tag());
    let tx = client.transaction().await?;
    tx.query_one(text(&incarnation::LOCK), &[]).await?;
    let opened = tx.execute(text(&incarnation::OPEN), &[&tag, &here]).await?;
    tx.execute(text(&incarnation::SWITCH), &[&tag]).await?;
    tx.execute(text(&incarnation::IDENTIFY), &[&here]).await?;
    tx.execute(text(&incarnation::FORGET), &[&incarnation::KEPT]).await?;
    tx.commit().await?;
    if opened > 0 {
        tracing::warn!(
            was = known,
            is = here,
            "the journal is on another database than before: a failover or a restore; cursors of what was lost are refused"
        );
    }
    Ok(())
}
