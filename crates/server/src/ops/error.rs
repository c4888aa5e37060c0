//! From what the store says to what the caller is told.

use courant_api::ErrorCode;
use courant_core::catalogue::SchemaFault;
use courant_store::{Blocker, Error};
use serde_json::{Value, json};

use crate::http::ApiError;

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::NotFound(what) => Self::not_found(what),
            Error::Conflict(message) => Self::new(ErrorCode::Conflict, message),
            Error::Illegal(illegal) => Self::new(ErrorCode::IllegalTransition, text)
                .detail("state", illegal.state)
                .detail("wish", illegal.wish),
            Error::StaleFencingToken { newest } => {
                Self::new(ErrorCode::StaleFencingToken, text).detail("fencingToken", newest)
            }
            Error::Gated(approvals) => {
                let pending: Vec<_> = approvals.iter().map(ToString::to_string).collect();
                Self::new(ErrorCode::GatedByApproval, text).detail("pendingApprovals", pending)
            }
            Error::AlreadyDecided(status) => {
                Self::new(ErrorCode::ApprovalAlreadyDecided, text).detail("status", status.as_str())
            }
            Error::NotEligible => Self::new(ErrorCode::NotEligible, text),
            Error::Denied { .. } | Error::BeyondScope(_) => Self::new(ErrorCode::PermissionDenied, text),
            Error::Undecided(_) => Self::authorization_unavailable(text),
            Error::VersionConflict { current } => {
                Self::new(ErrorCode::VersionConflict, text).detail("currentVersion", current)
            }
            Error::EventIdConflict(id) => Self::new(ErrorCode::EventIdConflict, text).detail("id", id.to_string()),
            Error::IdempotencyConflict => Self::new(ErrorCode::IdempotencyConflict, text),
            Error::IdempotencyInFlight => Self::new(ErrorCode::IdempotencyInFlight, text),
            Error::CursorFromOtherJournal => Self::new(ErrorCode::CursorFromOtherJournal, text),
            Error::CursorBelowFloor { floor } => {
                Self::new(ErrorCode::CursorBelowJournalFloor, text).detail("floorCursor", floor)
            }
            Error::RetentionBlocked(blockers) => {
                let consumers: Vec<_> = blockers.iter().map(blocker).collect();
                Self::new(ErrorCode::RetentionBlockedByConsumer, text).detail("consumers", consumers)
            }
            Error::Invalid { field, message } => Self::invalid_field(&field, &message),
            Error::IncompatibleSchema { faults, .. } => {
                Self::new(ErrorCode::IncompatibleSchemaVersion, text).detail("errors", fault_list(&faults))
            }
            Error::OutcomeUnknown => Self::new(ErrorCode::OutcomeUnknown, text),
            Error::Unavailable(_) | Error::Repeat(_) => Self::unavailable(text),
            Error::NotUnique(_)
            | Error::Corrupt(_)
            | Error::Database(_)
            | Error::Panicked(_)
            | Error::Configuration(_) => Self::internal(text),
        }
    }
}

fn blocker(b: &Blocker) -> Value {
    json!({ "kind": b.kind, "name": b.name, "cursor": b.cursor, "expiresAt": b.expires_at })
}

/// Faults as they stand in `details.errors`.
pub(super) fn fault_list(faults: &[SchemaFault]) -> Value {
    faults.iter().map(|f| json!({ "pointer": f.pointer, "message": f.message })).collect()
}
