//! What the demo says: for people, with or without colour, or one JSON object a step.
//!
//! Writes what it is given and decides nothing. A text from outside is never longer here than a line.

use std::fmt::Display;
use std::io::Write;

use anyhow::{Context as _, Result};
use courant_api::notify::{DeliveryView, IntegrationView, RetryOutcome};
use courant_api::{DeliveryId, Event, TenantId, WorkspaceId};
use serde::Serialize;

use super::receivers::WebhookCall;
use super::slack::{self, SlackMessage};

/// Most of a payload that is shown to people, in characters.
const MAX_PAYLOAD: usize = 80;

/// How it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For people, with colour.
    Colour,
    /// For people, without.
    Plain,
    /// For programs.
    Json,
}

/// One step of the story.
#[derive(Serialize)]
#[serde(tag = "step", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Step<'a> {
    /// The server has started.
    Server { url: &'a str, org_id: TenantId },
    /// An event type was registered.
    EventType { name: &'a str, description: &'a str },
    /// A workspace was made.
    Workspace { id: WorkspaceId, name: &'a str, parent: Option<&'a str> },
    /// An integration was made.
    Integration { integration: &'a IntegrationView, workspace: Option<&'a str> },
    /// An event was read from the journal.
    Event { event: &'a Event },
    /// Where reading goes on.
    Cursor { cursor: &'a str },
    /// A message was posted to the stand-in for Slack.
    SlackMessage(&'a SlackMessage),
    /// A webhook arrived and its signature is valid.
    Webhook(&'a WebhookCall),
    /// A delivery was given up.
    DeadLetter { delivery: &'a DeliveryView },
    /// The target of an integration works again.
    Mended { target: &'a str },
    /// A delivery was retried.
    Retried { delivery_id: DeliveryId, outcome: RetryOutcome },
    /// The deliveries list after that.
    Deliveries { items: &'a [DeliveryView] },
    /// The story is over.
    Done { ok: bool, error: Option<&'a str> },
    /// The server goes on and can be looked at.
    Ready { url: &'a str, api_key: &'a str, org_id: TenantId, workspace_id: WorkspaceId },
}

/// Where the story is told.
pub struct Terminal {
    out: Box<dyn Write + Send>,
    style: Style,
}

impl Terminal {
    /// Tells it to `out`.
    pub fn new(out: impl Write + Send + 'static, style: Style) -> Self {
        Self { out: Box::new(out), style }
    }

    /// Begins a part of the story; programs are not told.
    pub fn part(&mut self, title: &str, what_happens: &str) -> Result<()> {
        if self.style == Style::Json {
            return Ok(());
        }
        self.line("")?;
        self.line(self.bold(title))?;
        self.line(self.dim(what_happens))
    }

    /// Tells a step.
    pub fn tell(&mut self, step: &Step<'_>) -> Result<()> {
        if self.style == Style::Json {
            return self.line(serde_json::to_string(step)?);
        }
        match step {
            Step::Server { url, .. } => {
                self.line(self.bold("Courant demo"))?;
                self.line(self.dim("A server on a throw-away database, a stand-in for Slack and a webhook receiver, all on this machine."))?;
                self.line(self.dim("All that follows goes over the public API."))?;
                self.fact("server", url)
            }
            Step::EventType { name, description } => {
                self.fact("event type", format!("{name:<20} {}", self.dim(description)))
            }
            Step::Workspace { name, parent, .. } => {
                self.fact("workspace", parent.map_or_else(|| (*name).to_owned(), |parent| format!("{parent} / {name}")))
            }
            Step::Integration { integration: i, workspace } => {
                let types = i.journal_types.join(", ");
                let place = workspace.map_or_else(|| "anywhere".to_owned(), |name| format!("in {name} and below"));
                let wants = format!("{}, wants {types} {place}", i.provider);
                self.fact("integration", format!("{:<20} {}", i.name, self.dim(wants)))
            }
            Step::Event { event } => self.event(event),
            Step::Cursor { cursor } => self.fact("cursor", self.dim(cursor)),
            Step::SlackMessage(message) => self.slack_message(message),
            Step::Webhook(call) => self.webhook(call),
            Step::DeadLetter { delivery } => self.delivery(delivery),
            Step::Mended { target } => self.fact("mended", format!("{target} answers again")),
            Step::Retried { delivery_id, outcome } => {
                let outcome = match outcome {
                    RetryOutcome::Requeued => "queued again",
                    RetryOutcome::AlreadyQueued => "was queued already",
                };
                self.fact("retried", format!("{delivery_id} {outcome}"))
            }
            Step::Deliveries { items: [] } => self.fact("deliveries", "none is stored: nothing is failing"),
            Step::Deliveries { items } => items.iter().try_for_each(|delivery| self.delivery(delivery)),
            Step::Done { ok, error } => {
                self.line("")?;
                match error {
                    Some(error) => self.line(self.tint(RED, format!("✗ {error}"))),
                    None if *ok => self.line(self.tint(GREEN, "✓ Everything arrived, and every signature is valid.")),
                    None => self.line(self.tint(RED, "✗ Not everything arrived.")),
                }
            }
            Step::Ready { url, api_key, org_id, workspace_id } => self.ready(url, api_key, *org_id, *workspace_id),
        }
    }

    fn event(&mut self, event: &Event) -> Result<()> {
        let payload = self.dim(short(event.payload.text(), MAX_PAYLOAD));
        self.line(format!("  {:>5}  {:<32} {payload}", event.sequence, event.event_type))
    }

    /// As a reader sees it: a stripe of colour, the headline, the small print.
    fn slack_message(&mut self, message: &SlackMessage) -> Result<()> {
        let shown = &message.shown;
        let stripe = self.stripe(&shown.color);
        self.line("")?;
        self.line(format!("  {}", self.dim(format!("Slack {}", message.channel))))?;
        for (n, line) in shown.headline.lines().map(slack::readable).enumerate() {
            let line = if n == 0 { self.bold(line) } else { line };
            self.line(format!("  {stripe} {line}"))?;
        }
        self.line(format!("  {stripe} {}", self.dim(slack::readable(&shown.context))))?;
        self.line(self.dim(format!("    colour {}, fallback: {}", shown.color, slack::readable(&shown.fallback))))
    }

    fn webhook(&mut self, call: &WebhookCall) -> Result<()> {
        let event = &call.body["event"];
        let [kind, entity] = [&event["type"], &event["entityId"]].map(|v| v.as_str().unwrap_or("-"));
        self.line("")?;
        self.line(format!("  POST /{}  {}", call.target, self.tint(GREEN, "✓ signature valid")))?;
        for (name, value) in [
            ("webhook-id", call.headers.id.as_str()),
            ("webhook-timestamp", &call.headers.timestamp),
            ("webhook-signature", &call.headers.signature),
            ("event", &format!("{kind} {entity}")),
            ("payload", &short(&event["payload"].to_string(), MAX_PAYLOAD)),
        ] {
            self.line(format!("  {name:<19}{}", self.dim(value)))?;
        }
        Ok(())
    }

    fn delivery(&mut self, delivery: &DeliveryView) -> Result<()> {
        let status = self.tint(RED, delivery.status.as_str());
        let attempts = if delivery.attempt_count == 1 { "attempt" } else { "attempts" };
        self.fact(status, format!("{} → {}", delivery.subject.name, delivery.integration_name))?;
        self.fact("delivery", delivery.id)?;
        self.fact("reason", delivery.last_error.as_deref().unwrap_or("-"))?;
        self.fact("after", format!("{} {attempts}", delivery.attempt_count))
    }

    fn ready(&mut self, url: &str, api_key: &str, org: TenantId, workspace: WorkspaceId) -> Result<()> {
        let command = own_path();
        self.part("Look around", "The demo serves until ctrl-c, and shows what arrives. In another terminal:")?;
        let publish = format!(
            r#"{{"events":[{{"type":"release.failed","entityType":"release","entityId":"mine-1","workspaceId":"{workspace}","payload":{{"name":"mine 1","environment":"laptop"}}}}]}}"#
        );
        let lines = [
            String::new(),
            format!("export COURANT_URL={url} COURANT_API_KEY={api_key}"),
            format!("export COURANT_ORG={org}"),
            String::new(),
            "# follow the journal".into(),
            format!("{command} tail"),
            String::new(),
            "# publish an event: it arrives in Slack and at the status page".into(),
            r#"curl -sS "$COURANT_URL/api/v1/events" -H "Authorization: Bearer $COURANT_API_KEY" \"#.into(),
            format!(r"  -H 'Content-Type: application/json' -d '{publish}'"),
            String::new(),
            "# deliveries that are under way or have failed".into(),
            r#"curl -sS "$COURANT_URL/api/v1/orgs/$COURANT_ORG/notification-deliveries" \"#.into(),
            r#"  -H "Authorization: Bearer $COURANT_API_KEY""#.into(),
        ];
        lines.iter().try_for_each(|line| self.line(line))
    }

    fn fact(&mut self, name: impl Display, value: impl Display) -> Result<()> {
        let name = name.to_string();
        // The width counts what is seen, and escapes are not.
        let seen = if name.starts_with(ESCAPE) { 4 } else { name.chars().count() };
        let gap = " ".repeat(12_usize.saturating_sub(seen).max(1));
        self.line(format!("  {name}{gap}{value}"))
    }

    fn line(&mut self, text: impl AsRef<str>) -> Result<()> {
        writeln!(self.out, "{}", text.as_ref()).and_then(|()| self.out.flush()).context("writing to standard output")
    }

    fn bold(&self, text: impl Display) -> String {
        self.tint("1", text)
    }

    fn dim(&self, text: impl Display) -> String {
        self.tint("2", text)
    }

    fn tint(&self, code: &str, text: impl Display) -> String {
        if self.style == Style::Colour { format!("{ESCAPE}[{code}m{text}{ESCAPE}[0m") } else { text.to_string() }
    }

    /// In the nearest of the 216 colours that nearly every terminal has.
    fn stripe(&self, color: &str) -> String {
        let [red, green, blue] = slack::rgb(color).unwrap_or_default().map(nearest);
        self.tint(&format!("38;5;{}", 16 + 36 * red + 6 * green + blue), "▌")
    }
}

/// The index of the nearest of the six steps that a part of such a colour can have.
fn nearest(part: u8) -> usize {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    (0..STEPS.len()).min_by_key(|&step| STEPS[step].abs_diff(part)).unwrap_or_default()
}

const ESCAPE: char = '\u{1b}';
const GREEN: &str = "32";
const RED: &str = "31";

/// On one line, and no longer than one.
fn short(text: &str, most: usize) -> String {
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// How this program can be called again.
fn own_path() -> String {
    let path = std::env::current_exe().unwrap_or_else(|_| "courant".into());
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(&path).display().to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn told(style: Style, step: &Step<'_>) -> String {
        let page = Page::default();
        Terminal::new(page.clone(), style).tell(step).unwrap();
        let bytes = page.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn message() -> SlackMessage {
        let body = json!({
            "channel": "#ops",
            "attachments": [{
                "color": "#e01e5a",
                "fallback": "shop 1 — release failed",
                "blocks": [
                    { "type": "section", "text": { "type": "mrkdwn", "text": ":x: *shop 1* — release failed\nenvironment: live" } },
                    { "type": "context", "elements": [{ "type": "mrkdwn", "text": "via ops" }] },
                ],
            }],
            "metadata": { "event_payload": { "delivery_id": "0199b2a0-0000-7000-8000-000000000001" } },
        });
        slack::accept("xoxb-1", Some("Bearer xoxb-1"), body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_slack_message_is_drawn_with_its_stripe() {
        let plain = told(Style::Plain, &Step::SlackMessage(&message()));
        let expected = "\n  Slack #ops\n  ▌ ❌ shop 1 — release failed\n  ▌ environment: live\n  ▌ via ops\n    \
                        colour #e01e5a, fallback: shop 1 — release failed\n";
        assert_eq!(plain, expected);
        assert!(told(Style::Colour, &Step::SlackMessage(&message())).contains("\u{1b}[38;5;161m▌\u{1b}[0m "));
    }

    #[test]
    fn a_step_is_one_json_object_on_one_line() {
        let line = told(Style::Json, &Step::SlackMessage(&message()));
        assert_eq!(line.matches('\n').count(), 1);
        let step: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((step["step"].as_str(), step["channel"].as_str()), (Some("slack_message"), Some("#ops")));
        assert_eq!(step["attachment"]["color"], "#e01e5a");
        let done = told(Style::Json, &Step::Done { ok: false, error: Some("why") });
        assert_eq!(done, "{\"step\":\"done\",\"ok\":false,\"error\":\"why\"}\n");
    }

    #[test]
    fn a_long_text_is_cut_to_one_line() {
        assert_eq!(short("a\nb\u{1b}c", 5), "a b c");
        assert_eq!(short("ééé", 3), "ééé");
        assert_eq!(short("éééé", 3), "ééé…");
    }
}
