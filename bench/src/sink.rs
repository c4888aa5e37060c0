//! Where deliveries go: a receiver that reads each request, counts it and answers 200, on a thread of its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

/// What the sink has seen.
#[derive(Default)]
struct Seen {
    requests: AtomicU64,
    connections: AtomicU64,
    wanted: AtomicU64,
    reached: Notify,
    first: Mutex<Option<(HeaderMap, Bytes)>>,
}

/// A running receiver; it ends when dropped.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    _stop: oneshot::Sender<()>,
}

impl Sink {
    pub(crate) fn start() -> Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Seen::default());
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&seen);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("sink".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! { _ = serve(listener, shared) => {}, _ = stopped => {} }
            });
        })?;
        Ok(Self { address, seen, _stop: stop })
    }

    /// Forgets what was counted and expects so many requests.
    pub(crate) fn expect(&self, requests: u64) {
        self.seen.requests.store(0, Ordering::SeqCst);
        self.seen.connections.store(0, Ordering::SeqCst);
        self.seen.wanted.store(requests, Ordering::SeqCst);
    }

    /// Waits until they have come.
    pub(crate) async fn reached(&self) {
        self.seen.reached.notified().await;
    }

    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }

    /// Connections that were opened since [`Sink::expect`].
    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// The first request it ever got.
    pub(crate) fn first(&self) -> Result<(HeaderMap, Bytes)> {
        self.seen.first.lock().unwrap_or_else(PoisonError::into_inner).clone().context("nothing has arrived")
    }
}

async fn serve(listener: std::net::TcpListener, seen: Arc<Seen>) -> Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        seen.connections.fetch_add(1, Ordering::SeqCst);
        let seen = Arc::clone(&seen);
        connections.spawn(async move {
            let answer = service_fn(|request| receive(Arc::clone(&seen), request));
            // A client that goes away is no fault of the sink.
            let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn receive(seen: Arc<Seen>, request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Ok(Response::new(Empty::new())) };
    let count = seen.requests.fetch_add(1, Ordering::SeqCst) + 1;
    if count == 1 {
        let mut first = seen.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| (head.headers, body.to_bytes()));
    }
    if count == seen.wanted.load(Ordering::SeqCst) {
        seen.reached.notify_one();
    }
    Ok(Response::new(Empty::new()))
}
