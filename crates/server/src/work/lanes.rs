//! Lanes: how many sends to one integration may be under way at once.
//!
//! A target that answers gets a wide lane. One whose attempts fail for now gets a narrow one, until it answers again; so
//! targets that hang hold few of the places, and nobody else waits for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use courant_api::IntegrationId;
use courant_core::delivery::FailureClass;
use courant_store::{Lanes as Bounds, Outcome};

/// Sends to one integration at once.
const WIDE: usize = 32;
const NARROW: usize = 1;

/// The lanes of one worker.
#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<HashMap<IntegrationId, Lane>>);

#[derive(Debug, Default)]
struct Lane {
    in_flight: usize,
    narrow: bool,
}

impl Lane {
    fn width(&self) -> usize {
        if self.narrow { NARROW } else { WIDE }
    }
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, HashMap<IntegrationId, Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the next claim may take.
    pub(super) fn bounds(&self) -> Bounds {
        let lanes = self.lock();
        let (mut closed, mut slow) = (Vec::new(), Vec::new());
        for (id, lane) in lanes.iter() {
            if lane.in_flight >= lane.width() {
                closed.push(*id);
            } else if lane.narrow {
                slow.push(*id);
            }
        }
        // A lane that is partly taken may so be overfilled by one claim, but not by a second.
        Bounds { closed, slow, most: i64::try_from(WIDE).unwrap_or(i64::MAX) }
    }

    /// Notes that a send begins.
    pub(super) fn enter(self: &Arc<Self>, id: IntegrationId) -> Place {
        self.lock().entry(id).or_default().in_flight += 1;
        Place { lanes: Arc::clone(self), id }
    }
}

/// One send in its lane.
#[derive(Debug)]
pub(super) struct Place {
    lanes: Arc<Lanes>,
    id: IntegrationId,
}

impl Place {
    /// Notes how the send ended (none: it was not made); whether the lane was full, so that others may wait for it.
    pub(super) fn leave(self, outcome: Option<&Outcome>) -> bool {
        let mut lanes = self.lanes.lock();
        let Some(lane) = lanes.get_mut(&self.id) else { return false };
        let was_full = lane.in_flight >= lane.width();
        lane.in_flight -= 1;
        match outcome {
            Some(Outcome::Sent) => lane.narrow = false,
            Some(Outcome::Retry { .. }) => lane.narrow = true,
            Some(Outcome::Dead { error, .. }) if error.class == FailureClass::Transient => lane.narrow = true,
            Some(Outcome::Dead { .. }) | None => {}
        }
        if lane.in_flight == 0 && !lane.narrow {
            lanes.remove(&self.id);
        }
        was_full
    }
}

#[cfg(test)]
mod tests {
    use courant_api::Timestamp;
    use courant_core::delivery::Failure;
    use uuid::Uuid;

    use super::*;

    fn retry() -> Outcome {
        Outcome::Retry { run_at: Timestamp::from_micros(0), error: Failure::new(FailureClass::Transient, "HTTP 503") }
    }

    #[test]
    fn a_full_lane_is_closed_until_a_send_ends() {
        let lanes = Arc::new(Lanes::default());
        let id = IntegrationId(Uuid::from_u128(1));
        let mut places: Vec<_> = (0..WIDE).map(|_| lanes.enter(id)).collect();
        assert_eq!(lanes.bounds().closed, [id]);
        assert!(places.remove(0).leave(Some(&Outcome::Sent)), "somebody may wait for it");
        assert!(lanes.bounds().closed.is_empty());
    }

    #[test]
    fn a_failing_target_has_a_narrow_lane_until_it_answers() {
        let lanes = Arc::new(Lanes::default());
        let id = IntegrationId(Uuid::from_u128(1));
        lanes.enter(id).leave(Some(&retry()));
        assert_eq!(lanes.bounds().slow, [id]);
        let place = lanes.enter(id);
        assert_eq!(lanes.bounds().closed, [id]);
        assert!(place.leave(Some(&Outcome::Sent)));
        let bounds = lanes.bounds();
        assert!(bounds.slow.is_empty() && bounds.closed.is_empty());
    }
}
