//! The one guarded way out: every request to a provider leaves the process here.
//!
//! Checks where it goes, bounds how long it takes and how much is read, and says what went wrong without secrets.
//! It never follows a redirect, never uses a proxy from the environment, never decompresses, and never logs or
//! returns a path, a query, a header or a body of what it sends.

pub mod address;
mod egress;
mod fault;
mod guard;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courant_core::delivery::Failure;
use courant_providers::{HttpRequest, Response, Target};
use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use url::{Host, Url};

pub use egress::{Egress, EgressProblem};
use fault::Place;
use guard::{Guard, Lookup, system_lookup};

/// How much of a provider's answer is read; the rest is dropped with its connection.
const BODY_BYTES: usize = 4 * 1024;

/// Limits of every request.
#[derive(Clone, Copy, Debug)]
pub struct OutboundOptions {
    /// From the look-up of the name to the end of the TLS handshake.
    pub connect_timeout: Duration,
    /// The whole exchange, its body included.
    pub total_timeout: Duration,
    /// Connections kept open to one host.
    pub idle_connections_per_host: usize,
}

impl Default for OutboundOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            total_timeout: Duration::from_secs(15),
            idle_connections_per_host: 8,
        }
    }
}

/// The HTTP client could not be made.
#[derive(Debug, thiserror::Error)]
#[error("outbound HTTP client: {0}")]
pub struct OutboundError(String);

/// The way out. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Outbound {
    guarded: Client,
    open: Client,
    egress: Arc<Egress>,
    options: OutboundOptions,
}

impl Outbound {
    /// A way out under this policy.
    pub fn new(egress: Egress, options: OutboundOptions) -> Result<Self, OutboundError> {
        Self::with_lookup(egress, options, system_lookup())
    }

    fn with_lookup(egress: Egress, options: OutboundOptions, lookup: Lookup) -> Result<Self, OutboundError> {
        let egress = Arc::new(egress);
        let tls = tls_config()?;
        let guard = Guard { egress: Arc::clone(&egress), lookup };
        Ok(Self { guarded: client(&tls, options, Some(guard))?, open: client(&tls, options, None)?, egress, options })
    }

    /// Sends one request and reads the answer, within the shorter of `within` and the configured total time.
    ///
    /// Any answer is a `Response`, redirects and errors included. A failure of class `Transient` may pass by itself;
    /// `Blocked` and `Destination` cannot.
    pub async fn send(&self, request: HttpRequest, within: Duration) -> Result<Response, Failure> {
        self.fetch(request, within, BODY_BYTES).await
    }

    /// The same with another bound of what is read of the answer: the rest is dropped with its connection.
    pub async fn fetch(&self, request: HttpRequest, within: Duration, body_bytes: usize) -> Result<Response, Failure> {
        let place = Place::of(&request.url)?;
        let client = match request.target {
            Target::Operator => &self.open,
            Target::Tenant if self.allows_literal(&request.url) => &self.guarded,
            Target::Tenant => return Err(place.blocked()),
        };
        let limit = within.min(self.options.total_timeout);
        match tokio::time::timeout(limit, exchange(client, request, body_bytes)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(place.broken(&error)),
            Err(_) => Err(place.late()),
        }
    }

    /// The resolver is never asked about a host that is an address, so those are judged here.
    fn allows_literal(&self, url: &Url) -> bool {
        let port = url.port_or_known_default().unwrap_or_default();
        match url.host() {
            Some(Host::Ipv4(ip)) => self.egress.allows_socket(SocketAddr::new(ip.into(), port)),
            Some(Host::Ipv6(ip)) => self.egress.allows_socket(SocketAddr::new(ip.into(), port)),
            Some(Host::Domain(_)) => true,
            None => false,
        }
    }
}

impl std::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbound").field("egress", &self.egress).field("options", &self.options).finish_non_exhaustive()
    }
}

async fn exchange(client: &Client, request: HttpRequest, body_bytes: usize) -> Result<Response, reqwest::Error> {
    let mut outgoing = reqwest::Request::new(request.method, request.url);
    *outgoing.headers_mut() = request.headers;
    *outgoing.body_mut() = Some(request.body.into());
    let mut answer = client.execute(outgoing).await?;
    let mut body = Vec::new();
    while body.len() < body_bytes {
        let Some(chunk) = answer.chunk().await? else {
            break;
        };
        body.extend(chunk.iter().take(body_bytes - body.len()));
    }
    Ok(Response {
        status: answer.status().as_u16(),
        retry_after: text_header(answer.headers(), &RETRY_AFTER),
        location: text_header(answer.headers(), &LOCATION),
        body,
    })
}

fn text_header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn client(tls: &rustls::ClientConfig, options: OutboundOptions, guard: Option<Guard>) -> Result<Client, OutboundError> {
    #[expect(clippy::disallowed_methods, reason = "this is the guarded client")]
    let builder = Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .no_proxy()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(options.connect_timeout)
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(options.idle_connections_per_host);
    let builder = match guard {
        Some(guard) => builder.dns_resolver(guard),
        None => builder,
    };
    builder.build().map_err(|error| OutboundError(error.to_string()))
}

/// TLS with the certificate authorities of this machine. Made here and not by the client, which refuses to start
/// where there are none: then only `https` targets fail.
fn tls_config() -> Result<rustls::ClientConfig, OutboundError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        tracing::warn!("no certificate authorities found on this machine: https targets will fail");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OutboundError(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
