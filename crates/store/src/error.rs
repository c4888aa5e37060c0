//! What can go wrong in the store, for callers to match on.

use courant_api::approvals::ApprovalStatus;
use courant_api::operations::ConsumerKind;
use courant_api::{ApprovalId, EventId, Permission, Resource, Timestamp};
use courant_core::access::Question;
use courant_core::catalogue::SchemaFault;
use courant_core::lifecycle::Illegal;
use tokio_postgres::error::SqlState;

/// A consumer that retention waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// Whether it is the server's own.
    pub kind: ConsumerKind,
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub position: i64,
    /// The same as its tenant sees it.
    pub cursor: String,
    /// Until when retention waits; none: always.
    pub expires_at: Option<Timestamp>,
}

impl Blocker {
    pub(crate) fn new(kind: ConsumerKind, name: String, position: i64, expires_at: Option<Timestamp>) -> Self {
        Self { kind, name, position, cursor: String::new(), expires_at }
    }
}

/// Why a unit of work did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such row in the tenant, or none that the caller may know of.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The state does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// Input that only the stored row could judge.
    #[error("{field}: {message}")]
    Invalid {
        /// JSON pointer of what is wrong.
        field: String,
        /// Why.
        message: String,
    },
    /// A new version of an event type's schema does more than add optional fields.
    #[error("the schema breaks version {version}")]
    IncompatibleSchema {
        /// The version it was compared with.
        version: u32,
        /// What broke.
        faults: Vec<SchemaFault>,
    },
    /// The caller may not, judged on the locked row.
    #[error("{permission} is required on {resource}")]
    Denied {
        /// What they lack.
        permission: Permission,
        /// On what.
        resource: Resource,
    },
    /// The entity's state does not allow the wish.
    #[error("{0}")]
    Illegal(Illegal),
    /// The claim is over, or another one has been made since.
    #[error("the fencing token is not that of the active claim; the newest is {newest}")]
    StaleFencingToken {
        /// The task's newest.
        newest: i64,
    },
    /// A gate holds the task.
    #[error("the task waits for {} approvals", .0.len())]
    Gated(Vec<ApprovalId>),
    /// Somebody has decided before, or the approval was cancelled or has expired.
    #[error("the approval is {0}")]
    AlreadyDecided(ApprovalStatus),
    /// The approval is somebody else's to decide.
    #[error("the approval is not the caller's to decide")]
    NotEligible,
    /// The scopes of the caller's token do not reach this permission, whatever its principal holds.
    #[error("the token's scopes do not reach {0}; {scope} does", scope = .0.scope().as_str())]
    BeyondScope(Permission),
    /// An external decision point has to say first; nothing happened.
    #[error("no decision on {} questions yet", .0.len())]
    Undecided(Vec<Question>),
    /// `If-Match` names another version.
    #[error("the resource is at version {current}")]
    VersionConflict {
        /// The version it has.
        current: i64,
    },
    /// An event with this id and other content exists.
    #[error("event {0} exists with other content")]
    EventIdConflict(EventId),
    /// The idempotency key was used for something else.
    #[error("the idempotency key was used with another request or principal")]
    IdempotencyConflict,
    /// The key's first request has not ended.
    #[error("the first request with this idempotency key is still running")]
    IdempotencyInFlight,
    /// The position lies ahead of the journal, or the cursor names another one.
    #[error("the cursor belongs to another journal or lies ahead of this one")]
    CursorFromOtherJournal,
    /// Retention has deleted the position.
    #[error("retention has deleted the cursor's position")]
    CursorBelowFloor {
        /// The cursor of the first position that can be read after.
        floor: String,
    },
    /// A prune would pass consumers that have yet to read, the furthest behind first.
    #[error("retention would pass {}", .0.iter().map(|b| b.name.as_str()).collect::<Vec<_>>().join(", "))]
    RetentionBlocked(Vec<Blocker>),
    /// The database cannot be reached or is overloaded; nothing happened.
    #[error("database unavailable: {0}")]
    Unavailable(String),
    /// The connection was lost while committing: it may have happened.
    #[error("the connection was lost while committing")]
    OutcomeUnknown,
    /// The unit must run again.
    #[error("the transaction must be repeated: {0}")]
    Repeat(String),
    /// A uniqueness rule of this name was broken.
    #[error("not unique: {0}")]
    NotUnique(String),
    /// A stored row is not what the code wrote.
    #[error("corrupt row: {0}")]
    Corrupt(String),
    /// The database refused a statement.
    #[error("database error: {0}")]
    Database(String),
    /// A unit of work broke its rules.
    #[error("{0}")]
    Panicked(String),
    /// The options cannot work; for the operator.
    #[error("{0}")]
    Configuration(String),
}

impl Error {
    /// The other error, when this says that something is missing.
    pub(crate) fn if_not_found(self, other: Self) -> Self {
        if matches!(self, Self::NotFound(_)) { other } else { self }
    }

    pub(crate) fn corrupt_column(i: usize, found: &str) -> Self {
        Self::Corrupt(format!("column {i}: {found}"))
    }

    pub(crate) fn gone() -> Self {
        Self::Unavailable("the connection is gone".into())
    }

    pub(crate) fn is_worth_repeating(&self) -> bool {
        matches!(self, Self::Repeat(_))
    }

    /// What breaking a uniqueness rule means to the caller.
    pub(crate) fn unique_means(self, message: &str) -> Self {
        match self {
            Self::NotUnique(_) => Self::Conflict(message.to_owned()),
            other => other,
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            return if error.is_closed()
                || std::error::Error::source(&error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
            {
                Self::Unavailable(error.to_string())
            } else {
                Self::Database(chain(&error))
            };
        };
        let text = format!("{}: {}", db.code().code(), db.message());
        match db.code() {
            &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => Self::Repeat(text),
            // A concurrent unit appended the same id: the repeat finds it.
            &SqlState::UNIQUE_VIOLATION if db.constraint() == Some("event_by_id") => Self::Repeat(text),
            &SqlState::UNIQUE_VIOLATION => Self::NotUnique(db.constraint().unwrap_or_default().to_owned()),
            &SqlState::LOCK_NOT_AVAILABLE
            | &SqlState::QUERY_CANCELED
            | &SqlState::ADMIN_SHUTDOWN
            | &SqlState::CRASH_SHUTDOWN
            | &SqlState::CANNOT_CONNECT_NOW
            | &SqlState::TOO_MANY_CONNECTIONS
            | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Self::Unavailable(text),
            _ => Self::Database(text),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::Unavailable(chain(&error))
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ffi;
        let Some(code) = error.sqlite_error().map(|e| e.extended_code) else {
            return Self::Database(error.to_string());
        };
        match code {
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => Self::NotUnique(error.to_string()),
            _ if matches!(
                code & 0xff,
                ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_FULL | ffi::SQLITE_IOERR
            ) =>
            {
                Self::Unavailable(error.to_string())
            }
            _ => Self::Database(error.to_string()),
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
