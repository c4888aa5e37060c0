//! Background work. It takes no input and reads the tables, so restart, second server and happy path are one path.

mod announcer;
mod deliver;
mod digest;
mod dispatch;
mod due;
mod lanes;
mod notifier;
mod prune;
mod runner;
mod server_row;
mod sweep;

use std::sync::Arc;

use uuid::Uuid;

pub use runner::{Health, Workers};

use crate::app::App;

/// How long a delivery may be in one worker's hands.
const STALE: std::time::Duration = std::time::Duration::from_mins(5);

/// Limits of the background work.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Attempts of a delivery before it is given up.
    pub max_attempts: u32,
    /// How long dead deliveries are kept.
    pub delivery_retention: std::time::Duration,
    /// How long it is kept what became of attempts.
    pub history_retention: std::time::Duration,
}

/// Starts all of it for the server that is registered as `server`.
pub fn start(app: &Arc<App>, server: Uuid, limits: Limits) -> Workers {
    let mut workers = Workers::new(app);
    let alive = server_row::start(&mut workers, app, server);
    notifier::start(&mut workers, app, server);
    announcer::start(&mut workers, app);
    workers.every("live", std::time::Duration::from_secs(1), |app| async move {
        app.live.follow(&app.store, &app.stop).await
    });
    deliver::start(&mut workers, app, server, alive, limits);
    due::start(&mut workers);
    digest::start(&mut workers);
    prune::start(&mut workers);
    sweep::start(&mut workers, app, limits);
    workers
}
