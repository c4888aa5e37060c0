//! What Slack takes, and how our messages look: a message is held against both.

use serde_json::Value;

/// Longest text of a section (Slack's reference of blocks).
const SECTION_TEXT: usize = 3000;
/// Most elements of a context block.
const CONTEXT_ELEMENTS: usize = 10;
/// Longest text of a button.
const BUTTON_TEXT: usize = 75;
/// Longest address of a button.
const BUTTON_URL: usize = 3000;
/// Longest id of an action.
const ACTION_ID: usize = 255;
/// Longest body (`msg_too_long`; all blocks together).
const ALL_BLOCKS: usize = 13_000;
/// Longest fallback, by our own rule: a push notification shows less.
const FALLBACK: usize = 1000;
const COLORS: [&str; 4] = ["#2eb886", "#e01e5a", "#eca336", "#868f96"];

/// What is wrong with the body of a `chat.postMessage`; nothing: it is one attachment of two blocks within all limits.
pub fn faults(body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    must(body["channel"].as_str().is_some_and(|channel| !channel.is_empty()), "a channel");
    must(body.get("text").is_none() && body.get("blocks").is_none(), "neither text nor blocks beside the attachment");
    let attachments = body["attachments"].as_array().map_or(&[][..], Vec::as_slice);
    must(attachments.len() == 1, "one attachment");
    let attachment = attachments.first().unwrap_or(&Value::Null);
    must(attachment["color"].as_str().is_some_and(|color| COLORS.contains(&color)), "one of four colours");
    let fallback = attachment["fallback"].as_str().unwrap_or_default();
    must((1..=FALLBACK).contains(&width(fallback)), "a fallback of at most 1000 characters");
    must(!fallback.contains(['<', '>', '\n']), "a fallback without markup on one line");
    let blocks = attachment["blocks"].as_array().map_or(&[][..], Vec::as_slice);
    must(blocks.len() == 2, "two blocks");
    must(width(&attachment["blocks"].to_string()) <= ALL_BLOCKS, "blocks of at most 13000 characters together");
    let (section, context) = (blocks.first().unwrap_or(&Value::Null), blocks.get(1).unwrap_or(&Value::Null));
    must(section["type"] == "section" && section.get("fields").is_none(), "a section without fields");
    let headline = section["text"]["text"].as_str().unwrap_or_default();
    must((1..=SECTION_TEXT).contains(&width(headline)), "a headline of at most 3000 characters");
    must(section["text"]["type"] == "mrkdwn" && section["text"]["verbatim"] == true, "a verbatim headline");
    must(headline.matches('<').count() <= 1, "no link in the headline but the subject's");
    must(context["type"] == "context", "a context line");
    let elements = context["elements"].as_array().map_or(&[][..], Vec::as_slice);
    must((1..=CONTEXT_ELEMENTS).contains(&elements.len()), "1 to 10 elements");
    for element in elements {
        let text = element["text"].as_str().unwrap_or_default();
        must((1..=SECTION_TEXT).contains(&width(text)) && element["verbatim"] == true, "a verbatim, bounded context");
        must(!text.contains("<!channel") && !text.contains("<!here") && !text.contains("<@"), "no mention");
    }
    must(!headline.contains("<!") && !headline.contains("<@"), "no mention in the headline");
    if let Some(button) = section.get("accessory") {
        let text = |pointer: &str| button.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        must(text("/type") == "button" && text("/text/type") == "plain_text", "a button");
        must((1..=BUTTON_TEXT).contains(&width(text("/text/text"))), "a button of at most 75 characters");
        must((1..=BUTTON_URL).contains(&width(text("/url"))), "a button with an address");
        must((1..=ACTION_ID).contains(&width(text("/action_id"))), "a button with an id");
    }
    faults
}

/// Length in UTF-16 units, the strictest way in which Slack might count.
fn width(text: &str) -> usize {
    text.encode_utf16().count()
}
