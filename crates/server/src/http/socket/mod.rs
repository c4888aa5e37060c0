//! Sockets: routes that turn a request into a WebSocket, how many there may be, and how each is kept and ended.
//!
//! Whatever is wrong with a request is told by a close code after the handshake, since a browser shows a page nothing
//! else. A socket must never hold more than one unsent frame, and never outlive a peer that has gone silent.

mod channel;
mod close;
mod handshake;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use hyper::upgrade::OnUpgrade;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use channel::Channel;
pub use close::{CLOSE_CODES, Ending};
pub use handshake::{BEARER, PROTOCOL};

use super::endpoint::{Endpoint, Route};
use super::error::ApiError;
use super::exchange::{Authenticate, Call, Cx, Entry, Gate as _, Signed};
use super::query;
use super::shape::Shape;
use handshake::Handshake;

/// Limits of sockets.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most at a time.
    pub sockets: usize,
    /// Between two pings.
    pub ping: Duration,
    /// A peer of which nothing has come for so long is dropped, and one that takes nothing for so long.
    pub silence: Duration,
    /// Between two looks at the credential and the right.
    pub recheck: Duration,
    /// Between two progress marks.
    pub progress: Duration,
    /// Skipped positions after which a progress mark comes sooner.
    pub progress_positions: i64,
    /// Longest wait for the peer's part of the end.
    pub goodbye: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sockets: 20_000,
            ping: Duration::from_secs(20),
            silence: Duration::from_mins(1),
            recheck: Duration::from_mins(1),
            progress: Duration::from_secs(10),
            progress_positions: 10_000,
            goodbye: Duration::from_secs(3),
        }
    }
}

/// The sockets of one application.
#[derive(Debug)]
pub struct Sockets {
    /// Their limits.
    pub limits: Limits,
    stop: CancellationToken,
    open: AtomicUsize,
    tasks: TaskTracker,
}

impl Sockets {
    /// No sockets yet; all that come are told to go when `stop` is cancelled.
    pub fn new(limits: Limits, stop: CancellationToken) -> Self {
        Self { limits, stop, open: AtomicUsize::new(0), tasks: TaskTracker::new() }
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits until all have ended, after the server was told to stop.
    pub async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn enter(self: &Arc<Self>) -> Option<Place> {
        let one_more = |open: usize| (open < self.limits.sockets).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        metrics::gauge!("courant_sockets_open").increment(1.0);
        Some(Place(Arc::clone(self)))
    }
}

/// One socket's place among those that may be open.
struct Place(Arc<Sockets>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        metrics::gauge!("courant_sockets_open").decrement(1.0);
    }
}

/// An application that has sockets.
pub trait HasSockets: Authenticate {
    /// Its sockets.
    fn sockets(&self) -> &Arc<Sockets>;
}

/// What a socket's task begins with: a place, who asks, and for what; or why not.
type Admitted<A, Q> = Result<(Place, Cx<A>, Q), Ending>;

impl<A: HasSockets> Endpoint<A> {
    /// A route whose requests become sockets. `handler` is called after the handshake, for callers with a good credential
    /// and a query that can be read, and says at its end how the socket ends.
    pub fn socket<Q, H>(path: &'static str, handler: H) -> Self
    where
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        H: for<'a> Fn(Cx<A>, Q, &'a mut Channel) -> BoxFuture<'a, Ending> + Clone + Send + Sync + 'static,
    {
        let shape = Shape::of::<(), Q, (), ()>(false);
        let route = Route { socket: true, ..Route::new(Method::GET, path, StatusCode::SWITCHING_PROTOCOLS, shape) };
        Self { route, run: Box::new(move |call| Box::pin(open(call, handler.clone()))) }
    }
}

/// Answers the handshake. A request that is none is refused as any other would be.
async fn open<A, Q, H>(call: Call<A>, handler: H) -> Result<Response, ApiError>
where
    A: HasSockets,
    Q: DeserializeOwned + Send + 'static,
    H: for<'a> Fn(Cx<A>, Q, &'a mut Channel) -> BoxFuture<'a, Ending> + Send + Sync + 'static,
{
    let mut call = call;
    let Some(handshake) = Handshake::of(&call.request) else {
        admit::<A, Q>(call).await?;
        return Err(ApiError::invalid("this path takes a WebSocket handshake"));
    };
    let upgrade = hyper::upgrade::on(&mut call.request);
    let sockets = Arc::clone(call.app.sockets());
    let request_id = call.meta.request_id.clone();
    let admitted = match sockets.enter() {
        Some(place) => admit::<A, Q>(call).await.map(|(cx, q)| (place, cx, q)).map_err(Ending::Refused),
        None => Err(Ending::Full),
    };
    sockets.tasks.spawn(run(Arc::clone(&sockets), upgrade, admitted, handler, request_id));
    Ok(handshake.response.map(|()| Body::empty()))
}

/// Credential, then query, as for every request.
async fn admit<A: Authenticate, Q: DeserializeOwned>(call: Call<A>) -> Result<(Cx<A>, Q), ApiError> {
    let Call { app, route, meta, request } = call;
    let credential = handshake::credential(request.headers());
    let entry = Entry::of(credential.as_deref(), &meta, &route, request.uri().path(), request.headers());
    let caller = Signed::admit(&*app, &entry).await?;
    let raw = request.uri().query().unwrap_or_default();
    let query = query::read(&route.shape.parameters, raw, &query::pairs(raw)?)?;
    Ok((Cx { app, caller, request: meta, idempotency: None, if_match: None }, query))
}

async fn run<A, Q, H>(
    sockets: Arc<Sockets>,
    upgrade: OnUpgrade,
    admitted: Admitted<A, Q>,
    handler: H,
    request_id: String,
) where
    A: HasSockets,
    H: for<'a> Fn(Cx<A>, Q, &'a mut Channel) -> BoxFuture<'a, Ending>,
{
    let Ok(upgraded) = upgrade.await else { return };
    let mut channel = Channel::new(upgraded, sockets).await;
    let (_place, ending) = match admitted {
        Err(ending) => (None, ending),
        Ok((place, cx, query)) => {
            // What a handler leaves behind by a panic is dropped with its future.
            let handled = AssertUnwindSafe(handler(cx, query, &mut channel)).catch_unwind().await;
            (Some(place), handled.unwrap_or_else(|panic| panicked(panic.as_ref())))
        }
    };
    drop(handler);
    metrics::counter!("courant_socket_closes_total", "code" => ending.label()).increment(1);
    if let Ending::Refused(error) = &ending {
        tracing::info_span!("socket", request_id).in_scope(|| error.log());
    }
    channel.close(&ending).await;
}

fn panicked(panic: &(dyn Any + Send)) -> Ending {
    let words = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Ending::Refused(ApiError::internal(format!("a socket's handler panicked: {}", words.unwrap_or("without words"))))
}
