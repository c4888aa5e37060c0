//! The engine itself: one step, and the loop around it.
//!
//! Only a read, a load or a wait is ever given up for a stop; a page that is being applied is waited for.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use super::{Applied, Batch, DrainError, Options, Progress, Refused, Sink, Source, SourceError, Start};
use crate::backoff::Backoff;
use crate::error::chain;

/// Runs one consumer: one source, one sink, one position.
#[derive(Debug)]
pub struct Engine<S: Source, K> {
    source: S,
    sink: K,
    options: Options,
    backoff: Backoff,
    stored: Stored<S::Position>,
    progress: watch::Sender<Progress>,
}

/// The sink's position, as far as it is known.
#[derive(Debug, Default)]
enum Stored<P> {
    /// Not loaded yet, or it may have changed unseen.
    #[default]
    Unknown,
    /// As last seen.
    Known(Option<P>),
}

/// How a step went when nothing failed.
enum Step {
    /// Reading on at once may give more.
    More,
    /// Nothing more for now.
    End,
    /// Somebody else holds the position and has not moved it yet.
    Contended,
    /// A stop came before anything was applied.
    Stopped,
}

impl<S, K> Engine<S, K>
where
    S: Source,
    K: Sink<S::Item, S::Position>,
{
    /// An engine that has not read yet.
    pub fn new(source: S, sink: K, options: Options) -> Self {
        let backoff = Backoff::new(options.retry_initial, options.retry_max);
        Self { source, sink, options, backoff, stored: Stored::Unknown, progress: watch::Sender::default() }
    }

    /// Follows how the engine stands.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The source and the sink.
    pub fn into_parts(self) -> (S, K) {
        (self.source, self.sink)
    }

    /// Consumes until `stop`, which finishes the page in hand, or until the source refuses.
    ///
    /// Any change of `wake` has the source read again, whenever it comes; its value does not matter. Once all senders
    /// are gone only the poll interval is left. May be dropped at any await and run again.
    pub async fn run<W>(&mut self, mut wake: watch::Receiver<W>, stop: CancellationToken) -> Result<(), Refused> {
        while !stop.is_cancelled() {
            // Before the read, so that a wake that comes while reading or applying still counts.
            wake.mark_unchanged();
            match self.step(&stop).await {
                Ok(Step::More) => {}
                Ok(Step::End) => wait(self.options.poll_interval, &mut wake, &stop).await,
                Ok(Step::Contended) => self.pause(Duration::ZERO, &stop).await,
                Ok(Step::Stopped) => break,
                Err(DrainError::Source(SourceError::Refused(cause))) => {
                    let text = chain(&*cause);
                    error!(consumer = self.options.name, error = text, "the source refused; the consumer ends");
                    self.progress.send_modify(|p| {
                        p.refused = true;
                        p.last_error = Some(text);
                    });
                    return Err(Refused(cause));
                }
                Err(failure) => {
                    let at_least = match &failure {
                        DrainError::Source(SourceError::Failed { retry_after, .. }) => retry_after.unwrap_or_default(),
                        _ => Duration::ZERO,
                    };
                    self.failed(&failure);
                    self.pause(at_least, &stop).await;
                }
            }
        }
        Ok(())
    }

    /// Handles all that is readable now and returns how many items that were. The first failure ends it: what was
    /// handled before stays handled.
    pub async fn drain(&mut self) -> Result<u64, DrainError> {
        let never = CancellationToken::new();
        let before = self.progress.borrow().handled;
        loop {
            match self.step(&never).await {
                Ok(Step::More) => {}
                Ok(Step::Contended) => self.pause(Duration::ZERO, &never).await,
                Ok(Step::End | Step::Stopped) => return Ok(self.progress.borrow().handled - before),
                Err(failure) => {
                    self.failed(&failure);
                    return Err(failure);
                }
            }
        }
    }

    /// Reads one page and has it applied.
    async fn step(&mut self, stop: &CancellationToken) -> Result<Step, DrainError> {
        // Taken, not borrowed: if this future is dropped while the sink works, the position is unknown.
        let from = match std::mem::take(&mut self.stored) {
            Stored::Known(position) => position,
            Stored::Unknown => match stop.run_until_cancelled(self.sink.load()).await {
                Some(loaded) => loaded.map_err(|e| DrainError::Sink(e.into()))?,
                None => return Ok(Step::Stopped),
            },
        };
        let Some(batch) = stop.run_until_cancelled(page(&self.source, &self.options, from.as_ref())).await else {
            return Ok(Step::Stopped);
        };
        let batch = batch?;

        let moves = from.as_ref() != Some(&batch.next);
        if batch.items.is_empty() && !moves {
            // A source that has more but cannot get there would spin; waiting is as good.
            self.stored = Stored::Known(from);
            self.succeeded(0, !batch.has_more);
            return Ok(Step::End);
        }
        let (next, handled, has_more) = (batch.next.clone(), batch.items.len(), batch.has_more);
        match self.sink.apply(from.as_ref(), batch).await.map_err(|e| DrainError::Sink(e.into()))? {
            Applied::Moved => {
                self.stored = Stored::Known(Some(next));
                self.succeeded(handled, !has_more);
                Ok(if has_more { Step::More } else { Step::End })
            }
            Applied::Stale => self.reload(from.as_ref(), stop).await,
        }
    }

    /// Somebody else moved the position: goes on from where it stands now.
    async fn reload(&mut self, from: Option<&S::Position>, stop: &CancellationToken) -> Result<Step, DrainError> {
        let Some(loaded) = stop.run_until_cancelled(self.sink.load()).await else {
            return Ok(Step::Stopped);
        };
        let loaded = loaded.map_err(|e| DrainError::Sink(e.into()))?;
        let moved = loaded.as_ref() != from;
        debug!(consumer = self.options.name, moved, "another consumer of this name holds the position");
        self.progress.send_modify(|p| {
            p.stale += 1;
            p.position = loaded.as_ref().map(ToString::to_string);
        });
        self.stored = Stored::Known(loaded);
        if moved {
            self.backoff.reset();
        }
        Ok(if moved { Step::More } else { Step::Contended })
    }

    fn succeeded(&mut self, handled: usize, caught_up: bool) {
        self.backoff.reset();
        let position = match &self.stored {
            Stored::Known(Some(position)) => Some(position.to_string()),
            _ => None,
        };
        self.progress.send_modify(|p| {
            p.position = position;
            p.handled += handled as u64;
            p.caught_up = caught_up;
            p.last_success = Some(Instant::now());
            p.failures = 0;
            p.last_error = None;
        });
    }

    fn failed(&mut self, failure: &DrainError) {
        let text = chain(failure);
        self.progress.send_modify(|p| {
            p.failures = p.failures.saturating_add(1);
            p.last_error = Some(text.clone());
        });
        let failures = self.progress.borrow().failures;
        warn!(consumer = self.options.name, failures, error = text, "the consumer failed and will try again");
    }

    async fn pause(&mut self, at_least: Duration, stop: &CancellationToken) {
        let pause = self.backoff.pause().max(at_least);
        stop.run_until_cancelled(sleep(pause)).await;
    }
}

// Functions of their own: a borrow of the engine held over an await would ask every sink to be `Sync`.

async fn page<S: Source>(
    source: &S,
    options: &Options,
    from: Option<&S::Position>,
) -> Result<Batch<S::Item, S::Position>, SourceError> {
    if from.is_none() && options.start == Start::Latest {
        // Applied like any page, so that the start is stored before anything can be missed.
        let next = source.latest().await?;
        return Ok(Batch { items: Vec::new(), next, has_more: true });
    }
    source.read(from, options.page_size).await
}

async fn wait<W>(poll_interval: Duration, wake: &mut watch::Receiver<W>, stop: &CancellationToken) {
    let woken = async {
        if wake.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = woken => {}
        () = sleep(poll_interval) => {}
    }
}
