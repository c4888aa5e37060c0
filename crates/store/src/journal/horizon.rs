//! The horizon: up to which position the journal is settled, and which journal that is.
//!
//! On PostgreSQL finding it means looking at the locks of those who are appending. One look serves every reader of this
//! process that was waiting when it began, and the greatest position ever proven is kept: pages wholly below it need no
//! look at all. Looks by themselves begin at once; one after another they use at most half of one connection's time. On SQLite whatever is committed is settled, and a page finds it in its own snapshot.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Identity, Position};
use crate::db::{Db, Dialect, Tx, params};
use crate::{Error, twin};

/// How far looks may be ahead of half the time: a lone one, or a few together, never wait.
const BURST: Duration = Duration::from_millis(5);

/// Most of a look's time that is charged: after one that hung with its database, readers wait no longer than this.
const CHARGED: Duration = Duration::from_millis(100);

/// What one look found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub identity: Identity,
    /// Everything at or below is settled.
    pub horizon: Position,
    /// The greatest committed position; above the horizon when an append that has not ended holds it back.
    pub head: Position,
}

/// Looks by the readers of one process.
#[derive(Debug)]
pub(crate) struct Horizon {
    /// Looks that have begun.
    begun: AtomicU64,
    last: tokio::sync::Mutex<Last>,
    /// The greatest horizon of the present incarnation.
    proven: Mutex<Look>,
    read_wait: Duration,
}

#[derive(Debug)]
struct Last {
    number: u64,
    look: Look,
    /// When the looks so far have used half of the time.
    paid: Instant,
}

impl Horizon {
    pub(super) fn new(look: Look, read_wait: Duration) -> Self {
        Self {
            begun: AtomicU64::new(0),
            last: tokio::sync::Mutex::new(Last { number: 0, look, paid: Instant::now() }),
            proven: Mutex::new(look),
            read_wait,
        }
    }

    /// The greatest horizon that is known without a look.
    pub(super) fn proven(&self) -> Look {
        *self.proven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look that began after this call.
    pub(super) async fn look(&self, db: &Db) -> Result<Look, Error> {
        let wanted = self.begun.load(Ordering::SeqCst) + 1;
        let mut last = self.last.lock().await;
        if last.number < wanted {
            if let Some(early) = last.paid.checked_duration_since(Instant::now() + BURST).filter(|d| !d.is_zero()) {
                sleep(early).await;
            }
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            let start = Instant::now();
            let look = db.read((), |tx, ()| Box::pin(look(tx))).await?;
            let paid = last.paid.max(start) + start.elapsed() + start.elapsed().min(CHARGED);
            *last = Last { number, look: self.keep(look), paid };
        }
        Ok(last.look)
    }

    /// A look that shows whatever was committed before this call, unless an append holds that back for too long.
    pub(super) async fn settled(&self, db: &Db) -> Result<Look, Error> {
        let until = Instant::now() + self.read_wait;
        let first = self.look(db).await?;
        let mut look = first;
        while look.horizon < first.head && look.identity == first.identity && Instant::now() < until {
            look = self.look(db).await?;
        }
        Ok(look)
    }

    /// Notes what a look has proven. A horizon of one incarnation says nothing about another's positions.
    pub(super) fn keep(&self, look: Look) -> Look {
        let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        // It may step back: a rolled-back append leaves a gap that a later look stops below.
        let horizon = if proven.identity == look.identity { proven.horizon.max(look.horizon) } else { look.horizon };
        *proven = Look { horizon, ..look };
        *proven
    }
}

/// Looks at the journal; on SQLite in the snapshot of the unit.
pub(super) async fn look(tx: &mut Tx) -> Result<Look, Error> {
    let statement = match tx.dialect() {
        Dialect::Postgres => &twin::postgres::horizon::STATE,
        Dialect::Sqlite => &twin::sqlite::horizon::STATE,
    };
    let row = tx.query_one(statement, params![]).await?;
    let horizon: Position = row.get(2)?;
    Ok(Look {
        identity: Identity::new(row.get(0)?, row.get(1)?)?,
        horizon,
        head: row.get::<Option<Position>>(3)?.unwrap_or(horizon),
    })
}

/// The look that a unit was given, else its own.
pub(super) async fn or_look(tx: &mut Tx, given: Option<Look>) -> Result<Look, Error> {
    match given {
        Some(look) => Ok(look),
        None => look(tx).await,
    }
}
