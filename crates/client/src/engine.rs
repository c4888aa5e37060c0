//! The loop of a consumer: read a page after the stored position, have it handled, move on, wait.
//!
//! It knows neither where the pages come from nor what becomes of them: a [`Source`] reads, a [`Sink`] handles a page
//! and stores the position that follows it, as one step of its own. The [`Engine`] promises order, that a wake is never
//! lost, that a failure re-reads from the stored position after a growing pause, and that a stop finishes the page in
//! hand. It must never move a position itself, and never apply a page to any position but the one it was read from.

mod progress;
mod run;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt::Display;
use std::time::Duration;

pub use progress::Progress;
pub use run::Engine;

/// Any error, as the engine carries it.
pub type Cause = Box<dyn Error + Send + Sync>;

/// A page of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<T, P> {
    /// What to handle, in order; may be empty.
    pub items: Vec<T>,
    /// The position after all of it and after everything the source left out.
    pub next: P,
    /// Whether reading on at once may give more.
    pub has_more: bool,
}

/// Where pages come from. Reading has no effect, so the engine may drop a read half way.
pub trait Source: Send + Sync {
    /// What is read.
    type Item: Send;
    /// A place in the source.
    type Position: Clone + PartialEq + Display + Send + Sync;

    /// The page after a position, or the first one.
    fn read(
        &self,
        after: Option<&Self::Position>,
        limit: u32,
    ) -> impl Future<Output = Result<Batch<Self::Item, Self::Position>, SourceError>> + Send;

    /// The position after everything there is now; asked only for [`Start::Latest`].
    fn latest(&self) -> impl Future<Output = Result<Self::Position, SourceError>> + Send;
}

/// Why a source gave no page.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It never will: the engine ends.
    #[error("{0}")]
    Refused(#[source] Cause),
    /// Not now: the engine asks again after a pause.
    #[error("{cause}")]
    Failed {
        /// What happened.
        #[source]
        cause: Cause,
        /// The least pause that the source asks for.
        retry_after: Option<Duration>,
    },
}

impl SourceError {
    /// An error that asking again cannot mend.
    pub fn refused(cause: impl Into<Cause>) -> Self {
        Self::Refused(cause.into())
    }

    /// An error that may pass.
    pub fn failed(cause: impl Into<Cause>) -> Self {
        Self::Failed { cause: cause.into(), retry_after: None }
    }
}

/// What handles pages and keeps the position.
///
/// The engine may be dropped at any await, so whatever `apply` does must stand or fall as a whole together with the
/// move of the position.
pub trait Sink<T, P>: Send {
    /// What it fails with. Every failure is taken to pass: the page is read again from what [`load`](Self::load) says.
    type Error: Into<Cause> + Send;

    /// The stored position; `None` before the first page.
    fn load(&mut self) -> impl Future<Output = Result<Option<P>, Self::Error>> + Send;

    /// Handles the page that was read after `from` and stores `batch.next`, or answers [`Applied::Stale`] and does
    /// nothing when the stored position is no longer `from`. An empty page only moves the position.
    fn apply(
        &mut self,
        from: Option<&P>,
        batch: Batch<T, P>,
    ) -> impl Future<Output = Result<Applied, Self::Error>> + Send;
}

/// What became of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It is handled and the position stands after it.
    Moved,
    /// Somebody else moved the position, or is about to; nothing was done.
    Stale,
}

/// Where a consumer without a stored position begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the first item there is.
    #[default]
    Earliest,
    /// After what is there at the first start; that position is stored at once.
    Latest,
}

/// How an engine behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The consumer's name in logs.
    pub name: String,
    /// Most items asked for at once.
    pub page_size: u32,
    /// How long to wait for a wake before reading anyway.
    pub poll_interval: Duration,
    /// The pause after a first failure; it doubles with each further one.
    pub retry_initial: Duration,
    /// The longest pause.
    pub retry_max: Duration,
    /// Where to begin when no position is stored.
    pub start: Start,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "consumer".to_owned(),
            page_size: 200,
            poll_interval: Duration::from_secs(30),
            retry_initial: Duration::from_secs(1),
            retry_max: Duration::from_mins(1),
            start: Start::Earliest,
        }
    }
}

/// The source refused: the engine ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(#[source] pub Cause);

/// Why [`Engine::drain`] stopped early.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// The source refused, or failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The sink failed.
    #[error("{0}")]
    Sink(#[source] Cause),
}
