//! Waiting for a state that can only be asked for, with one generous bound for all tests.
//!
//! What tells of itself, over a channel or as a request, is awaited there and not asked for here.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Longer than anything that works takes on any machine.
pub const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks until there is an answer, which it gives. Panics naming `what` when there is none in a very long time.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < until, "waited in vain for {what}");
        sleep(PAUSE).await;
    }
}
