//! A whole server, in this process, on a database of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use courant_server::app::App;
use courant_server::clock;
use courant_server::config::{Config, ServeArgs};
use courant_server::http::socket::Limits;
use courant_server::http::{router, v1};
use courant_server::identity::{IssuerSettings, Issuers};
use courant_server::live::Live;
use courant_server::outbound::{Egress, Outbound, OutboundOptions};
use courant_server::secrets::KeyRing;
use courant_server::serve::{Parts, Running};
use courant_server::work::{self, Workers};
use courant_store::{Options, Store};
use courant_testkit::{Issuer, Receiver, SigningKey, TestDatabase, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::http::{Api, Heard};
use super::journal;
use super::tenant::Tenant;

/// What the server asks for before it makes a tenant over HTTP.
pub const BOOTSTRAP_SECRET: &str = "the-bootstrap-secret-of-the-tests";

/// Which database a case runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Postgres,
    Sqlite,
}

/// Settings beyond those that every case has.
pub type Setup<'a> = &'a [(&'a str, &'a str)];

/// A running server with its database and two receivers, which its deliveries may reach.
pub struct World {
    pub engine: Engine,
    pub app: Arc<App>,
    /// Nobody at the server.
    pub api: Api,
    /// Where metrics have an address of their own.
    pub metrics_address: Option<SocketAddr>,
    /// Takes webhooks.
    pub sink: Receiver,
    /// Is Slack's API at `/api`.
    pub slack: Receiver,
    /// Signs people in.
    pub issuer: Issuer,
    /// The key that it publishes.
    pub signing_key: SigningKey,
    issuers: Vec<IssuerSettings>,
    pub heard: Heard,
    running: Mutex<Option<Running>>,
    peers: Mutex<JoinSet<()>>,
    pub database: TestDatabase,
    _data: TempDir,
}

/// A second server.
pub struct Peer {
    pub address: SocketAddr,
    pub app: Arc<App>,
    workers: Workers,
}

impl Peer {
    /// Ends its background work.
    pub async fn stop(self) {
        self.app.stop.cancel();
        self.workers.ended().await;
    }
}

/// Runs one case, and then checks what it has left in the journal.
pub async fn run(engine: Engine, case: impl AsyncFn(&World)) {
    run_with(engine, Limits::default(), case).await;
}

/// Runs one case on a server with these limits of sockets.
pub async fn run_with(engine: Engine, limits: Limits, case: impl AsyncFn(&World)) {
    let world = World::start_with(engine, &[], limits).await;
    case(&world).await;
    world.finish().await;
}

async fn empty(engine: Engine) -> TestDatabase {
    match engine {
        Engine::Postgres => TestDatabase::postgres().await,
        Engine::Sqlite => TestDatabase::sqlite(),
    }
}

impl World {
    /// A server with these settings on an empty database. A setting without a value is taken away.
    pub async fn start(engine: Engine, setup: Setup<'_>) -> Self {
        Self::start_with(engine, setup, Limits::default()).await
    }

    /// The same with other limits of sockets, but for their number, which is a setting.
    pub async fn start_with(engine: Engine, setup: Setup<'_>, sockets: Limits) -> Self {
        Self::begin(engine, empty(engine).await, KeyRing::generate(), setup, sockets).await.unwrap()
    }

    /// Ends the server and starts another one with these settings on its database.
    pub async fn restart(self, setup: Setup<'_>) -> Self {
        self.stop().await;
        self.peers.lock().await.shutdown().await;
        let Self { engine, app, database, .. } = self;
        let ring = KeyRing::clone(&app.ring);
        // Nothing of the first may be left: a SQLite file has one server.
        drop(app);
        // The store's last task lets go of the file a moment after its last owner.
        if let Some(dir) = database.sqlite_dir() {
            let lock = std::fs::File::open(dir.join("courant.lock")).unwrap();
            eventually("the first server's file", async || lock.try_lock().ok()).await;
        }
        Self::begin(engine, database, ring, setup, Limits::default()).await.unwrap()
    }

    /// Why a server with these settings does not start.
    pub async fn refused(engine: Engine, setup: Setup<'_>) -> String {
        let begun = Self::begin(engine, empty(engine).await, KeyRing::generate(), setup, Limits::default()).await;
        format!("{:#}", begun.err().expect("a server that does not start"))
    }

    async fn begin(
        engine: Engine,
        database: TestDatabase,
        ring: KeyRing,
        setup: Setup<'_>,
        sockets: Limits,
    ) -> anyhow::Result<Self> {
        let (sink, slack) = (Receiver::start().await, Receiver::start().await);
        let data = tempfile::tempdir().unwrap();
        let signing_key = SigningKey::generate("first", "ES256");
        let issuer = Issuer::start(&[&signing_key]).await;
        let (slack_url, issuer_name) = (slack.url("/api"), issuer.name());
        let data_dir = data.path().to_str().unwrap();
        let mut settings = BTreeMap::from([
            ("COURANT_LISTEN", "127.0.0.1:0"),
            ("COURANT_DATA_DIR", data_dir),
            ("COURANT_DATABASE_URL", database.url()),
            ("COURANT_BOOTSTRAP_SECRET", BOOTSTRAP_SECRET),
            ("COURANT_OIDC_ISSUERS", &issuer_name),
            ("SLACK_API_BASE_URL", &slack_url),
        ]);
        settings.extend(setup.iter().copied());
        settings.retain(|_, value| !value.is_empty());
        let lookup = |name: &str| settings.get(name).map(|value| (*value).to_owned());
        let config = Config::resolve(&ServeArgs::default(), &lookup, None).unwrap();
        let egress = Egress::default().allow_socket(sink.address());
        let parts = Parts { ring: Some(ring), egress, sockets };
        let running = Running::start(&config, parts).await?;
        let (app, address, heard) = (Arc::clone(&running.app), running.address, Heard::default());
        let metrics_address = running.metrics_address;
        Ok(Self {
            engine,
            app,
            api: Api::new(address, Arc::clone(&heard)),
            metrics_address,
            sink,
            slack,
            issuer,
            signing_key,
            issuers: config.identity.issuers,
            heard,
            running: Mutex::new(Some(running)),
            peers: Mutex::default(),
            database,
            _data: data,
        })
    }

    /// A new tenant and its first principal, who may do everything.
    pub async fn tenant(&self) -> Tenant {
        let made = self.api.with(BOOTSTRAP_SECRET).post("/bootstrap", &json!({ "name": "acme" })).await.expect(201);
        Tenant::new(&self.api, &made)
    }

    /// Whoever has a token of the issuer about this subject, with these claims over the usual ones.
    pub fn bearer(&self, subject: &str, mut claims: Value) -> Api {
        claims["sub"] = subject.into();
        self.api.with(&self.issuer.token(&self.signing_key, clock::now().micros() / 1_000_000, claims))
    }

    /// The address of a second application on the same database: its own caches, no background work of its own.
    pub async fn second_server(&self) -> SocketAddr {
        self.second_server_on(self.store().await).await
    }

    /// The same on another opening of the database.
    pub async fn second_server_on(&self, store: Store) -> SocketAddr {
        let outbound = Outbound::new(Egress::default(), OutboundOptions::default()).unwrap();
        let settings = self.app.settings.clone();
        let mut app = App::new(store, Arc::clone(&self.app.ring), None, settings, outbound);
        app.issuers = Issuers::new(self.issuers.clone(), &app.outbound);
        self.serve(Arc::new(app)).await
    }

    /// A second server on the same database with background work of its own. It reaches the database at `url`, and its
    /// waiting readers look for what they were not told of only every `poll`.
    pub async fn peer(&self, url: &str, poll: Duration) -> Peer {
        let store = Store::open(&Options::server(url)).await.unwrap();
        let outbound = Outbound::new(Egress::default(), OutboundOptions::default()).unwrap();
        let mut app = App::new(store, Arc::clone(&self.app.ring), None, self.app.settings.clone(), outbound);
        app.live = Live::looking_every(poll);
        let app = Arc::new(app);
        let id = app.store.server_register(clock::now()).await.unwrap();
        let (delivery_retention, history_retention) = (Duration::from_hours(1), Duration::from_hours(1));
        let limits = work::Limits { max_attempts: 1, delivery_retention, history_retention };
        let workers = work::start(&app, id, limits);
        Peer { address: self.serve(Arc::clone(&app)).await, app, workers }
    }

    /// The URL of the database.
    pub fn database_url(&self) -> &str {
        self.database.url()
    }

    /// The address of a second listener on the very application that runs, which goes on when that one stops.
    pub async fn second_listener(&self) -> SocketAddr {
        self.serve(Arc::clone(&self.app)).await
    }

    async fn serve(&self, app: Arc<App>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        self.peers.lock().await.spawn(async move {
            axum::serve(listener, router(v1::endpoints(), &app)).await.unwrap();
        });
        address
    }

    /// Another opening of the database, beside the server.
    pub async fn store(&self) -> Store {
        Store::open(&Options::command(self.database.url())).await.unwrap()
    }

    /// Where the file of an embedded database is.
    pub fn sqlite_dir(&self) -> Option<&Path> {
        self.database.sqlite_dir()
    }

    /// Waits until the announcer has passed this place of the journal: what it has not queued by then, it never will.
    pub async fn announced(&self, sequence: i64) {
        eventually("the announcer", async || {
            (self.app.store.announcer_position().await.unwrap() >= sequence).then_some(())
        })
        .await;
    }

    /// Ends the server in order.
    pub async fn stop(&self) {
        let running = self.running.lock().await.take();
        running.expect("a running server").stop().await;
    }

    /// Ends the server if it runs, and checks every event in its journal.
    pub async fn finish(self) {
        if let Some(running) = self.running.lock().await.take() {
            running.stop().await;
        }
        self.peers.lock().await.shutdown().await;
        journal::check(&self.store().await).await;
    }

    /// Everything that the server has answered so far.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}
