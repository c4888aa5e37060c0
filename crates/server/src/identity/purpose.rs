//! What a token for one decision may be used for, judged before anything of the request is read.

use courant_api::{ApprovalId, ErrorCode};
use courant_core::access::Purpose;

/// The requests that decide an approval.
const DECISIONS: [&str; 2] = ["/api/v1/approvals/{id}:approve", "/api/v1/approvals/{id}:reject"];
const APPROVALS: &str = "/api/v1/approvals/";

/// Why a token is not for a request; none when it is. `path` is the request's own, `template` its route's.
pub fn refusal(purpose: Purpose, template: &str, path: &str, is_keyed: bool) -> Option<ErrorCode> {
    let Purpose::Approval(purpose) = purpose else { return Some(ErrorCode::PurposeRefRequired) };
    let named = path.strip_prefix(APPROVALS).and_then(|rest| rest.split('/').next());
    let same = named.and_then(|id| id.parse::<ApprovalId>().ok()) == Some(purpose);
    if !DECISIONS.contains(&template) || !same {
        return Some(ErrorCode::OutsidePurpose);
    }
    (!is_keyed).then_some(ErrorCode::IdempotencyKeyRequired)
}

#[cfg(test)]
mod tests {
    use super::*;
    use courant_api::ErrorCode as E;

    #[test]
    fn a_token_for_one_decision_does_nothing_else() {
        let id = "019a2f51-d37a-7535-b849-b0ca43e91613";
        let other = "019a2f51-d37a-7535-b849-b0ca43e91614";
        let purpose = Purpose::Approval(id.parse().unwrap());
        let at = |id: &str, verb: &str| format!("/api/v1/approvals/{id}/~{verb}");
        let [approve, reject] = DECISIONS;
        for (purpose, template, path, is_keyed, expected) in [
            (purpose, approve, at(id, "approve"), true, None),
            (purpose, reject, at(id, "reject"), true, None),
            (purpose, approve, at(id, "approve"), false, Some(E::IdempotencyKeyRequired)),
            (purpose, approve, at(other, "approve"), true, Some(E::OutsidePurpose)),
            (purpose, approve, at("not-an-id", "approve"), true, Some(E::OutsidePurpose)),
            (purpose, "/api/v1/approvals/{id}:cancel", at(id, "cancel"), true, Some(E::OutsidePurpose)),
            (purpose, "/api/v1/approvals/{id}", format!("/api/v1/approvals/{id}"), true, Some(E::OutsidePurpose)),
            (purpose, "/api/v1/events", "/api/v1/events".into(), true, Some(E::OutsidePurpose)),
            (Purpose::Unnamed, approve, at(id, "approve"), true, Some(E::PurposeRefRequired)),
            (Purpose::Unnamed, "/api/v1/events", "/api/v1/events".into(), false, Some(E::PurposeRefRequired)),
        ] {
            assert_eq!(refusal(purpose, template, &path, is_keyed), expected, "{template} {path}");
        }
    }
}
