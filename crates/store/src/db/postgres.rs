//! PostgreSQL: a pool, units of work that a dropped request cannot cut, and the last act of each.

use std::sync::Arc;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, RecyclingMethod};
use futures_util::future::join;
use tokio_postgres::NoTls;

use super::connect::Target;
use super::tx::{Appended, BoxFuture, Connection, Tx};
use super::{ACQUIRE_TIMEOUT, Committed, Ending};
use crate::Error;
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
        let events = std::mem::take(&mut self.events);
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
        if let Some(barrier) = &ending.barrier {
            begin.await?;
            let appended = insert.run(client).await?;
            let committing = barrier.reach(&events).await;
            if committing {
                commit(client).await?;
            } else {
                client.batch_execute("ROLLBACK").await?;
            }
            *begun = false;
            return if committing {
                Ok(appended)
            } else {
                Err(Error::Unavailable("rolled back by the barrier".into()))
            };
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

async fn check_server(client: &mut deadpool_postgres::ClientWrapper) -> Result<(), HookError> {
    let row = client
        .query_one("SELECT current_setting('server_version_num')::int, pg_is_in_recovery()", &[])
        .await
        .map_err(HookError::Backend)?;
    let (version, standby): (i32, bool) = (row.get(0), row.get(1));
    if version < 140_000 {
        return Err(HookError::message("PostgreSQL 14 or later is needed"));
    }
    if standby {
        return Err(HookError::message("this PostgreSQL is a standby; the journal is read and written on the primary"));
    }
    Ok(())
}
