//! What a receiver's answer means, by its status alone; the body is not looked at.

use courant_api::Timestamp;
use courant_core::delivery::{Failure, FailureClass, Verdict, parse_retry_after};
use url::Url;

use crate::Response;

pub(super) fn judge(response: &Response, now: Timestamp) -> Verdict {
    let status = response.status;
    let failure = |class| Failure::new(class, format!("HTTP {status}"));
    let permanent = |class| Verdict::Permanent { error: failure(class) };
    match status {
        200..=299 => Verdict::Sent,
        300..=399 => Verdict::Permanent { error: redirect(response) },
        410 => Verdict::DisableIntegration { error: failure(FailureClass::Destination) },
        408 | 425 | 429 | 500.. => Verdict::Retry {
            after: response.retry_after.as_deref().and_then(|value| parse_retry_after(value, now.unix_seconds())),
            error: failure(FailureClass::Transient),
        },
        401 | 403 | 407 => permanent(FailureClass::Credential),
        404 => permanent(FailureClass::Destination),
        _ => permanent(FailureClass::Payload),
    }
}

/// Of `Location` only the host: its path may be a secret.
fn redirect(response: &Response) -> Failure {
    let location = response.location.as_deref().and_then(|text| Url::parse(text).ok());
    let host = location.as_ref().and_then(Url::host_str).filter(|host| host.len() <= 253);
    let to = host.map(|host| format!(" to {host}")).unwrap_or_default();
    Failure::new(FailureClass::Destination, format!("redirect{to} not followed: HTTP {}", response.status))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn answer(status: u16, retry_after: Option<&str>, location: Option<&str>) -> Verdict {
        let response = Response {
            status,
            retry_after: retry_after.map(str::to_owned),
            location: location.map(str::to_owned),
            body: b"ok".to_vec(),
        };
        judge(&response, Timestamp::from_micros(1_788_257_704_000_000))
    }

    #[test]
    fn only_two_hundreds_are_success() {
        for status in 100..=999 {
            assert_eq!(answer(status, None, None) == Verdict::Sent, (200..300).contains(&status), "{status}");
        }
    }

    #[test]
    fn gone_disables_the_integration() {
        let error = Failure::new(FailureClass::Destination, "HTTP 410");
        assert_eq!(answer(410, None, None), Verdict::DisableIntegration { error });
    }

    #[test]
    fn overload_is_retried_no_sooner_than_the_receiver_asks() {
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            let error = Failure::new(FailureClass::Transient, format!("HTTP {status}"));
            let after = Some(Duration::from_mins(2));
            assert_eq!(answer(status, Some("120"), None), Verdict::Retry { after, error: error.clone() });
            assert_eq!(
                answer(status, Some("Tue, 01 Sep 2026 10:17:04 GMT"), None),
                Verdict::Retry { after, error: error.clone() }
            );
            assert_eq!(answer(status, None, None), Verdict::Retry { after: None, error: error.clone() });
            assert_eq!(answer(status, Some("soon"), None), Verdict::Retry { after: None, error });
        }
    }

    #[test]
    fn other_refusals_are_permanent_and_say_who_can_mend_them() {
        for (status, class) in [
            (400, FailureClass::Payload),
            (401, FailureClass::Credential),
            (403, FailureClass::Credential),
            (404, FailureClass::Destination),
            (407, FailureClass::Credential),
            (409, FailureClass::Payload),
            (413, FailureClass::Payload),
            (422, FailureClass::Payload),
        ] {
            let error = Failure::new(class, format!("HTTP {status}"));
            assert_eq!(answer(status, Some("120"), None), Verdict::Permanent { error });
        }
    }

    #[test]
    fn a_redirect_fails_and_names_only_the_host() {
        let says = |location| match answer(302, None, location) {
            Verdict::Permanent { error } => error.text,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            says(Some("https://u:secret@login.example.com/secret?token=secret")),
            "redirect to login.example.com not followed: HTTP 302"
        );
        assert_eq!(says(Some("/login?token=secret")), "redirect not followed: HTTP 302");
        assert_eq!(says(None), "redirect not followed: HTTP 302");
    }
}
