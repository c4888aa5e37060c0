//! The error codes: one closed table that clients may match on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of every refusal: `{"error":{"code","message","details"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// The inside of an [`ErrorBody`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail {
    /// Stable; match on this.
    pub code: ErrorCode,
    /// For people; may change.
    pub message: String,
    /// Facts of this refusal, by code; an empty object when there are none.
    pub details: serde_json::Map<String, serde_json::Value>,
}

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $status:literal, $meaning:literal;)+) => {
        /// A stable code of the error table, `contract/errors.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorCode {
            $(#[doc = $meaning] $name,)+
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The HTTP status that carries this code.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status),+ }
            }

            /// When it is answered, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning),+ }
            }
        }
    };
}

error_codes! {
    InvalidRequest = 400, "A parameter, field or header is unknown, missing, of the wrong type or out of range, or the body is not JSON text; the message names it.";
    Unauthenticated = 401, "No credential, or one that is unknown, expired or revoked.";
    PermissionDenied = 403, "The caller lacks the permission on this resource, or the token's scope does not reach it.";
    NotEligible = 403, "The approval names another principal, or a role that the caller does not hold in its workspace.";
    PurposeRefRequired = 403, "A token for one decision must name it: `purpose_ref` `approval:<id>`.";
    OutsidePurpose = 403, "A token for one decision may do nothing else.";
    ReservedEventType = 403, "The type, or its first segment, belongs to the core catalogue.";
    NotFound = 404, "No such resource in the caller's tenant.";
    MethodNotAllowed = 405, "The path exists, but not with this method.";
    RequestTimeout = 408, "The body did not arrive in time.";
    EventIdConflict = 409, "An event with this id and other content exists.";
    IdempotencyConflict = 409, "The idempotency key was used with another body, route or principal.";
    IdempotencyInFlight = 409, "The first request with this idempotency key is still running.";
    IncompatibleSchemaVersion = 409, "A new version of an event type may only add optional fields; details name what broke.";
    Conflict = 409, "The resource exists already or its state does not allow this; the message says why.";
    IllegalTransition = 409, "The entity's state does not allow the wish; details.state and details.wish name both.";
    StaleFencingToken = 409, "The claim is over, or another one has been made since; details.fencingToken is the task's newest.";
    GatedByApproval = 409, "A gate holds the task; details.pendingApprovals are the approvals that it waits for.";
    ApprovalAlreadyDecided = 409, "Somebody has decided, cancelled or let the approval expire before; details.status says which.";
    RetentionBlockedByConsumer = 409, "The prune would pass a consumer that has yet to read; details.consumers name at most 20, the furthest behind first.";
    VersionConflict = 412, "If-Match names another version than the resource has.";
    PayloadTooLarge = 413, "The body exceeds the route's limit.";
    UnsupportedMediaType = 415, "The body is not application/json.";
    InvalidBody = 422, "The body is JSON that cannot be kept: duplicate keys, \\u0000, lone surrogates, numbers out of range or too deep; details hold a JSON pointer for each fault.";
    InvalidCursor = 422, "The cursor is malformed.";
    UnsupportedCursorVersion = 422, "The cursor has a later format than this server knows.";
    CursorFromOtherJournal = 422, "The cursor belongs to another journal, or lies ahead of this one.";
    CursorBelowJournalFloor = 422, "Retention has deleted the cursor's position; details.floorCursor is the first readable one.";
    ConflictingCursors = 422, "More than one of cursor, before, tail and since.";
    InvalidEventTypeFilter = 422, "A type prefix is malformed, or there are more than 20.";
    IdempotencyKeyRequired = 422, "A token for one decision is used under an Idempotency-Key.";
    UnknownEventType = 422, "The type is not in the catalogue.";
    InvalidEventPayload = 422, "A payload fails its schema or cannot be kept; details.errors hold a JSON pointer for each fault.";
    InvalidSchema = 422, "The schema of an event type is not a JSON Schema 2020-12 that this server accepts.";
    RateLimited = 429, "Too many requests; Retry-After says when to come back.";
    Internal = 500, "A fault of the server; the X-Request-ID header finds it in the log.";
    AuthorizationUnavailable = 503, "The policy service has given no decision; safe to repeat.";
    Unavailable = 503, "The server or its database cannot take the request now; safe to repeat.";
    OutcomeUnknown = 503, "The connection to the database was lost at commit: it may or may not have happened; safe to repeat under its key or ids.";
}

impl ErrorCode {
    /// The code as it is written on the wire.
    pub fn as_str(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_in_snake_case() {
        assert_eq!(ErrorCode::CursorFromOtherJournal.as_str(), "cursor_from_other_journal");
        assert!(ErrorCode::ALL.iter().all(|c| (400..600).contains(&c.status())));
    }
}
