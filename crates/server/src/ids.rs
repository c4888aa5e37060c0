//! The one home of fresh ids.
//!
//! Everything else takes an id as an argument. It must never be used where an id has to be found again: an id made
//! here is new each time.

use uuid::Uuid;

/// A fresh UUIDv7.
#[expect(clippy::disallowed_methods, reason = "the one home of fresh ids")]
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}
