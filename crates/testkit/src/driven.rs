//! A clock that stands still until the test moves it.

use std::sync::mpsc;
use std::time::Duration;

/// The runtime's clock, in the test's hands: it neither goes by itself nor jumps ahead while everybody waits.
#[derive(Debug)]
pub struct DrivenClock {
    _held: mpsc::Sender<()>,
}

impl DrivenClock {
    /// Takes the clock. Only a runtime of one thread can give it away; real sockets and files go on meanwhile.
    pub fn take() -> Self {
        tokio::time::pause();
        let (held, released) = mpsc::channel::<()>();
        // The runtime jumps to the next timer when nothing else is to be done, but not while something blocks.
        tokio::task::spawn_blocking(move || released.recv());
        Self { _held: held }
    }

    /// Lets this much time pass, all at once, and the millisecond more that timers may be late.
    pub async fn pass(&self, time: Duration) {
        tokio::time::advance(time + Duration::from_millis(1)).await;
    }

    /// Lets it go by itself again, from where it stands.
    pub fn release(self) {
        tokio::time::resume();
    }
}
