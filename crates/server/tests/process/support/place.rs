//! A place where servers can run: an empty database, a data directory and receivers.

use std::path::Path;

use courant_api::access::TenantBootstrapped;
use courant_api::catalog::EventTypeRegister;
use courant_api::event::Json;
use courant_api::notify::{DeliveryView, IntegrationCreate, IntegrationView};
use courant_api::{EventAppend, TenantId};
use courant_client::{Client, PageQuery};
use courant_testkit::{Receiver, TestDatabase, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::process::{Ended, Process, Settings, command};

/// The secret of the webhooks that tests create.
pub const WEBHOOK_SECRET: &str = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdGVzdHMnIHdlYmhvb2s=";

/// Which database a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Postgres,
    Sqlite,
}

/// Where servers run.
pub struct Place {
    /// Takes webhooks.
    pub sink: Receiver,
    /// The environment of everything that is started here.
    pub settings: Settings,
    pub database: TestDatabase,
    dir: TempDir,
}

impl Place {
    pub async fn new(engine: Engine) -> Self {
        let database = match engine {
            Engine::Postgres => TestDatabase::postgres().await,
            Engine::Sqlite => TestDatabase::sqlite(),
        };
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("data");
        let settings = [
            ("COURANT_LISTEN", "127.0.0.1:0"),
            ("COURANT_DATA_DIR", data_dir.to_str().unwrap()),
            ("COURANT_DATABASE_URL", database.url()),
            ("COURANT_EGRESS_ALLOW", "127.0.0.1"),
            ("COURANT_LOG_FORMAT", "json"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Self { sink: Receiver::start().await, settings, database, dir }
    }

    /// The directory that everything here is started in; `data` below it is the data directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The settings with some changed; an empty value takes one away.
    pub fn with(&self, changes: &[(&str, &str)]) -> Settings {
        let mut settings = self.settings.clone();
        settings.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        settings.retain(|_, value| !value.is_empty());
        settings
    }

    /// A running server.
    pub async fn serve(&self) -> Process {
        self.serve_with(&[]).await.unwrap_or_else(|ended| panic!("the server did not start: {ended:?}"))
    }

    /// A running server with some settings changed, or what it said when it did not start.
    pub async fn serve_with(&self, changes: &[(&str, &str)]) -> Result<Process, Ended> {
        Process::start(command(&["serve"], &self.with(changes), self.dir())).await
    }

    /// Runs a command to its end.
    pub async fn run(&self, args: &[&str]) -> Ended {
        Ended::of(command(args, &self.settings, self.dir())).await
    }

    /// Runs a command in another environment to its end.
    pub async fn run_with(&self, args: &[&str], changes: &[(&str, &str)]) -> Ended {
        Ended::of(command(args, &self.with(changes), self.dir())).await
    }

    /// A tenant that `courant bootstrap` makes.
    pub async fn bootstrap(&self) -> TenantBootstrapped {
        let ended = self.run(&["bootstrap", "--name", "acme", "--json"]).await;
        serde_json::from_str(ended.well()).unwrap()
    }

    /// A new tenant with the event type `order.made`.
    pub async fn org(&self, server: &Process) -> Org {
        let made = self.bootstrap().await;
        let org = Org { id: made.tenant_id, key: made.api_key.unwrap() };
        let body = EventTypeRegister {
            entity_type: "order".into(),
            description: None,
            schema: json!({
                "type": "object",
                "properties": { "n": { "type": "integer" }, "text": { "type": "string" } },
            }),
        };
        org.at(server).register_event_type("order.made", 1, &body).await.unwrap();
        org
    }
}

/// A tenant and the key of its administrator.
#[derive(Clone)]
pub struct Org {
    pub id: TenantId,
    pub key: String,
}

impl Org {
    /// The administrator at a server.
    pub fn at(&self, server: &Process) -> Client {
        Client::builder(format!("http://{}", server.address)).api_key(&self.key).build().unwrap()
    }

    /// A webhook to `receiver` for orders.
    pub async fn webhook(&self, server: &Process, receiver: &Receiver, paused: bool) -> IntegrationView {
        let config = json!({ "url": receiver.url("/in") });
        self.integration(server, "webhook", paused, config, json!({ "secret": WEBHOOK_SECRET })).await
    }

    /// An integration of this provider for orders.
    pub async fn integration(
        &self,
        server: &Process,
        provider: &str,
        paused: bool,
        config: Value,
        auth: Value,
    ) -> IntegrationView {
        let body = IntegrationCreate {
            name: provider.into(),
            provider: provider.into(),
            paused: Some(paused),
            journal_types: vec!["order.".into()],
            provider_config: serde_json::from_value(config).unwrap(),
            auth_config: serde_json::from_value(auth).unwrap(),
            ..IntegrationCreate::default()
        };
        self.at(server).create_integration(self.id, &body).await.unwrap()
    }

    /// Appends orders with these numbers.
    pub async fn append(&self, server: &Process, numbers: std::ops::Range<i64>) {
        let events: Vec<_> = numbers.map(|n| order(n, &json!({ "n": n }))).collect();
        self.at(server).append(&events, true).await.unwrap();
    }

    /// Appends an order with so much text.
    pub async fn append_large(&self, server: &Process, number: i64, bytes: usize) {
        let event = order(number, &json!({ "n": number, "text": "x".repeat(bytes) }));
        self.at(server).append(&[event], true).await.unwrap();
    }

    /// The stored deliveries.
    pub async fn deliveries(&self, server: &Process) -> Vec<DeliveryView> {
        let page = PageQuery { limit: Some(200), cursor: None };
        self.at(server).deliveries(self.id, &[], &page).await.unwrap().items
    }

    /// Waits until this many deliveries are stored, and gives them.
    pub async fn stored(&self, server: &Process, count: usize) -> Vec<DeliveryView> {
        eventually(&format!("{count} stored deliveries"), async || {
            let stored = self.deliveries(server).await;
            (stored.len() == count).then_some(stored)
        })
        .await
    }
}

fn order(number: i64, payload: &Value) -> EventAppend {
    EventAppend {
        id: None,
        event_type: "order.made".into(),
        entity_type: "order".into(),
        entity_id: format!("o_{number}"),
        workspace_id: None,
        payload: Json::of(payload).unwrap(),
        correlation_id: None,
        causation_id: None,
    }
}
