//! The body of `chat.postMessage`: one attachment of two blocks, a headline and a context line.
//!
//! No top-level `text`: beside an attachment Slack shows it as a line of its own. Everything that a user wrote passes
//! through `text`; markup is written here and nowhere else.

use courant_api::notify::Notification;
use serde_json::{Value, json};

use super::text::{address, mrkdwn, plain};
use crate::story::{Story, Tone};

// Room for each part after escaping. Together they stay below what Slack takes: 3000 for a text, and 1000 for the
// fallback by our own rule.
const NAME: usize = 400;
const WORDS: usize = 200;
const LINK: usize = 1500;
/// Of all details together, which share it.
const DETAILS: usize = 800;
const MAX_DETAILS: usize = 4;
const PART: usize = 200;
const AFTER_LINK: usize = 1000;
/// Most parts of a context line beside the integration, what it followed on, and the time.
const MAX_CONTEXT: usize = 4;

/// The request's body.
pub(super) fn body(notification: &Notification, integration_name: &str, channel: &str) -> Value {
    let Look { color, fallback, blocks } = look(notification, integration_name);
    json!({
        "channel": channel,
        "attachments": [{ "color": color, "fallback": fallback, "blocks": blocks }],
        "unfurl_links": false,
        "unfurl_media": false,
        // Not shown to people: by this an app that reads the channel recognises a repeat.
        "metadata": {
            "event_type": "courant_notification",
            "event_payload": { "delivery_id": notification.id },
        },
    })
}

struct Look {
    color: &'static str,
    fallback: String,
    blocks: [Value; 2],
}

const fn emoji(tone: Tone) -> &'static str {
    match tone {
        Tone::Success => ":white_check_mark:",
        Tone::Failure => ":x:",
        Tone::Attention => ":bell:",
        Tone::Neutral => ":large_blue_circle:",
    }
}

/// Colour, fallback and blocks: made together, so that they cannot say different things.
fn look(notification: &Notification, integration_name: &str) -> Look {
    let story = Story::of(notification);
    let name = if plain(&story.subject, NAME).is_empty() { "(no name)" } else { &story.subject };
    let mut headline = format!("{} *{}*", emoji(story.tone), linked(name, NAME, story.link.as_deref(), LINK));
    if !story.what.is_empty() {
        headline.push_str(" — ");
        headline.push_str(&mrkdwn(&story.what, WORDS));
    }
    if !story.details.is_empty() {
        headline.push('\n');
        let shown = story.details.len().min(MAX_DETAILS);
        let details: Vec<_> = story.details[..shown].iter().map(|detail| mrkdwn(detail, DETAILS / shown)).collect();
        headline.push_str(&details.join(" · "));
    }
    let mut section = json!({ "type": "section", "text": text(&headline) });
    if let Some(url) = story.asks.as_deref().filter(|url| address(url, LINK).is_some()) {
        section["accessory"] = json!({
            "type": "button",
            "action_id": "open",
            "text": { "type": "plain_text", "text": "Review" },
            "url": url,
        });
    }

    let mut context = vec![format!("via {}", mrkdwn(integration_name, PART))];
    context.extend(story.context.iter().take(MAX_CONTEXT).map(|part| mrkdwn(part, PART)));
    if let Some((parent, url)) = &story.after {
        context.push(format!("after applying {}", linked(parent, PART, url.as_deref(), AFTER_LINK)));
    }
    let at = notification.occurred_at;
    context.push(format!("<!date^{}^{{date_short_pretty}} {{time}}|{at}>", at.unix_seconds()));

    let (_, what) = story.line();
    let what = if what.is_empty() { String::new() } else { format!(" — {}", plain(&what, WORDS)) };
    Look {
        color: story.tone.color(),
        fallback: format!("{}{what}", plain(name, NAME)),
        blocks: [section, json!({ "type": "context", "elements": [text(&context.join(" · "))] })],
    }
}

/// A name that links to its page, if that is an address that people can open.
fn linked(name: &str, room: usize, url: Option<&str>, link_room: usize) -> String {
    let label = mrkdwn(name, room);
    match url.and_then(|url| address(url, link_room)) {
        Some(url) => format!("<{url}|{label}>"),
        None => label,
    }
}

/// A text object. `verbatim`: Slack is not to look for addresses, channels and names in it and link them.
fn text(mrkdwn: &str) -> Value {
    json!({ "type": "mrkdwn", "text": mrkdwn, "verbatim": true })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::text::width;
    use super::*;
    use crate::golden::{notification, samples};

    fn at<'a>(body: &'a Value, pointer: &str) -> &'a str {
        body.pointer(pointer).and_then(Value::as_str).unwrap()
    }

    const HEADLINE: &str = "/attachments/0/blocks/0/text/text";
    const CONTEXT: &str = "/attachments/0/blocks/1/elements/0/text";
    const FALLBACK: &str = "/attachments/0/fallback";

    #[test]
    fn one_attachment_two_blocks_and_no_text() {
        for (_, notification) in samples() {
            let body = body(&notification, "ops", "#ops");
            assert_eq!(body.get("text"), None);
            assert_eq!(body["attachments"].as_array().unwrap().len(), 1);
            assert_eq!(body["attachments"][0]["blocks"].as_array().unwrap().len(), 2);
        }
    }

    #[test]
    fn the_fallback_is_the_headline_without_its_markup() {
        for (name, notification) in samples() {
            if name.ends_with("hostile") {
                continue;
            }
            let body = body(&notification, "ops", "#ops");
            let headline = at(&body, HEADLINE).lines().next().unwrap();
            if notification.findings.is_some() {
                // A report's headline is its title; its fallback tells what it reports.
                assert!(headline.ends_with("|Dependency findings>*"), "{headline}");
                assert!(at(&body, FALLBACK).starts_with("Dependency findings — "));
                continue;
            }
            let (_, headline) = headline.split_once(' ').unwrap();
            let mut headline = headline.replace('*', "");
            if let Some((_, label)) = headline.clone().split_once('|') {
                headline = label.replace('>', "");
            }
            assert_eq!(at(&body, FALLBACK), headline);
        }
    }

    #[test]
    fn without_an_address_there_is_no_link() {
        let body = body(&notification("a.b", "order", "o_1", "Order 1", "{}"), "ops", "#ops");
        assert_eq!(at(&body, HEADLINE), ":large_blue_circle: *Order 1* — a b");
    }

    #[test]
    fn a_subject_that_cannot_be_seen_is_called_by_its_id() {
        let body = |id: &str| body(&notification("a.b", "order", id, "\u{200b} \n", "{}"), "ops", "#ops");
        assert_eq!(at(&body("o_1"), FALLBACK), "o_1 — a b");
        assert_eq!(at(&body("\n"), FALLBACK), "(no name) — a b");
    }

    #[test]
    fn the_longest_texts_stay_within_slacks_limits() {
        let long = "&".repeat(5000);
        let mut notification = notification(&long, &long, &long, &long, "{}");
        let keys = ["a", "b", "c"].map(|key| format!("\"{key}{}\":\"{}\"", "&".repeat(39), "&".repeat(60)));
        notification.event.as_mut().unwrap().payload =
            courant_api::event::Json::parse(format!("{{{}}}", keys.join(","))).unwrap();
        notification.url = Some(format!("https://a.example/{}", "a".repeat(LINK - 18)));
        let body = body(&notification, &long, "#ops");
        assert!(at(&body, HEADLINE).contains("<https://") && at(&body, HEADLINE).contains("c&amp;"));
        assert!(width(at(&body, HEADLINE)) <= 3000);
        assert!(width(at(&body, CONTEXT)) <= 3000);
        assert!(width(at(&body, FALLBACK)) <= 1000);
    }

    proptest! {
        #[test]
        fn user_text_forges_neither_link_nor_mention(
            event_type in text_of_malice(), kind in text_of_malice(), id in text_of_malice(), name in text_of_malice(),
            key in text_of_malice(), value in text_of_malice(), url in prop::option::of(text_of_malice()), integration in text_of_malice(),
        ) {
            let payload = json!({ key: value }).to_string();
            let mut notification = notification(&event_type, &kind, &id, &name, &payload);
            notification.url = url.map(|tail| format!("https://a.example/{tail}"));
            let body = body(&notification, &integration, "#ops");
            let body: Value = serde_json::from_str(&body.to_string()).unwrap();
            let (headline, context, fallback) = (at(&body, HEADLINE), at(&body, CONTEXT), at(&body, FALLBACK));

            prop_assert!(width(headline) <= 3000 && width(context) <= 3000 && width(fallback) <= 1000);
            prop_assert!(headline.lines().count() <= 2 && context.lines().count() == 1 && fallback.lines().count() == 1);

            let links = headline.matches('<').count();
            prop_assert_eq!(headline.matches('>').count(), links);
            prop_assert!(links == 0 || (links == 1 && headline.contains("<https://a.example/")));
            prop_assert_eq!(context.matches('<').count(), 1);
            prop_assert!(context.contains("<!date^"));
            prop_assert!(!fallback.contains(['<', '>']));
            prop_assert_eq!(headline.matches('*').count(), if links == 1 { 2 + headline_url_stars(headline) } else { 2 });
        }
    }

    /// An address may hold a star; it styles nothing there.
    fn headline_url_stars(headline: &str) -> usize {
        let link = headline.split_once('<').and_then(|(_, rest)| rest.split_once('|')).map_or("", |(url, _)| url);
        link.matches('*').count()
    }

    /// Arbitrary text, and text of the pieces that links and mentions are made of.
    fn text_of_malice() -> impl Strategy<Value = String> {
        let pieces = [
            "<",
            ">",
            "|",
            "&",
            "<!channel>",
            "<@U1>",
            "<https://evil.example|x>",
            "&lt;",
            "*",
            "`",
            "```",
            "~",
            "\n",
            "> ",
            "a",
            "😀",
            "\u{202e}",
            "<!date^0^{time}|x>",
        ];
        prop_oneof![
            any::<String>(),
            prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..400).prop_map(|pieces| pieces.concat()),
        ]
    }
}
