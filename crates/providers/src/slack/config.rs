//! Slack's settings, `defaultChannel` and `channelLabelKey`, and its secret, `botToken`.

use std::collections::BTreeMap;

use http::HeaderValue;
use serde_json::{Map, Value};

use crate::{ConfigError, fields};

const MAX_CHANNEL_CHARS: usize = 80;
const MAX_LABEL_KEY_CHARS: usize = 200;
const MAX_TOKEN_BYTES: usize = 300;

/// The settings, read.
pub(super) struct Config<'a> {
    default_channel: &'a str,
    channel_label_key: Option<&'a str>,
}

impl<'a> Config<'a> {
    pub(super) fn read(config: &'a Map<String, Value>) -> Result<Self, ConfigError> {
        fields::only(config, &["defaultChannel", "channelLabelKey"])?;
        let default_channel = fields::required(config, "defaultChannel")?;
        if !is_channel(default_channel) {
            return Err(fields::refuse(
                &["defaultChannel"],
                "must be a channel's name or id: 1 to 80 characters without white space",
            ));
        }
        let channel_label_key = fields::optional(config, "channelLabelKey")?;
        if channel_label_key.is_some_and(|key| key.is_empty() || key.chars().count() > MAX_LABEL_KEY_CHARS) {
            return Err(fields::refuse(&["channelLabelKey"], "must have 1 to 200 characters"));
        }
        Ok(Self { default_channel, channel_label_key })
    }

    /// Where it goes: what the label names, unless it is missing or can be no channel, else the default.
    pub(super) fn channel<'b>(&'b self, labels: &'b BTreeMap<String, String>) -> &'b str {
        self.channel_label_key
            .and_then(|key| labels.get(key))
            .map(String::as_str)
            .filter(|channel| is_channel(channel))
            .unwrap_or(self.default_channel)
    }
}

fn is_channel(text: &str) -> bool {
    (1..=MAX_CHANNEL_CHARS).contains(&text.chars().count())
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// The value of `Authorization` from `{"botToken": "xox…"}`.
pub(super) fn bearer(auth: &Map<String, Value>) -> Result<HeaderValue, ConfigError> {
    fields::only(auth, &["botToken"])?;
    let token = fields::required(auth, "botToken")?;
    let fits =
        token.starts_with("xox") && token.len() <= MAX_TOKEN_BYTES && token.bytes().all(|b| b.is_ascii_graphic());
    let mut value = fits.then(|| HeaderValue::try_from(format!("Bearer {token}")).ok()).flatten().ok_or_else(|| {
        fields::refuse(&["botToken"], "must be a Slack token: it begins with xox and has at most 300 characters")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::golden::object;

    fn refused(config: Value) -> Option<String> {
        Config::read(&object(config)).err().map(|e| e.pointer)
    }

    #[test]
    fn a_channel_is_required_and_nothing_unknown_is_taken() {
        assert_eq!(refused(json!({ "defaultChannel": "#ops" })), None);
        assert_eq!(refused(json!({ "defaultChannel": "ö".repeat(80), "channelLabelKey": "slack" })), None);
        for (config, pointer) in [
            (json!({}), "/defaultChannel"),
            (json!({ "defaultChannel": "" }), "/defaultChannel"),
            (json!({ "defaultChannel": " #ops" }), "/defaultChannel"),
            (json!({ "defaultChannel": "a\nb" }), "/defaultChannel"),
            (json!({ "defaultChannel": "ö".repeat(81) }), "/defaultChannel"),
            (json!({ "defaultChannel": 7 }), "/defaultChannel"),
            (json!({ "defaultChannel": "#ops", "channelLabelKey": "" }), "/channelLabelKey"),
            (json!({ "defaultChannel": "#ops", "channelLabelKey": [] }), "/channelLabelKey"),
            (json!({ "defaultChannel": "#ops", "botToken": "xoxb-1" }), "/botToken"),
        ] {
            assert_eq!(refused(config.clone()).as_deref(), Some(pointer), "{config}");
        }
    }

    #[test]
    fn a_label_overrides_the_channel_if_it_can_be_one() {
        let config = object(json!({ "defaultChannel": "#ops", "channelLabelKey": "slack" }));
        let config = Config::read(&config).unwrap();
        let channel =
            |value: &str| config.channel(&BTreeMap::from([("slack".to_owned(), value.to_owned())])).to_owned();
        assert_eq!(channel("#team"), "#team");
        assert_eq!(channel(""), "#ops");
        assert_eq!(channel("two words"), "#ops");
        assert_eq!(config.channel(&BTreeMap::new()), "#ops");
    }

    #[test]
    fn a_token_that_is_none_is_refused_without_being_quoted() {
        assert!(bearer(&object(json!({ "botToken": "xoxb-1-A" }))).unwrap().is_sensitive());
        for token in
            ["", "hunter2", "xoxb-hunter2\r\nX-I: 1", "xoxb hunter2", "xoxb-hünter2", &"xox-hunter2".repeat(30)]
        {
            let error = bearer(&object(json!({ "botToken": token }))).unwrap_err();
            assert_eq!(error.pointer, "/botToken");
            assert!(!error.to_string().contains("hunter2") && !error.to_string().contains("hünter2"));
        }
    }
}
