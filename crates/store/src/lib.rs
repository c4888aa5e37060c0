//! The databases: the only crate that sees SQL or a driver.
//!
//! [`Store`] is one struct over PostgreSQL or SQLite. Every public method is one whole unit of work, named
//! `noun_verb`, bound to a tenant, and safe to drop: a change that has begun runs to its end. Statements have one
//! text for both databases; what must differ stands in `twin/` with its reason.

mod access;
mod catalogue;
mod change;
mod db;
mod deployments;
mod error;
mod journal;
mod notify;
mod servers;
mod twin;
mod work;

pub use access::{Authority, Caller, Credential, Decisions, KeyDraft, Page, PageKey, Rights, Token};
pub use catalogue::CurrentType;
pub use change::{Change, Changed, Idempotency, Replayable};
#[cfg(feature = "testing")]
pub use db::Fault;
pub use db::{Pace, Wakeups};
pub use deployments::{DeploymentQuery, DeploymentStep, RunNew, StackQuery};
pub use error::{Blocker, Error};
pub use journal::{AppendOutcome, EventDraft, EventQuery, Position, ScanBatch, Start, TailBatch, TailEvent};
pub use journal::{DatabaseFacts, Held, PRUNE_BATCH, PruneRequest, PruneStep, RetentionState, WhenBlocked};
pub use notify::{
    Announced, Attempt, AttemptQuery, Claim, Claimed, DeliveryQuery, Digest, DigestWanted, Edit, Edited, Integration,
    Lanes, Mark, Outcome, Place, SealedSecret,
};
pub use work::{
    ApprovalQuery, Decision, DecisionTokenDraft, Editable, Kind, ProjectEdit, Resource, ResourceQuery, RuleEdit,
    RunEnd, SkillQuery, SkillStep, TaskQuery, VerificationEnd,
};

use std::sync::Arc;
use std::time::Duration;

use courant_core::access::Reach;
use db::{Db, Dialect};
use tokio::sync::watch;
use uuid::Uuid;

/// How to open a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// `postgres://…` or `sqlite://<path>`.
    pub url: String,
    /// Most connections to PostgreSQL.
    pub connections: usize,
    /// Whether to claim a SQLite file for this server; commands beside a server do not.
    pub exclusive: bool,
    /// Whether to bring the schema up to date; otherwise an older schema is refused.
    pub migrate: bool,
    /// Longest wait of a reader for what was committed before it asked, while an append that has not ended holds that back.
    pub read_wait: Duration,
    /// Who decides what principals may do.
    pub authority: Authority,
    /// Whether what becomes of each attempt at a delivery is kept for a while.
    pub keeps_attempts: bool,
    /// Where a test holds units of work between their append and their commit.
    #[cfg(feature = "testing")]
    pub barrier: Option<Barrier>,
    /// Where a test has units of work fail.
    #[cfg(feature = "testing")]
    pub fault: Option<Fault>,
}

impl Options {
    /// The options of a server on this database.
    pub fn server(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: 24,
            exclusive: true,
            migrate: true,
            read_wait: Duration::from_millis(100),
            authority: Authority::Grants(Reach::Exact),
            keeps_attempts: true,
            #[cfg(feature = "testing")]
            barrier: None,
            #[cfg(feature = "testing")]
            fault: None,
        }
    }

    /// The options of a command that may run beside a server.
    pub fn command(url: impl Into<String>) -> Self {
        Self { connections: 2, exclusive: false, migrate: false, ..Self::server(url) }
    }
}

/// An open database.
#[derive(Clone, Debug)]
pub struct Store {
    db: Db,
    horizon: Arc<journal::Horizon>,
    appender: journal::Appender,
    authority: Authority,
    keeps_attempts: bool,
}

impl Store {
    /// Opens a database and, if asked, brings its schema up to date.
    pub async fn open(options: &Options) -> Result<Self, Error> {
        let db = Db::open(options).await?;
        let horizon = Arc::new(journal::open(&db, options.read_wait).await?);
        #[cfg(feature = "testing")]
        let grouped = options.barrier.is_none();
        #[cfg(not(feature = "testing"))]
        let grouped = true;
        let appender = journal::Appender::start(&db, grouped);
        let (authority, keeps_attempts) = (options.authority.clone(), options.keeps_attempts);
        Ok(Self { db, horizon, appender, authority, keeps_attempts })
    }

    /// Whether this is the embedded database, which has one server.
    pub fn is_embedded(&self) -> bool {
        self.db.dialect() == Dialect::Sqlite
    }

    /// Changes whenever events were committed: by this process, or by another one that was heard of.
    pub fn appended(&self) -> watch::Receiver<u64> {
        self.db.appended()
    }

    /// Listens for the commits of other servers and tells them of this one's, under the name `server`, for as long as
    /// it is polled: it has no end of its own. Then [`appended`](Self::appended) changes for theirs too. On SQLite, which
    /// has one server, it does nothing.
    pub async fn journal_listen(&self, server: Uuid, pace: Pace) {
        self.db.listen(server, pace).await;
    }

    /// Whether commits of other servers are heard of at once.
    pub fn wakeups(&self) -> watch::Receiver<Wakeups> {
        self.db.wakeups()
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), Error> {
        self.look().await.map(|_| ())
    }

    /// Every statement of the store: name, whether this database uses it, and how often this process ran it.
    #[cfg(feature = "testing")]
    pub fn statements(&self) -> Vec<(&'static str, u64)> {
        let dialect = self.db.dialect();
        all_statements().filter(|s| s.is_for(dialect)).map(|s| (s.name, s.runs(dialect))).collect()
    }

    /// Counts from now on what the reading statements of this process examine.
    #[cfg(feature = "testing")]
    pub fn examine() {
        db::examine::start();
    }

    /// What every statement has examined: entries of the journal's indexes on PostgreSQL, steps of its machine on SQLite.
    #[cfg(feature = "testing")]
    pub fn examined() -> Vec<(&'static str, u64)> {
        all_statements().map(|s| (s.name, s.examined.load(std::sync::atomic::Ordering::SeqCst))).collect()
    }

    /// Prepares every statement on this database; the first fault names its statement.
    #[cfg(feature = "testing")]
    pub async fn prepare_statements(&self) -> Result<(), Error> {
        for statement in all_statements().filter(|s| s.is_for(self.db.dialect())) {
            self.db.prepare(statement).await?;
        }
        Ok(())
    }
}

/// How many, as the databases count.
fn count<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

/// A limit as the length of a list.
fn bound(limit: i64) -> usize {
    usize::try_from(limit).unwrap_or(0)
}

#[cfg(feature = "testing")]
fn all_statements() -> impl Iterator<Item = &'static db::Statement> {
    let nouns = [
        catalogue::STATEMENTS,
        change::STATEMENTS,
        db::listen::STATEMENTS,
        journal::STATEMENTS,
        journal::incarnation::STATEMENTS,
        journal::lease::STATEMENTS,
        journal::retention::STATEMENTS,
        journal::status::STATEMENTS,
        journal::texts::STATEMENTS,
        servers::STATEMENTS,
        twin::STATEMENTS,
    ];
    nouns
        .into_iter()
        .flatten()
        .copied()
        .chain(access::statements())
        .chain(notify::statements())
        .chain(work::all_statements())
        .chain(deployments::all_statements())
}

/// Where a test holds a PostgreSQL unit of work: after its events are written and before it commits.
#[cfg(feature = "testing")]
#[derive(Clone)]
pub struct Barrier(std::sync::Arc<BarrierFn>);

#[cfg(feature = "testing")]
type BarrierFn = dyn Fn(Vec<String>) -> db::BoxFuture<'static, bool> + Send + Sync;

#[cfg(feature = "testing")]
impl Barrier {
    /// `hold` is given the entity ids of the events; the unit commits when it answers true, else rolls back.
    pub fn new(hold: impl Fn(Vec<String>) -> db::BoxFuture<'static, bool> + Send + Sync + 'static) -> Self {
        Self(std::sync::Arc::new(hold))
    }

    async fn reach(&self, events: &[db::NewEvent]) -> bool {
        (self.0)(events.iter().map(|e| e.entity_id.clone()).collect()).await
    }
}

#[cfg(feature = "testing")]
impl std::fmt::Debug for Barrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Barrier")
    }
}
