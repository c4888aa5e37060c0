//! The thin seam over the two drivers: values, rows, statements, units of work, migrations.
//!
//! Nothing outside this folder names a driver. A unit of work awaits nothing but its [`Tx`]: on SQLite it runs to its
//! end in one poll on the writer's thread, and one that is ever pending is rolled back and reported.

mod connect;
#[cfg(feature = "testing")]
pub(crate) mod examine;
#[cfg(feature = "testing")]
mod fault;
pub(crate) mod listen;
mod migrate;
mod postgres;
mod sql;
mod sqlite;
mod tx;
mod value;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

#[cfg(feature = "testing")]
pub use fault::Fault;
pub use listen::{Pace, Wakeups};
pub(crate) use sql::{Dialect, Statement, statements};
pub(crate) use tx::{Appended, BoxFuture, NewEvent, Tx};
pub(crate) use value::{Row, Value, params};

use crate::Error;
use crate::journal::incarnation;

/// An open database.
#[derive(Clone, Debug)]
pub(crate) struct Db {
    backend: Backend,
    ending: Ending,
    wakeups: Arc<watch::Sender<Wakeups>>,
}

/// What belongs to the end of a unit of work; it goes along with the unit, whose request may be gone by then.
#[derive(Clone, Debug)]
struct Ending {
    /// Raised after each commit that appended events, of this process or, while it listens, of another.
    appended: Arc<watch::Sender<u64>>,
    /// The greatest position that this process has committed; marked as changed by each commit, whatever its position.
    head: Arc<watch::Sender<i64>>,
    #[cfg(feature = "testing")]
    barrier: Option<crate::Barrier>,
    #[cfg(feature = "testing")]
    fault: Option<Fault>,
}

impl Ending {
    fn committed(&self, appended: &[Appended]) {
        if let Some(last) = appended.iter().map(|a| a.seq).max() {
            self.wake();
            self.head.send_modify(|head| *head = last.max(*head));
        }
    }

    /// Has this process's readers look at the journal.
    fn wake(&self) {
        self.appended.send_modify(|n| *n += 1);
    }
}

#[derive(Clone, Debug)]
enum Backend {
    Postgres(postgres::Pool),
    Sqlite(sqlite::Handle),
}

/// What a committed unit of work gave, and where its events came to stand, in the order they were appended.
#[derive(Debug)]
pub(crate) struct Committed<T> {
    pub value: T,
    pub appended: Vec<Appended>,
}

impl Db {
    /// Opens `postgres://…` or `sqlite://<path>` and brings its schema up to date, or refuses an older one.
    pub(crate) async fn open(options: &crate::Options) -> Result<Self, Error> {
        let db = Self::connect(options).await?;
        match &db.backend {
            Backend::Postgres(pool) => {
                migrate::postgres(pool, options.migrate).await?;
                pool.settle().await?;
            }
            Backend::Sqlite(handle) => {
                migrate::sqlite(handle, options.migrate).await?;
                if options.exclusive {
                    incarnation::open_embedded(&db).await?;
                }
            }
        }
        Ok(db)
    }

    async fn connect(options: &crate::Options) -> Result<Self, Error> {
        let url = &options.url;
        let backend = if let Some(path) = url.strip_prefix("sqlite://") {
            Backend::Sqlite(sqlite::Handle::open(path, options).await?)
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Backend::Postgres(postgres::Pool::open(url, options.connections).await?)
        } else {
            return Err(Error::Configuration("the database URL starts with neither sqlite:// nor postgres://".into()));
        };
        Ok(Self {
            backend,
            ending: Ending {
                appended: Arc::new(watch::Sender::new(0)),
                head: Arc::new(watch::Sender::new(0)),
                #[cfg(feature = "testing")]
                barrier: options.barrier.clone(),
                #[cfg(feature = "testing")]
                fault: options.fault.clone(),
            },
            wakeups: Arc::new(watch::Sender::new(Wakeups::Polling { why: "it does not listen".into() })),
        })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match &self.backend {
            Backend::Postgres(_) => Dialect::Postgres,
            Backend::Sqlite(_) => Dialect::Sqlite,
        }
    }

    /// Changes whenever events were committed: by this process, or by another one that was heard of.
    pub(crate) fn appended(&self) -> watch::Receiver<u64> {
        self.ending.appended.subscribe()
    }

    /// Runs one unit of work in one transaction; what it appended is written last and committed with it. It may run
    /// more than once, so it only reads `input`.
    pub(crate) async fn write<I, T, F>(&self, input: I, unit: F) -> Result<Committed<T>, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, Error>> + Send + Sync + 'static,
    {
        let ending = self.ending.clone();
        match &self.backend {
            Backend::Postgres(pool) => pool.write(input, unit, ending).await,
            Backend::Sqlite(handle) => handle.write(input, unit, ending).await,
        }
    }

    /// Runs a unit that only reads. On SQLite all its statements see one snapshot; on PostgreSQL each sees its own,
    /// later than the one before, which is what the journal's order rests on.
    pub(crate) async fn read<I, T, F>(&self, input: I, unit: F) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, Error>> + Send + Sync + 'static,
    {
        match &self.backend {
            Backend::Postgres(pool) => pool.read(input, unit).await,
            Backend::Sqlite(handle) => handle.read(input, unit).await,
        }
    }

    /// Prepares a statement without running it; for tests.
    #[cfg(feature = "testing")]
    pub(crate) async fn prepare(&self, statement: &'static Statement) -> Result<(), Error> {
        self.read(statement, |tx, statement| Box::pin(tx.prepare(statement))).await
    }
}

#[cfg(test)]
mod tests;

/// Longest wait for a connection or a place in the writer's queue before `Unavailable`.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
