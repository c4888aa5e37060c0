//! SQLite: one writer thread, a few readers, one server a file.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rusqlite::{Connection as Lite, OpenFlags};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::tx::{BoxFuture, Connection, Tx};
use super::{ACQUIRE_TIMEOUT, Committed, Ending};
use crate::Error;

/// Units that may wait for the writer.
const QUEUE: usize = 1024;
const READERS: usize = 4;
const CACHED_STATEMENTS: usize = 256;

type Job = Box<dyn FnOnce(Lite) -> Lite + Send>;

#[derive(Clone, Debug)]
pub struct Handle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    writer: mpsc::Sender<Job>,
    readers: Mutex<Vec<Lite>>,
    permits: Arc<Semaphore>,
    path: PathBuf,
    /// Held while a server runs on the file.
    _lock: Option<File>,
}

impl Handle {
    pub async fn open(path: &str, options: &crate::Options) -> Result<Self, Error> {
        if path.is_empty() {
            return Err(Error::Configuration(
                "the SQLite URL names no file; expected sqlite:///path/to/courant.db".into(),
            ));
        }
        let path = PathBuf::from(path);
        let (exclusive, create) = (options.exclusive, options.migrate);
        tokio::task::spawn_blocking(move || Self::open_blocking(path, exclusive, create))
            .await
            .map_err(|e| Error::Panicked(e.to_string()))?
    }

    fn open_blocking(path: PathBuf, exclusive: bool, create: bool) -> Result<Self, Error> {
        // One file has one lock, by whatever link it is reached.
        let path = path.canonicalize().unwrap_or(path);
        check_owner(&path)?;
        let lock = if exclusive { Some(lock(&path)?) } else { None };
        if !create && matches!(path.try_exists(), Ok(false)) {
            let shown = path.display();
            let message = format!("there is no database {shown}; start the server or run `courant migrate` to make it");
            return Err(Error::Configuration(message));
        }
        let writer = connect(&path, create)?;
        let (sender, mut jobs) = mpsc::channel::<Job>(QUEUE);
        std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || {
                let mut connection = writer;
                while let Some(job) = jobs.blocking_recv() {
                    connection = job(connection);
                }
            })
            .map_err(|e| Error::Unavailable(e.to_string()))?;
        let readers = (0..READERS).map(|_| connect_reader(&path)).collect::<Result<_, Error>>()?;
        let permits = Arc::new(Semaphore::new(READERS));
        Ok(Self(Arc::new(Inner { writer: sender, readers: Mutex::new(readers), permits, path, _lock: lock })))
    }

    pub async fn write<I, T, F>(&self, input: I, unit: F, ending: Ending) -> Result<Committed<T>, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, Error>> + Send + Sync + 'static,
    {
        self.on_writer(move |connection| {
            let begun = connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut s| s.execute([])).map(|_| ());
            let (connection, outcome) = match begun {
                Ok(()) => run(connection, true, |tx| {
                    #[cfg(feature = "testing")]
                    tx.fault.clone_from(&ending.fault);
                    let value = poll_once(unit(tx, &input))?;
                    let appended = tx.finish_sqlite()?;
                    ending.committed(&appended);
                    Ok(Committed { value, appended })
                }),
                Err(error) => (connection, Err(error.into())),
            };
            if !connection.is_autocommit() && connection.execute_batch("ROLLBACK").is_err() {
                tracing::error!("SQLite refused a ROLLBACK; the file may be gone");
            }
            (connection, outcome)
        })
        .await
    }

    /// Runs `work` on the writer's thread with its connection.
    pub async fn on_writer<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(Lite) -> (Lite, Result<T, Error>) + Send + 'static,
    {
        let (answer, result) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let (connection, outcome) = work(connection);
            let _gone = answer.send(outcome);
            connection
        });
        self.0
            .writer
            .send_timeout(job, ACQUIRE_TIMEOUT)
            .await
            .map_err(|_| Error::Unavailable("the writer's queue is full".into()))?;
        result.await.map_err(|_| Error::Unavailable("the writer has ended".into()))?
    }

    pub async fn read<I, T, F>(&self, input: I, unit: F) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, Error>> + Send + Sync + 'static,
    {
        let permit = tokio::time::timeout(ACQUIRE_TIMEOUT, Arc::clone(&self.0.permits).acquire_owned())
            .await
            .map_err(|_| Error::Unavailable("no reader is free".into()))?
            .map_err(|_| Error::gone())?;
        let inner = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || {
            // Given back with the connection: the read goes on when its request is dropped.
            let _permit = permit;
            let reader = inner.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = reader.map_or_else(|| connect_reader(&inner.path), Ok)?;
            let begun = connection.prepare_cached("BEGIN").and_then(|mut s| s.execute([])).map(|_| ());
            let (connection, outcome) = match begun {
                Ok(()) => run(connection, false, |tx| poll_once(unit(tx, &input))),
                Err(error) => (connection, Err(error.into())),
            };
            let ended = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
            let connection = if ended { connection } else { connect_reader(&inner.path)? };
            inner.readers.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            outcome
        })
        .await
        .map_err(|e| Error::Panicked(e.to_string()))?
    }
}

/// Lends the connection to a unit and takes it back, also from one that panics.
fn run<T>(connection: Lite, writes: bool, unit: impl FnOnce(&mut Tx) -> Result<T, Error>) -> (Lite, Result<T, Error>) {
    let mut tx = Tx::new(Connection::Sqlite(connection), writes);
    let outcome = catch_unwind(AssertUnwindSafe(|| unit(&mut tx)))
        .unwrap_or_else(|_| Err(Error::Panicked("a unit of work panicked".into())));
    match std::mem::replace(&mut tx.connection, Connection::Gone) {
        Connection::Sqlite(connection) => (connection, outcome),
        Connection::Postgres { .. } | Connection::Gone => unreachable!("the unit only borrows its connection"),
    }
}

/// A unit on SQLite never waits: every statement is answered at once.
fn poll_once<T>(future: BoxFuture<'_, Result<T, Error>>) -> Result<T, Error> {
    match pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(Error::Panicked("a unit of work awaited something other than its transaction".into())),
    }
}

fn connect_reader(path: &Path) -> Result<Lite, Error> {
    let reader = connect(path, false)?;
    reader.pragma_update(None, "query_only", true)?;
    Ok(reader)
}

fn connect(path: &Path, create: bool) -> Result<Lite, Error> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
    let connection =
        Lite::open_with_flags(path, flags).map_err(|e| Error::Unavailable(format!("{}: {e}", path.display())))?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A commit that is answered is on the disk: a lost one would hand its positions out again.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Refuses a file of another user: its companions would become ours, and its server could not write them any more.
fn check_owner(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt as _;
    // A process owns its entry in /proc; where there is none, nothing can be compared.
    match (std::fs::metadata(path), std::fs::metadata("/proc/self")) {
        (Ok(file), Ok(own)) if file.uid() != own.uid() => Err(Error::Configuration(format!(
            "{} belongs to the user with id {}, this process runs as {}; run it as that user",
            path.display(),
            file.uid(),
            own.uid()
        ))),
        _ => Ok(()),
    }
}

/// One server a file; the lock ends with the process, however it ends.
fn lock(path: &Path) -> Result<File, Error> {
    let lock_path = path.with_extension("lock");
    let shown = lock_path.display();
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock_path)
        .map_err(|e| Error::Unavailable(format!("{}: its lock file {shown}: {e}", path.display())))?;
    file.try_lock().map_err(|_| Error::Configuration(format!("another server runs on {}", path.display())))?;
    Ok(file)
}
