//! A running server: database, routes and workers in one process, from start to an orderly end.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use courant_providers::Settings;
use courant_store::{Authority, Changed, Options, Store};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::app::App;
use crate::config::Config;
use crate::decision::DecisionPoint;
use crate::http::{Front, listen, router, socket, v1};
use crate::identity::Issuers;
use crate::outbound::{Egress, Outbound, OutboundOptions};
use crate::secrets::{KeyRing, MissingKey};
use crate::work::{self, Limits, Workers};
use crate::{clock, metrics, ops};

/// Longest wait at the end for requests and sends in hand.
const GOODBYE: Duration = Duration::from_secs(20);

/// A server that has started.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it shows its metrics, when they have an address of their own.
    pub metrics_address: Option<SocketAddr>,
    /// The application.
    pub app: Arc<App>,
    server: Uuid,
    workers: Workers,
    http: TaskTracker,
}

/// What a server is made of beyond its configuration.
pub struct Parts {
    /// The key ring; none: from the configuration, else from the data directory.
    pub ring: Option<KeyRing>,
    /// The outbound policy.
    pub egress: Egress,
    /// Limits of sockets, but for their number, which is configured.
    pub sockets: socket::Limits,
}

impl Running {
    /// Starts a server.
    pub async fn start(config: &Config, parts: Parts) -> Result<Self> {
        metrics::install();
        if let Some(problem) = config.journal.problem() {
            anyhow::bail!(problem);
        }
        let url = config.database.url.expose();
        if url.starts_with("sqlite:") {
            make_data_dir(&config.server.data_dir)?;
        }
        let outbound = Outbound::new(parts.egress, OutboundOptions::default())?;
        let decision_point = config.authorization.decision_point();
        let decision_point = decision_point.map(|at| Arc::new(DecisionPoint::new(outbound.clone(), &at)));
        let authority = match &decision_point {
            Some(point) => Authority::DecisionPoint(Arc::new(point.said())),
            None => Authority::Grants(config.authorization.reach),
        };
        let keeps_attempts = config.notify.history_retention.is_some();
        let options = Options { authority, keeps_attempts, ..Options::server(url) };
        let store = Store::open(&options).await.context("opening the database")?;
        let ring = match parts.ring {
            Some(given) => check_ring(&store, &given).await.map(|()| given)?,
            None => ring(config, &store).await?,
        };
        let settings = Settings { slack_api_base_url: config.notify.slack_api_base_url.url().clone() };
        let bootstrap_secret = config.security.bootstrap_secret.clone();
        let sockets = socket::Limits { sockets: config.server.max_sockets, ..parts.sockets };
        let mut app = App::new(store, Arc::new(ring), bootstrap_secret, settings, outbound);
        app.issuers = Issuers::new(config.identity.issuers.clone(), &app.outbound);
        app.decision_point = decision_point;
        app.base_url =
            config.server.public_base_url.as_ref().map(|base| base.url().as_str().trim_end_matches('/').into());
        let app = Arc::new(
            app.with_journal(config.journal.clone()).with_sockets(sockets).with_rate_limit(config.exchange.rate_limit),
        );

        let listener = TcpListener::bind(config.server.listen)
            .await
            .with_context(|| format!("listening on {}", config.server.listen))?;
        let address = listener.local_addr()?;
        let server = app.store.server_register(clock::now()).await.context("registering the server")?;
        let limits = Limits {
            max_attempts: config.notify.max_attempts,
            delivery_retention: config.notify.delivery_retention,
            history_retention: config.notify.history_retention.unwrap_or_default(),
        };
        let workers = work::start(&app, server, limits);
        let http = TaskTracker::new();
        let main = if config.server.metrics_listen.is_some() { v1::endpoints_without_metrics } else { v1::endpoints };
        let https = config.server.public_base_url.as_ref().is_some_and(|base| base.url().scheme() == "https");
        let front = Front {
            trusted_proxies: config.exchange.trusted_proxies.clone(),
            cors_origins: config.exchange.cors_origins.clone(),
            https,
        };
        serve_routes(&http, listener, front.before(router(main(), &app)), &app);
        let mut metrics_address = None;
        if let Some(address) = config.server.metrics_listen {
            let listener =
                TcpListener::bind(address).await.with_context(|| format!("listening for metrics on {address}"))?;
            metrics_address = Some(listener.local_addr()?);
            let front = Front { trusted_proxies: config.exchange.trusted_proxies.clone(), ..Front::default() };
            serve_routes(&http, listener, front.before(router(v1::metrics_alone(), &app)), &app);
        }
        tracing::info!(%address, "courant is listening");
        Ok(Self { address, metrics_address, app, server, workers, http })
    }

    /// The tenant of a first start on an empty embedded database, with its key; none when there are tenants.
    pub async fn first_tenant(&self) -> Result<Option<courant_api::access::TenantBootstrapped>> {
        let store = &self.app.store;
        if !store.is_embedded() || store.tenant_count().await? > 0 {
            return Ok(None);
        }
        let body = courant_api::access::TenantBootstrap { name: "default".into() };
        match ops::access::tenant_bootstrap(store, None, body).await? {
            Changed::Now(made) => Ok(Some(made)),
            Changed::Before(_) => Ok(None),
        }
    }

    /// Ends the server in order: no new request or send begins, those in hand finish.
    pub async fn stop(self) {
        self.app.stop.cancel();
        self.http.close();
        let in_hand = async {
            self.workers.ended().await;
            self.http.wait().await;
            self.app.sockets.ended().await;
        };
        if tokio::time::timeout(GOODBYE, in_hand).await.is_err() {
            tracing::warn!("some requests or sends did not finish in time; deliveries among them are recovered");
        } else if let Err(error) = self.app.store.server_leave(self.server).await {
            tracing::warn!(%error, "the server could not be taken off the list; others notice by its heartbeat");
        }
        tracing::info!("courant has stopped");
    }
}

/// Makes the data directory, for its owner only, unless it is there.
pub fn make_data_dir(path: &Path) -> Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("data directory {}", path.display()))
}

/// The key ring by this configuration, once it is known to have every key that the database needs.
pub async fn ring(config: &Config, store: &Store) -> Result<KeyRing> {
    let ring = match &config.security.encryption_keys {
        Some(ring) => ring.clone(),
        None => own_ring(store, &config.server.data_dir).await?,
    };
    check_ring(store, &ring).await?;
    Ok(ring)
}

/// The ring of the data directory. A fresh one is only made for a database that needs no other: a key made beside it
/// would hide that the right one is lost.
async fn own_ring(store: &Store, data_dir: &Path) -> Result<KeyRing> {
    let path = key_file(data_dir);
    let exists = path.try_exists().with_context(|| format!("encryption key {}", path.display()))?;
    if let (false, Some((id, _))) = (exists, store.encryption_keys().await?.first()) {
        let missing = MissingKey::Absent(id.clone());
        return Err(missing).with_context(|| format!("there is no encryption key file {}", path.display()));
    }
    make_data_dir(data_dir)?;
    KeyRing::load_or_create(&path).context("encryption key")
}

/// Where a server keeps the key that it made itself.
pub fn key_file(data_dir: &Path) -> std::path::PathBuf {
    data_dir.join("encryption.key")
}

fn serve_routes(tasks: &TaskTracker, listener: TcpListener, routes: Router, app: &App) {
    tasks.spawn(listen::serve(tasks.clone(), listener, routes, app.stop.clone()));
}

/// Refuses a key ring that lacks a key which the database needs, and notes the one that seals from now on.
async fn check_ring(store: &Store, ring: &KeyRing) -> Result<()> {
    ring.verify(&store.encryption_keys().await?)?;
    // The first key is the one that seals; what older ones have sealed noted them when they were the first.
    if let Some((id, check)) = ring.check_values().into_iter().next() {
        store.encryption_key_add(id, check).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_data_directory_is_made_for_its_owner_only_and_left_as_it_is_found() {
        let place = tempfile::tempdir().unwrap();
        let made = place.path().join("a").join("b");
        make_data_dir(&made).unwrap();
        assert_eq!(mode(&made), 0o700);
        std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o750)).unwrap();
        make_data_dir(&made).unwrap();
        assert_eq!(mode(&made), 0o750);
    }

    #[tokio::test]
    async fn no_key_file_is_made_beside_a_database_that_was_sealed_with_another() {
        let place = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", place.path().join("courant.db").display());
        let store = Store::open(&Options::server(&url)).await.unwrap();
        let first = own_ring(&store, place.path()).await.unwrap();
        check_ring(&store, &first).await.unwrap();
        let path = key_file(place.path());
        std::fs::remove_file(&path).unwrap();
        let error = own_ring(&store, place.path()).await.unwrap_err();
        let (id, _) = &first.check_values()[0];
        assert!(format!("{error:#}").contains(&format!("`{id}`")), "{error:#}");
        assert!(!path.exists());
    }
}
