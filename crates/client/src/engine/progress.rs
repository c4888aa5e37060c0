//! How far an engine has come, for readiness checks, metrics and tests.
//!
//! A snapshot that is published after every step; it must never be what a decision of the engine rests on.

use tokio::time::Instant;

/// What an engine has done and how it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The stored position as last known.
    pub position: Option<String>,
    /// Items handled since the engine was made.
    pub handled: u64,
    /// Pages that somebody else had moved past, since the engine was made.
    pub stale: u64,
    /// Whether the last page reached the end of the source.
    pub caught_up: bool,
    /// When a page was last read and handled, or found to hold nothing new.
    pub last_success: Option<Instant>,
    /// Failures in a row; 0 when all is well.
    pub failures: u32,
    /// The last of these failures.
    pub last_error: Option<String>,
    /// Whether the source refused, which ended the engine.
    pub refused: bool,
}
