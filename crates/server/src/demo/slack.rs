//! Slack's side of `chat.postMessage` as far as the demo plays it: what it takes, and what people then see.
//!
//! Stricter than Slack, which would post much that no reader wants: it takes exactly the form that Courant promises.

use courant_api::DeliveryId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::secrets;

/// A message as it was posted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlackMessage {
    /// The delivery that it came by.
    pub delivery_id: DeliveryId,
    /// Where it was posted.
    pub channel: String,
    /// Its one attachment, unchanged.
    pub attachment: Value,
    /// What of it is shown, still as mrkdwn.
    #[serde(skip)]
    pub shown: Shown,
}

/// What people see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// `#rrggbb`
    pub color: String,
    /// The headline, and a line of details if there are any.
    pub headline: String,
    /// The small print.
    pub context: String,
    /// What notifications and screen readers say.
    pub fallback: String,
}

/// Why a request is refused: in Slack's words, and in ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The `error` of the answer.
    pub code: &'static str,
    /// What is wrong.
    pub why: String,
}

#[derive(Deserialize)]
struct Post {
    channel: String,
    text: Option<String>,
    attachments: Vec<Value>,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    event_payload: MetadataPayload,
}

#[derive(Deserialize)]
struct MetadataPayload {
    delivery_id: DeliveryId,
}

#[derive(Deserialize)]
struct Attachment {
    color: String,
    fallback: String,
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Section { text: Text },
    Context { elements: Vec<Text> },
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

/// Takes a post, or says why not.
pub fn accept(bot_token: &str, authorization: Option<&str>, body: &[u8]) -> Result<SlackMessage, Refusal> {
    let refuse = |code, why: &str| Refusal { code, why: why.to_owned() };
    let token = authorization.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if !secrets::equal(token.as_bytes(), bot_token.as_bytes()) {
        return Err(refuse("invalid_auth", "it carries another token than the bot's"));
    }
    let post: Post = serde_json::from_slice(body).map_err(|e| refuse("invalid_json", &e.to_string()))?;
    if post.text.is_some() {
        return Err(refuse("invalid_arguments", "it has a text beside its attachment"));
    }
    let [attachment] = post.attachments.as_slice() else {
        return Err(refuse("invalid_attachments", &format!("it has {} attachments", post.attachments.len())));
    };
    let shown = shown(attachment).map_err(|why| refuse("invalid_attachments", &why))?;
    Ok(SlackMessage {
        delivery_id: post.metadata.event_payload.delivery_id,
        channel: post.channel,
        attachment: attachment.clone(),
        shown,
    })
}

fn shown(attachment: &Value) -> Result<Shown, String> {
    let Attachment { color, fallback, blocks } = Attachment::deserialize(attachment).map_err(|e| e.to_string())?;
    if rgb(&color).is_none() {
        return Err(format!("{color:?} is no colour"));
    }
    let count = blocks.len();
    let Ok([Block::Section { text: headline }, Block::Context { elements }]) = <[Block; 2]>::try_from(blocks) else {
        return Err(format!("its {count} blocks are not a headline and a context line"));
    };
    let [context] = elements.as_slice() else {
        return Err(format!("its context has {} elements", elements.len()));
    };
    if fallback.is_empty() || !readable(headline.text.lines().next().unwrap_or_default()).contains(&readable(&fallback))
    {
        return Err(format!("the fallback {fallback:?} does not say what the headline says"));
    }
    Ok(Shown { color, headline: headline.text, context: context.text.clone(), fallback })
}

/// Slack's answer to a message that it has posted, the `nth` since it started.
pub fn posted(message: &SlackMessage, now_seconds: i64, nth: u32) -> Value {
    json!({ "ok": true, "channel": message.channel, "ts": format!("{now_seconds}.{nth:06}") })
}

/// Slack's answer to what it refuses, which is no HTTP error.
pub fn refused(refusal: &Refusal) -> Value {
    json!({ "ok": false, "error": refusal.code })
}

/// `#rrggbb` as numbers.
pub fn rgb(color: &str) -> Option<[u8; 3]> {
    let digits = color.strip_prefix('#').filter(|d| d.len() == 6 && d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some([red, green, blue])
}

/// mrkdwn as it is read: links and dates by their labels, signs instead of their names, no stars and no escapes.
pub fn readable(mrkdwn: &str) -> String {
    let mut plain = String::new();
    let mut rest = mrkdwn;
    while let Some((before, after)) = rest.split_once('<') {
        plain.push_str(before);
        let (markup, behind) = after.split_once('>').unwrap_or((after, ""));
        plain.push_str(markup.split_once('|').map_or(markup, |(_, label)| label));
        rest = behind;
    }
    plain.push_str(rest);
    [
        (":white_check_mark:", "✅"),
        (":x:", "❌"),
        (":large_blue_circle:", "🔵"),
        ("*", ""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(plain, |text, (written, seen)| text.replace(written, seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Value);

    const ID: &str = "0199b2a0-0000-7000-8000-000000000001";

    fn good() -> Value {
        json!({
            "channel": "#ops",
            "attachments": [{
                "color": "#2eb886",
                "fallback": "R&amp;D 1.0 — release completed",
                "blocks": [
                    { "type": "section", "text": { "type": "mrkdwn", "text": ":white_check_mark: *R&amp;D 1.0* — release completed\nv: 1" } },
                    { "type": "context", "elements": [{ "type": "mrkdwn", "text": "via ops" }] },
                ],
            }],
            "metadata": { "event_type": "x", "event_payload": { "delivery_id": ID } },
        })
    }

    fn accepted(body: &Value) -> Result<SlackMessage, Refusal> {
        accept("xoxb-1", Some("Bearer xoxb-1"), body.to_string().as_bytes())
    }

    #[test]
    fn a_message_of_the_promised_form_is_posted() {
        let message = accepted(&good()).unwrap();
        assert_eq!((message.delivery_id.to_string().as_str(), message.channel.as_str()), (ID, "#ops"));
        assert_eq!(message.shown.context, "via ops");
        assert_eq!(posted(&message, 7, 2), json!({ "ok": true, "channel": "#ops", "ts": "7.000002" }));
    }

    #[test]
    fn another_token_is_refused() {
        for authorization in [None, Some("Bearer xoxb-2"), Some("xoxb-1")] {
            let refusal = accept("xoxb-1", authorization, good().to_string().as_bytes()).unwrap_err();
            assert_eq!(refused(&refusal), json!({ "ok": false, "error": "invalid_auth" }));
        }
    }

    #[test]
    fn a_message_of_another_form_is_refused() {
        let changes: [(&str, Change); 7] = [
            ("text", |b| b["text"] = json!("hello")),
            ("0 attachments", |b| b["attachments"] = json!([])),
            ("2 attachments", |b| {
                let one = b["attachments"][0].clone();
                b["attachments"] = json!([one, one]);
            }),
            ("1 blocks", |b| drop(b["attachments"][0]["blocks"].as_array_mut().unwrap().pop())),
            ("2 blocks", |b| b["attachments"][0]["blocks"].as_array_mut().unwrap().reverse()),
            ("no colour", |b| b["attachments"][0]["color"] = json!("good")),
            ("fallback", |b| b["attachments"][0]["fallback"] = json!("R&amp;D 1.0 — release failed")),
        ];
        for (named, change) in changes {
            let mut body = good();
            change(&mut body);
            let refusal = accepted(&body).unwrap_err();
            assert!(refusal.why.contains(named), "{named}: {refusal:?}");
        }
    }

    #[test]
    fn markup_is_read_by_its_labels() {
        for (written, read) in [
            (":x: *<https://a.example/?a=1&amp;b|Shop &lt;3>* — failed", "❌ Shop <3 — failed"),
            (
                "at <!date^1788257704^{date_short_pretty} {time}|2026-09-01T10:15:04.117Z>",
                "at 2026-09-01T10:15:04.117Z",
            ),
            ("&amp;lt;", "&lt;"),
            ("1 < 2", "1  2"),
        ] {
            assert_eq!(readable(written), read);
        }
    }

    #[test]
    fn a_colour_is_six_digits() {
        assert_eq!(rgb("#e01e5a"), Some([0xe0, 0x1e, 0x5a]));
        for other in ["e01e5a", "#e01e5", "#e01e5ag", "#+01e5a", "good"] {
            assert_eq!(rgb(other), None);
        }
    }
}
