//! What a notification says in one line: its tone, its words, and a few values of its payload.

use std::fmt;

use courant_api::notify::Notification;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Most values of the payload that are shown.
pub(super) const MAX_DETAILS: usize = 3;
const MAX_DETAIL_KEY_CHARS: usize = 40;
const MAX_DETAIL_VALUE_CHARS: usize = 60;

/// How it went. Colour and emoji say the same thing twice, for those who see only one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Success,
    Failure,
    Neutral,
}

impl Tone {
    /// By the last word of the type. Failure is heard in compounds too (`payment_failed`); success only when it is the
    /// whole last segment of a dotted type, since a false green misleads: `not_completed`.
    pub(super) fn of(event_type: &str) -> Self {
        let segment = event_type.rsplit('.').next().unwrap_or_default();
        let word = segment.rsplit('_').next().unwrap_or_default();
        let whole = word == segment || !event_type.contains('.');
        match word {
            "failed" | "rejected" | "dead" => Self::Failure,
            "succeeded" | "approved" | "completed" if whole => Self::Success,
            _ => Self::Neutral,
        }
    }

    pub(super) const fn color(self) -> &'static str {
        match self {
            Self::Success => "#2eb886",
            Self::Failure => "#e01e5a",
            Self::Neutral => "#868f96",
        }
    }

    pub(super) const fn emoji(self) -> &'static str {
        match self {
            Self::Success => ":white_check_mark:",
            Self::Failure => ":x:",
            Self::Neutral => ":large_blue_circle:",
        }
    }
}

/// The type that people know: the journal's, when the notification stands for any event.
pub(super) fn shown_type(notification: &Notification) -> &str {
    notification.event.as_ref().map_or(&notification.event_type, |event| &event.event_type)
}

/// A type as words: `billing.payment_failed` is "billing payment failed".
pub(super) fn words(event_type: &str) -> String {
    event_type.replace(['.', '_'], " ")
}

/// The first short values at the top of the payload, digits as they were written, without what the headline already
/// says.
pub(super) fn details(notification: &Notification) -> Vec<(String, String)> {
    let Some(event) = &notification.event else {
        return Vec::new();
    };
    let said = [&notification.subject.name, &notification.subject.id];
    let payload = event.payload.text();
    // A payload is an object; of anything else there is nothing to show.
    let entries = serde_json::Deserializer::from_str(payload).deserialize_map(Entries).unwrap_or_default();
    entries
        .into_iter()
        .filter_map(|(key, raw)| Some((key, scalar(raw)?)))
        .filter(|(key, value)| {
            fits(key, MAX_DETAIL_KEY_CHARS) && fits(value, MAX_DETAIL_VALUE_CHARS) && !said.contains(&value)
        })
        .take(MAX_DETAILS)
        .collect()
}

fn fits(text: &str, most: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= most
}

fn scalar(raw: &RawValue) -> Option<String> {
    let text = raw.get();
    match text.bytes().next()? {
        b'"' => serde_json::from_str(text).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(text.to_owned()),
    }
}

/// The entries of an object in their order, values unread: a number larger than any machine type stays as it is.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        /// More than this is not looked at.
        const MOST: usize = 50;
        let mut entries = Vec::new();
        while entries.len() < MOST {
            let Some(entry) = map.next_entry()? else {
                return Ok(entries);
            };
            entries.push(entry);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::notification;

    #[test]
    fn the_last_word_of_a_type_sets_the_tone() {
        for (event_type, tone) in [
            ("deploy.succeeded", Tone::Success),
            ("approval.approved", Tone::Success),
            ("task.completed", Tone::Success),
            ("deployment_succeeded", Tone::Success),
            ("billing.payment_failed", Tone::Failure),
            ("preview_failed", Tone::Failure),
            ("approval.rejected", Tone::Failure),
            ("notification_delivery.dead", Tone::Failure),
            ("task.not_completed", Tone::Neutral),
            ("failed.retried", Tone::Neutral),
            ("invoice.paid", Tone::Neutral),
            ("undead", Tone::Neutral),
            ("", Tone::Neutral),
        ] {
            assert_eq!(Tone::of(event_type), tone, "{event_type}");
        }
    }

    #[test]
    fn the_first_three_short_values_are_shown() {
        let shown = |payload: &str| details(&notification("a.b", "order", "o_1", "Order 1", payload));
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            shown(
                r#"{"id":"o_1","name":"Order 1","x":{"y":1},"l":[1],"n":null,"s":" ","t":"\u00e9","b":true,"d":1e400,"e":2}"#
            ),
            [pair("t", "é"), pair("b", "true"), pair("d", "1e400")]
        );
        assert_eq!(shown(&format!(r#"{{"long":"{}","k":1.50}}"#, "x".repeat(61))), [pair("k", "1.50")]);
        assert_eq!(shown("{}"), []);
        assert_eq!(shown("[1]"), []);
    }
}
