//! A fault that a test puts into a writing unit of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;

/// Where a writing unit of work fails. Its steps are its statements, the writing of its events and its commit; it fails
/// before one of them, so every step but the last is also seen to have been taken back.
#[derive(Clone, Debug, Default)]
pub struct Fault(Arc<AtomicUsize>);

impl Fault {
    /// The next unit fails before its step of this number, the first being 1. 0: none fails.
    pub fn set(&self, step: usize) {
        self.0.store(step, Ordering::SeqCst);
    }

    /// Whether a fault is set that no unit has met.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    /// Counts a step of a unit.
    pub(crate) fn step(&self) -> Result<(), Error> {
        let earlier = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if earlier == Ok(1) { Err(Error::Unavailable("a fault of a test".into())) } else { Ok(()) }
    }
}
