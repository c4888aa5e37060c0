//! The story: a shop releases software and sends invoices; people and systems want to hear of it, and one of them
//! cannot at first.
//!
//! Every step waits for what it is about, and fails naming it when it does not come. Nothing is waited for by time.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use courant_api::access::WorkspaceCreate;
use courant_api::catalog::EventTypeRegister;
use courant_api::event::Json;
use courant_api::notify::{DeliveryStatus, DeliveryView, IntegrationCreate, IntegrationView, RetryOutcome};
use courant_api::{Event, EventAppend, EventId, TenantId, WorkspaceId};
use courant_client::{Client, EventsQuery, Follow, PageQuery};
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::receivers::{Receivers, WebhookCall};
use super::terminal::{Step, Terminal};
use crate::ids::new_id;
use crate::secrets::Secret;

/// Longest wait for one thing. All of it takes about a second; this is for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(30);
/// How soon a list is asked for again that has no way to wait.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Webhook targets.
const BOOKKEEPING: &str = "bookkeeping";
const STATUS_PAGE: &str = "status-page";

/// The story, and all that plays in it.
pub struct Story<'a> {
    client: Client,
    org: TenantId,
    receivers: &'a mut Receivers,
    terminal: &'a mut Terminal,
    journal: Follow,
}

struct Places {
    shop: WorkspaceId,
    checkout: WorkspaceId,
    search: WorkspaceId,
    back_office: WorkspaceId,
}

impl<'a> Story<'a> {
    /// A story that is about to begin.
    pub fn new(client: Client, org: TenantId, receivers: &'a mut Receivers, terminal: &'a mut Terminal) -> Self {
        let journal = client.follow(EventsQuery::default());
        Self { client, org, receivers, terminal, journal }
    }

    /// Plays it to its end. Gives the workspace that Slack hears of.
    pub async fn play(&mut self, bot_token: &Secret) -> Result<WorkspaceId> {
        self.terminal
            .part("Setting up", "A platform registers its own event types; its teams say what they want to hear of.")?;
        self.register_types().await?;
        let places = self.make_workspaces().await?;
        let last = self.make_integrations(&places, bot_token).await?;
        self.terminal
            .part("The journal", "Read from its beginning by a cursor: what was just set up stands in it already.")?;
        self.read_until("the last integration", |event| event.entity_id == last.id.to_string()).await?;
        self.show_cursor()?;
        self.publish(&places).await?;
        self.see_slack_messages().await?;
        self.see_webhook().await?;
        let dead = self.see_dead_letter().await?;
        self.retry(&dead).await?;
        Ok(places.shop)
    }

    async fn register_types(&mut self) -> Result<()> {
        let text = || json!({ "type": "string" });
        let release = json!({
            "type": "object",
            "properties": { "name": text(), "environment": text(), "reason": text() },
            "required": ["name", "environment"],
        });
        let invoice = json!({
            "type": "object",
            "properties": { "customer": text(), "amount": { "type": "number" }, "currency": text() },
            "required": ["customer", "amount", "currency"],
        });
        for (name, entity_type, description, schema) in [
            ("release.completed", "release", "A release reached its environment.", &release),
            ("release.failed", "release", "A release was rolled back.", &release),
            ("invoice.issued", "invoice", "An invoice went out.", &invoice),
        ] {
            let body = EventTypeRegister {
                entity_type: entity_type.into(),
                description: Some(description.into()),
                schema: schema.clone(),
            };
            self.client.register_event_type(name, 1, &body).await?;
            self.terminal.tell(&Step::EventType { name, description })?;
        }
        Ok(())
    }

    async fn make_workspaces(&mut self) -> Result<Places> {
        let shop = self.make_workspace("Shop", None).await?;
        Ok(Places {
            shop,
            checkout: self.make_workspace("Checkout", Some(("Shop", shop))).await?,
            search: self.make_workspace("Search", Some(("Shop", shop))).await?,
            back_office: self.make_workspace("Back office", None).await?,
        })
    }

    async fn make_workspace(&mut self, name: &str, parent: Option<(&str, WorkspaceId)>) -> Result<WorkspaceId> {
        let body = WorkspaceCreate { name: name.into(), parent_id: parent.map(|(_, id)| id) };
        let made = self.client.create_workspace(&body).await?;
        self.terminal.tell(&Step::Workspace { id: made.id, name, parent: parent.map(|(name, _)| name) })?;
        Ok(made.id)
    }

    async fn make_integrations(&mut self, places: &Places, bot_token: &Secret) -> Result<IntegrationView> {
        let slack = IntegrationCreate {
            workspace_id: Some(places.shop),
            provider_config: object([("defaultChannel", "#shop-releases")]),
            auth_config: object([("botToken", bot_token.expose())]),
            ..integration("shop-releases", "slack", "release.")
        };
        self.make_integration(slack, Some("Shop")).await?;
        self.make_webhook(BOOKKEEPING, "invoice.").await?;
        self.receivers.break_target(STATUS_PAGE);
        self.make_webhook(STATUS_PAGE, "release.failed").await
    }

    async fn make_webhook(&mut self, target: &str, wants: &str) -> Result<IntegrationView> {
        let body = IntegrationCreate {
            provider_config: object([("url", self.receivers.webhook_url(target).as_str())]),
            ..integration(target, "webhook", wants)
        };
        self.make_integration(body, None).await
    }

    async fn make_integration(&mut self, body: IntegrationCreate, workspace: Option<&str>) -> Result<IntegrationView> {
        let mut made = self.client.create_integration(self.org, &body).await?;
        if made.provider == "webhook" {
            // Shown once: the receiver keeps it, and nobody else is told.
            let secret = made.generated_secret.take().context("the server showed no secret for a webhook")?;
            self.receivers.expect(&made.name, &secret)?;
        }
        self.terminal.tell(&Step::Integration { integration: &made, workspace })?;
        Ok(made)
    }

    /// Publishes one event after the other while the journal is being followed. The last one is somebody's to hear of:
    /// whatever was queued before it has been queued when it arrives.
    async fn publish(&mut self, places: &Places) -> Result<()> {
        self.terminal.part(
            "Events",
            "Published one by one, and read by the same cursor: each is there as soon as it is committed.",
        )?;
        let completed = |name: &str| json!({ "name": name, "environment": "production" });
        let failed = json!({ "name": "search 7.0.1", "environment": "production", "reason": "error rate 4 %" });
        let issued = json!({ "customer": "Harbour Books", "amount": 249.90, "currency": "EUR" });
        for (event_type, entity_id, place, payload) in [
            ("release.completed", "checkout-4.2.0", places.checkout, completed("checkout 4.2.0")),
            ("release.completed", "ledger-1.9.0", places.back_office, completed("ledger 1.9.0")),
            ("invoice.issued", "INV-2041", places.back_office, issued),
            ("release.failed", "search-7.0.1", places.search, failed),
        ] {
            let (entity_type, _) = event_type.split_once('.').unwrap_or_default();
            let id = EventId(new_id());
            let events = [EventAppend {
                id: Some(id),
                event_type: event_type.into(),
                entity_type: entity_type.into(),
                entity_id: entity_id.into(),
                workspace_id: Some(place),
                payload: Json::of(&payload)?,
                correlation_id: None,
                causation_id: None,
            }];
            let client = self.client.clone();
            let publish = async { Ok(client.append(&events, false).await?) };
            tokio::try_join!(publish, self.read_until(entity_id, |event| event.id == id))?;
        }
        self.show_cursor()
    }

    async fn see_slack_messages(&mut self) -> Result<()> {
        self.terminal.part(
            "Slack",
            "Two releases are in Shop or below it; the one in the back office is nobody's business here.",
        )?;
        let mut missing = vec!["checkout 4.2.0", "search 7.0.1"];
        while !missing.is_empty() {
            let what = format!("the Slack message about {}", missing.join(" and "));
            let message = within(&what, self.receivers.slack_message()).await?;
            self.terminal.tell(&Step::SlackMessage(&message))?;
            let fallback = &message.shown.fallback;
            let about = missing.iter().position(|name| fallback.starts_with(name));
            missing.remove(about.with_context(|| format!("a Slack message arrived that was not due: {fallback}"))?);
        }
        Ok(())
    }

    async fn see_webhook(&mut self) -> Result<()> {
        self.terminal.part(
            "Webhook",
            "Signed by Standard Webhooks with the secret that was shown when the integration was made.",
        )?;
        self.take_webhook(BOOKKEEPING, "INV-2041").await.map(drop)
    }

    async fn take_webhook(&mut self, target: &str, entity_id: &str) -> Result<WebhookCall> {
        let call = within(&format!("the webhook to {target}"), self.receivers.webhook()).await?;
        self.terminal.tell(&Step::Webhook(&call))?;
        let about = call.body["event"]["entityId"].as_str().unwrap_or_default();
        ensure!(
            call.target == target && about == entity_id,
            "the webhook about {entity_id} was due at {target}, but one about {about} arrived at {}",
            call.target
        );
        Ok(call)
    }

    async fn see_dead_letter(&mut self) -> Result<DeliveryView> {
        self.terminal.part(
            "Dead letter",
            "The status page answers 404. That does not mend itself, so the delivery is given up and kept.",
        )?;
        self.read_until("the end of the delivery to the status page", |event| {
            event.event_type == "notification_delivery.dead"
        })
        .await?;
        let mut dead = self.deliveries(&[DeliveryStatus::Dead]).await?;
        ensure!(dead.len() == 1, "one dead letter was due, and the list has {}", dead.len());
        let dead = dead.remove(0);
        self.terminal.tell(&Step::DeadLetter { delivery: &dead })?;
        ensure!(dead.integration_name == STATUS_PAGE, "the dead letter is of {}", dead.integration_name);
        ensure!(dead.last_error.is_some(), "the dead letter has no reason");
        Ok(dead)
    }

    async fn retry(&mut self, dead: &DeliveryView) -> Result<()> {
        self.terminal.part("Retry", "The status page is mended, and somebody retries the delivery.")?;
        self.receivers.mend_target(STATUS_PAGE);
        self.terminal.tell(&Step::Mended { target: STATUS_PAGE })?;
        let result = self.client.retry_delivery(self.org, dead.id).await?;
        self.terminal.tell(&Step::Retried { delivery_id: dead.id, outcome: result.outcome })?;
        ensure!(result.outcome == RetryOutcome::Requeued, "the dead letter was not queued again");
        let call = self.take_webhook(STATUS_PAGE, "search-7.0.1").await?;
        ensure!(call.headers.id == dead.id.to_string(), "the retry came under another id than its delivery's");

        // A delivery leaves the list when the end of its attempt is stored, a moment after it arrived.
        let emptied = async {
            while !self.deliveries(&[]).await?.is_empty() {
                sleep(ASK_AGAIN).await;
            }
            Ok(())
        };
        within("the empty list of deliveries", emptied).await?;
        self.terminal.tell(&Step::Deliveries { items: &[] })?;
        self.receivers.nothing_left()
    }

    fn show_cursor(&mut self) -> Result<()> {
        let cursor = self.journal.cursor().unwrap_or_default();
        self.terminal.tell(&Step::Cursor { cursor })
    }

    async fn deliveries(&self, statuses: &[DeliveryStatus]) -> Result<Vec<DeliveryView>> {
        Ok(self.client.deliveries(self.org, statuses, &PageQuery::default()).await?.items)
    }

    /// Follows the journal, telling what comes, up to the event that is meant.
    async fn read_until(&mut self, what: &str, is_it: impl Fn(&Event) -> bool) -> Result<()> {
        let (journal, terminal) = (&mut self.journal, &mut *self.terminal);
        let read = async {
            loop {
                let event = journal.next().await?;
                terminal.tell(&Step::Event { event: &event })?;
                if is_it(&event) {
                    return Ok(());
                }
            }
        };
        within(&format!("the event of {what} in the journal"), read).await
    }
}

async fn within<T>(what: &str, coming: impl Future<Output = Result<T>>) -> Result<T> {
    let arrived = timeout(PATIENCE, coming).await;
    arrived.map_err(|_| anyhow!("{what} did not arrive within {} seconds", PATIENCE.as_secs()))?
}

fn integration(name: &str, provider: &str, wants: &str) -> IntegrationCreate {
    IntegrationCreate {
        name: name.into(),
        provider: provider.into(),
        journal_types: vec![wants.into()],
        ..IntegrationCreate::default()
    }
}

fn object<const N: usize>(entries: [(&str, &str); N]) -> Map<String, Value> {
    entries.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_arrive_is_named() {
        let error = within("the webhook to bookkeeping", std::future::pending::<Result<()>>()).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "the webhook to bookkeeping did not arrive within 30 seconds");
    }

    #[tokio::test]
    async fn a_failure_is_told_as_it_is() {
        let error = within::<()>("anything", async { anyhow::bail!("it does not verify") }).await.unwrap_err();
        assert_eq!(error.to_string(), "it does not verify");
    }
}
