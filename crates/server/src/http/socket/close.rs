//! How sockets end, and the close code of each end.

use courant_api::ErrorCode;

use crate::http::error::ApiError;

/// Why a socket ends.
#[derive(Debug)]
pub enum Ending {
    /// As a request would be refused or fail.
    Refused(ApiError),
    /// The server is going away.
    Stopping,
    /// There are too many sockets.
    Full,
    /// The peer sent a frame over the limit.
    TooBig,
    /// The peer broke the protocol.
    Broken,
    /// The peer closes.
    Closed,
    /// Nothing has come from the peer, or been taken by it, for too long.
    Silent,
    /// The connection is gone.
    Lost,
}

/// The close codes, when each is sent, and whether trying again helps.
pub const CLOSE_CODES: &[(u16, &str, &str)] = &[
    (4400, "The cursor, the filter or a parameter is refused; a cursor that is gone or of another journal, too.", "no"),
    (
        4401,
        "No credential or no good one; also when it expires or is revoked while connected.",
        "after a new credential",
    ),
    (4403, "The caller lacks `events.read` there; also when that is lost while connected.", "no"),
    (4404, "There is no such workspace.", "no"),
    (
        4503,
        "Something that has to decide or answer cannot now: the policy service or the database.",
        "yes, with back-off",
    ),
    (1001, "The server is going away.", "yes, with back-off"),
    (1002, "The client broke the WebSocket protocol.", "no"),
    (1009, "The client sent a frame over 4 KiB.", "no"),
    (1011, "A fault of the server.", "yes, with back-off"),
    (1013, "The server has as many sockets as it may, or the key makes too many requests.", "yes, with back-off"),
];

impl From<ApiError> for Ending {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl Ending {
    /// The close code and its reason, an error code; none when there is nobody to tell.
    pub fn close(&self) -> Option<(u16, String)> {
        let (code, reason) = match self {
            Self::Refused(error) => (refusal(error.code().status()), error.code()),
            Self::Stopping => (1001, ErrorCode::Unavailable),
            Self::Full => (1013, ErrorCode::Unavailable),
            Self::TooBig => (1009, ErrorCode::PayloadTooLarge),
            Self::Broken => (1002, ErrorCode::InvalidRequest),
            Self::Closed | Self::Silent | Self::Lost => return None,
        };
        Some((code, reason.as_str()))
    }

    /// Whether the peer can still be expected to answer in the protocol.
    pub(super) fn is_orderly(&self) -> bool {
        !matches!(self, Self::TooBig | Self::Broken)
    }

    /// Names it in the metrics.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Closed => "peer".to_owned(),
            Self::Silent => "silent".to_owned(),
            Self::Lost => "lost".to_owned(),
            told => told.close().map(|(code, _)| code.to_string()).unwrap_or_default(),
        }
    }
}

/// The close code for an error that HTTP would answer with `status`.
fn refusal(status: u16) -> u16 {
    match status {
        401 | 403 | 404 | 503 => 4000 + status,
        429 => 1013,
        400..=499 => 4400,
        _ => 1011,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(code: ErrorCode) -> (u16, String) {
        Ending::Refused(ApiError::new(code, "no")).close().unwrap()
    }

    #[test]
    fn a_refusal_is_told_by_a_close_code_and_its_error_code() {
        for (error, close) in [
            (ErrorCode::InvalidRequest, 4400),
            (ErrorCode::InvalidCursor, 4400),
            (ErrorCode::UnsupportedCursorVersion, 4400),
            (ErrorCode::CursorFromOtherJournal, 4400),
            (ErrorCode::CursorBelowJournalFloor, 4400),
            (ErrorCode::InvalidEventTypeFilter, 4400),
            (ErrorCode::Unauthenticated, 4401),
            (ErrorCode::PermissionDenied, 4403),
            (ErrorCode::NotFound, 4404),
            (ErrorCode::RateLimited, 1013),
            (ErrorCode::Unavailable, 4503),
            (ErrorCode::Internal, 1011),
        ] {
            assert_eq!(code(error), (close, error.as_str()));
        }
    }

    #[test]
    fn every_code_that_can_be_sent_is_in_the_table() {
        let refused = ErrorCode::ALL.iter().map(|&error| Ending::Refused(ApiError::new(error, "no")));
        for ending in refused.chain([Ending::Stopping, Ending::Full, Ending::TooBig, Ending::Broken]) {
            let (code, reason) = ending.close().unwrap();
            assert!(CLOSE_CODES.iter().any(|(known, ..)| *known == code), "{code}");
            assert!(reason.len() <= 123, "a reason is at most 123 bytes: {reason}");
        }
    }
}
