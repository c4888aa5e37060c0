//! A policy service that decides as the test says: an AuthZEN evaluation endpoint with real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use futures_util::StreamExt as _;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const LARGEST_BODY: usize = 1024 * 1024;

/// How a question is met.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// With a decision.
    Decide(bool),
    /// With this status and body.
    Answer(u16, String),
    /// With a head, and a body that never ends.
    Trickle,
    /// Not at all: the connection stays open.
    Hang,
}

type Policy = Arc<dyn Fn(&Value) -> Verdict + Send + Sync>;

/// A question as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Path of the request.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Value,
}

/// A policy service on a free port of this machine.
pub struct PolicyService {
    address: SocketAddr,
    policy: Arc<Mutex<Policy>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    _serving: JoinSet<()>,
}

impl PolicyService {
    /// Starts one that allows everything.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("the port just bound");
        let allow: Policy = Arc::new(|_| Verdict::Decide(true));
        let (policy, asked) = (Arc::new(Mutex::new(allow)), Arc::default());
        let routes = Router::new().fallback({
            let (policy, asked) = (Arc::clone(&policy), Arc::clone(&asked));
            move |request: Request| answer(request, Arc::clone(&policy), Arc::clone(&asked))
        });
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            // Only the end of the test ends it.
            let _ = axum::serve(listener, routes).await;
        });
        Self { address, policy, asked, _serving: serving }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on decides so.
    pub fn decide(&self, policy: impl Fn(&Value) -> Verdict + Send + Sync + 'static) {
        *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// The questions since this was last called.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn answer(request: Request, policy: Arc<Mutex<Policy>>, asked: Arc<Mutex<Vec<Asked>>>) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, LARGEST_BODY).await.unwrap_or_default();
    let question: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(Asked {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body: question.clone(),
    });
    let policy = Arc::clone(&policy.lock().unwrap_or_else(PoisonError::into_inner));
    let (status, body) = match policy(&question) {
        Verdict::Decide(decision) => (200, Body::from(json!({ "decision": decision }).to_string())),
        Verdict::Answer(status, text) => (status, Body::from(text)),
        Verdict::Trickle => {
            let start = futures_util::stream::iter([Ok::<_, std::io::Error>("{\"decision\":")]);
            (200, Body::from_stream(start.chain(futures_util::stream::pending())))
        }
        Verdict::Hang => std::future::pending().await,
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response
}
