//! The one place that reads the clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use courant_api::Timestamp;

/// The present.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // The runtime's clock is the system's, unless a test drives it; then the time of day goes with it.
    let (driven, real) = (tokio::time::Instant::now().into_std(), Instant::now());
    let ahead = driven.saturating_duration_since(real);
    let behind = real.saturating_duration_since(driven);
    let micros = (since + ahead).saturating_sub(behind).as_micros();
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
