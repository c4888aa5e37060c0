//! Runs workers: names them, restarts one that panics, says how they stand, and ends them in order.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;

/// A worker is failing when it has not succeeded for this long.
const GRACE: Duration = Duration::from_secs(30);
const RESTART: Duration = Duration::from_secs(1);

/// How the workers stand.
#[derive(Debug, Default)]
pub struct Health(Mutex<BTreeMap<&'static str, Standing>>);

#[derive(Debug)]
struct Standing {
    failing_since: Option<Instant>,
}

impl Health {
    /// Notes that a worker did its work.
    pub fn succeeded(&self, worker: &'static str) {
        self.set(worker, |_| None);
    }

    /// Notes that a worker could not do its work.
    pub fn failed(&self, worker: &'static str) {
        metrics::counter!("courant_worker_failures_total", "worker" => worker).increment(1);
        self.set(worker, |since| since.or_else(|| Some(Instant::now())));
    }

    fn set(&self, worker: &'static str, change: impl Fn(Option<Instant>) -> Option<Instant>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = all.entry(worker).or_insert(Standing { failing_since: None });
        standing.failing_since = change(standing.failing_since);
    }

    /// The workers that have been failing for a while, and without which the server is not fit to serve. Retention is
    /// none of them: while it waits, reading and appending work as before, and its failures are counted.
    pub fn failing(&self) -> Vec<&'static str> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let long = |s: &Standing| s.failing_since.is_some_and(|since| since.elapsed() >= GRACE);
        all.iter().filter(|(name, s)| **name != "retention" && long(s)).map(|(name, _)| *name).collect()
    }
}

/// The running workers of one server.
pub struct Workers {
    tasks: TaskTracker,
    stop: CancellationToken,
    app: Arc<App>,
}

impl Workers {
    pub(super) fn new(app: &Arc<App>) -> Self {
        Self { tasks: TaskTracker::new(), stop: app.stop.clone(), app: Arc::clone(app) }
    }

    /// Runs `worker` until it ends; one that panics is started again.
    pub(super) fn spawn<F, W>(&mut self, name: &'static str, worker: W)
    where
        W: Fn() -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (app, stop, tasks) = (Arc::clone(&self.app), self.stop.clone(), self.tasks.clone());
        self.tasks.spawn(async move {
            while let Err(error) = tasks.spawn(worker()).await {
                tracing::error!(worker = name, %error, "a worker panicked and is started again");
                app.health.failed(name);
                tokio::select! { () = sleep(RESTART) => {}, () = stop.cancelled() => break }
            }
        });
    }

    /// Runs `activation` now and then every `interval`, until the server ends.
    pub(super) fn every<F, A, E>(&mut self, name: &'static str, interval: Duration, activation: A)
    where
        A: Fn(Arc<App>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        let (app, stop) = (Arc::clone(&self.app), self.stop.clone());
        self.spawn(name, move || {
            let (app, stop, activation) = (Arc::clone(&app), stop.clone(), activation.clone());
            async move {
                while !stop.is_cancelled() {
                    match activation(Arc::clone(&app)).await {
                        Ok(()) => app.health.succeeded(name),
                        Err(error) => {
                            tracing::warn!(worker = name, %error, "background work failed; it is repeated");
                            app.health.failed(name);
                        }
                    }
                    tokio::select! { () = sleep(interval) => {}, () = stop.cancelled() => {} }
                }
            }
        });
    }

    /// Waits until all have ended, after the server was told to stop.
    pub async fn ended(self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_worker_is_failing_only_after_a_while_and_not_after_a_success() {
        let health = Health::default();
        health.failed("deliver");
        assert!(health.failing().is_empty());
        tokio::time::advance(GRACE).await;
        assert_eq!(health.failing(), ["deliver"]);
        health.failed("deliver");
        assert_eq!(health.failing(), ["deliver"]);
        health.succeeded("deliver");
        assert!(health.failing().is_empty());
    }
}
