//! What Slack's answer means: its refusals come with status 200 and a code in the body.
//!
//! An unknown code is retried within the budget: a code that Slack adds must not lose a notification.

use std::fmt;

use courant_api::Timestamp;
use courant_core::delivery::{Failure, FailureClass, Verdict, parse_retry_after};
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use crate::Response;

const MAX_CODE_CHARS: usize = 60;

pub(super) fn judge(response: &Response, now: Timestamp) -> Verdict {
    let status = response.status;
    let retry = |text: String| Verdict::Retry {
        after: response.retry_after.as_deref().and_then(|value| parse_retry_after(value, now.unix_seconds())),
        error: Failure::new(FailureClass::Transient, text),
    };
    let permanent = |class, text: String| Verdict::Permanent { error: Failure::new(class, text) };
    match status {
        200..=299 => match Answer::read(&response.body) {
            Some(Answer { ok: true, .. }) => Verdict::Sent,
            Some(Answer { error, .. }) => {
                let code = printable(error.as_deref().unwrap_or("no error code"));
                match permanent_class(&code) {
                    Some(class) => permanent(class, format!("slack: {code}")),
                    None => retry(format!("slack: {code}")),
                }
            }
            None => retry(format!("HTTP {status}, not an answer of Slack's")),
        },
        401 | 403 => permanent(FailureClass::Credential, format!("HTTP {status}")),
        404 => permanent(FailureClass::Destination, format!("HTTP {status}")),
        400..=428 | 430..=499 => permanent(FailureClass::Payload, format!("HTTP {status}")),
        // 429 and 5xx, and what Slack never sends: a redirect comes from something between us and it.
        _ => retry(format!("HTTP {status}")),
    }
}

/// The codes that no repetition mends, and who can mend them.
fn permanent_class(code: &str) -> Option<FailureClass> {
    match code {
        "channel_not_found"
        | "not_in_channel"
        | "is_archived"
        | "channel_is_archived"
        | "ekm_access_denied"
        | "no_permission"
        | "access_denied"
        | "no_service"
        | "no_active_hooks"
        | "user_not_found"
        | "posting_to_general_channel_denied"
        | "action_prohibited" => Some(FailureClass::Destination),
        restricted if restricted.starts_with("restricted_action") => Some(FailureClass::Destination),
        "not_authed"
        | "invalid_auth"
        | "account_inactive"
        | "token_revoked"
        | "token_expired"
        | "missing_scope"
        | "not_allowed_token_type"
        | "enterprise_is_restricted"
        | "as_user_not_supported" => Some(FailureClass::Credential),
        "msg_too_long"
        | "msg_blocks_too_long"
        | "no_text"
        | "invalid_blocks"
        | "invalid_attachments"
        | "too_many_attachments"
        | "invalid_arguments"
        | "invalid_arg_name"
        | "invalid_charset"
        | "invalid_form_data"
        | "invalid_post_type"
        | "missing_post_type"
        | "invalid_payload" => Some(FailureClass::Payload),
        _ => None,
    }
}

/// A code fit for an error text, whatever was sent.
fn printable(code: &str) -> String {
    code.chars()
        .take(MAX_CODE_CHARS)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ') { c } else { '?' })
        .collect()
}

/// `ok` and `error` of an answer.
struct Answer {
    ok: bool,
    error: Option<String>,
}

impl Answer {
    /// Reads as far as the text goes. A successful answer repeats the whole message and may well be longer than the
    /// part that was kept; taking it for garbage would post the message again. So what follows an `ok` that was read
    /// does not matter.
    fn read(body: &[u8]) -> Option<Self> {
        let mut read = Read::default();
        let _cut_or_whole = serde_json::Deserializer::from_slice(body).deserialize_map(&mut read);
        Some(Self { ok: read.ok?, error: read.error })
    }
}

#[derive(Default)]
struct Read {
    ok: Option<bool>,
    error: Option<String>,
}

impl<'de> Visitor<'de> for &mut Read {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "ok" => self.ok = Some(map.next_value()?),
                "error" => self.error = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn answer(status: u16, retry_after: Option<&str>, body: &[u8]) -> Verdict {
        let response =
            Response { status, retry_after: retry_after.map(str::to_owned), location: None, body: body.to_vec() };
        judge(&response, Timestamp::from_micros(0))
    }

    fn refusal(code: &str) -> Verdict {
        answer(200, None, format!(r#"{{"ok":false,"error":"{code}"}}"#).as_bytes())
    }

    fn permanent(class: FailureClass, text: &str) -> Verdict {
        Verdict::Permanent { error: Failure::new(class, text) }
    }

    fn retry(text: &str) -> Verdict {
        Verdict::Retry { after: None, error: Failure::new(FailureClass::Transient, text) }
    }

    #[test]
    fn ok_is_sent() {
        assert_eq!(answer(200, None, br#"{"ok":true,"channel":"C1","ts":"1.2"}"#), Verdict::Sent);
    }

    #[test]
    fn an_answer_cut_anywhere_after_its_ok_is_read() {
        let whole =
            r#"{"ok":true,"channel":"C1","ts":"1.2","message":{"text":"ä\n","n":[1.5e3,null,true]}}"#.as_bytes();
        for length in br#"{"ok":true,"#.len()..=whole.len() {
            assert_eq!(answer(200, None, &whole[..length]), Verdict::Sent, "{length}");
        }
        assert_eq!(
            answer(200, None, br#"{"ok":false,"error":"channel_not_found","response_meta"#),
            permanent(FailureClass::Destination, "slack: channel_not_found")
        );
    }

    #[test]
    fn what_is_not_slacks_answer_is_retried() {
        for body in ["", "ok", "<html>", "[]", "{}", "null", r#"{"ok":"true"}"#, r#"{"ok":1}"#, r#"{"error":"x"}"#] {
            assert_eq!(answer(200, None, body.as_bytes()), retry("HTTP 200, not an answer of Slack's"), "{body}");
        }
    }

    #[test]
    fn known_codes_are_permanent_with_their_class() {
        for (code, class) in [
            ("channel_not_found", FailureClass::Destination),
            ("not_in_channel", FailureClass::Destination),
            ("is_archived", FailureClass::Destination),
            ("restricted_action", FailureClass::Destination),
            ("restricted_action_read_only_channel", FailureClass::Destination),
            ("invalid_auth", FailureClass::Credential),
            ("token_revoked", FailureClass::Credential),
            ("missing_scope", FailureClass::Credential),
            ("invalid_blocks", FailureClass::Payload),
            ("msg_too_long", FailureClass::Payload),
        ] {
            assert_eq!(refusal(code), permanent(class, &format!("slack: {code}")));
        }
    }

    #[test]
    fn passing_and_unknown_codes_are_retried() {
        for code in ["ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "brand_new"]
        {
            assert_eq!(refusal(code), retry(&format!("slack: {code}")));
        }
        assert_eq!(answer(200, None, br#"{"ok":false}"#), retry("slack: no error code"));
    }

    #[test]
    fn slack_says_how_long_to_wait() {
        let after = Some(Duration::from_secs(30));
        let wait = |text: &str| Verdict::Retry { after, error: Failure::new(FailureClass::Transient, text) };
        assert_eq!(answer(429, Some("30"), b"{\"ok\":false,\"error\":\"ratelimited\"}"), wait("HTTP 429"));
        assert_eq!(answer(503, Some("30"), b""), wait("HTTP 503"));
        assert_eq!(answer(200, Some("30"), b"{\"ok\":false,\"error\":\"ratelimited\"}"), wait("slack: ratelimited"));
    }

    #[test]
    fn statuses_other_than_success_are_judged_without_the_body() {
        let ok = br#"{"ok":true}"#;
        for (status, verdict) in [
            (302, retry("HTTP 302")),
            (400, permanent(FailureClass::Payload, "HTTP 400")),
            (401, permanent(FailureClass::Credential, "HTTP 401")),
            (403, permanent(FailureClass::Credential, "HTTP 403")),
            (404, permanent(FailureClass::Destination, "HTTP 404")),
            (408, permanent(FailureClass::Payload, "HTTP 408")),
            (429, retry("HTTP 429")),
            (500, retry("HTTP 500")),
        ] {
            assert_eq!(answer(status, None, ok), verdict);
        }
    }

    proptest! {
        #[test]
        fn any_answer_gives_a_short_printable_error(status in 100_u16..1000, body in any::<Vec<u8>>(), code in any::<String>()) {
            let refusal = serde_json::json!({ "ok": false, "error": code }).to_string();
            for body in [body.as_slice(), refusal.as_bytes()] {
                match answer(status, None, body) {
                    Verdict::Sent => prop_assert!((200..300).contains(&status)),
                    Verdict::Retry { error, .. } | Verdict::Permanent { error } | Verdict::DisableIntegration { error } => {
                        prop_assert!(error.text.len() <= 80 && error.text.bytes().all(|b| (b' '..=b'~').contains(&b)), "{}", error.text);
                    }
                }
            }
        }
    }
}
