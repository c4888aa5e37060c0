//! A receiver of notifications whose every answer is the test's to give: what a webhook or Slack's API would be.
//!
//! It must never answer by itself: a request is held until the test has looked at it and answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::eventually::PATIENCE;

const LARGEST_BODY: usize = 1024 * 1024;

/// A local HTTP server that hands every request to the test.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    arrivals: Mutex<mpsc::UnboundedReceiver<Arrival>>,
    _serving: JoinSet<()>,
}

/// A request that has arrived and waits for its answer.
#[derive(Debug)]
pub struct Arrival {
    /// Its method.
    pub method: Method,
    /// Its path, with the query.
    pub target: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    answer: oneshot::Sender<Answer>,
}

/// What a request is answered with.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    retry_after: Option<u32>,
    body: String,
}

impl Receiver {
    /// Starts one on a free port of this machine.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("the port just bound");
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let routes = Router::new().fallback(move |request: Request| receive(request, arrived.clone()));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            // Only the end of the test ends it.
            let _ = axum::serve(listener, routes).await;
        });
        Self { address, arrivals: Mutex::new(arrivals), _serving: serving }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:…` and this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next request. Panics when none comes in a very long time.
    pub async fn next(&self) -> Arrival {
        self.next_within(PATIENCE).await.expect("a request at the receiver")
    }

    /// The next request, if one comes within this time.
    pub async fn next_within(&self, time: Duration) -> Option<Arrival> {
        tokio::time::timeout(time, async { self.arrivals.lock().await.recv().await }).await.ok().flatten()
    }

    /// A request that has arrived already and that nobody has looked at.
    pub fn waiting(&self) -> Option<Arrival> {
        self.arrivals.try_lock().ok()?.try_recv().ok()
    }
}

async fn receive(request: Request, arrived: mpsc::UnboundedSender<Arrival>) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, LARGEST_BODY).await else { return respond(Answer::status(413)) };
    let (answer, answered) = oneshot::channel();
    let target = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let arrival = Arrival { method: parts.method, target, headers: parts.headers, body, answer };
    if arrived.send(arrival).is_err() {
        return respond(Answer::status(503));
    }
    // An arrival that the test drops is one that the receiver could not take.
    respond(answered.await.unwrap_or_else(|_| Answer::status(503)))
}

fn respond(answer: Answer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).expect("a status");
    if let Some(seconds) = answer.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

impl Answer {
    /// This status, without a body.
    pub fn status(status: u16) -> Self {
        Self { status, retry_after: None, body: String::new() }
    }

    /// With `Retry-After` in seconds.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// What Slack says of a message that it has posted.
    pub fn slack_posted() -> Self {
        let body = json!({ "ok": true, "channel": "C0TEST", "ts": "1788257704.000100" });
        Self { body: body.to_string(), ..Self::status(200) }
    }

    /// What Slack says of a message that it does not post.
    pub fn slack_refused(error: &str) -> Self {
        Self { body: json!({ "ok": false, "error": error }).to_string(), ..Self::status(200) }
    }
}

impl Arrival {
    /// Answers it. Who sent it may be gone by now.
    pub fn answer(self, answer: Answer) {
        let _ = self.answer.send(answer);
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// A header that must be there, once.
    pub fn header(&self, name: &str) -> &str {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().unwrap_or_else(|| panic!("no header {name}"));
        assert_eq!(values.next(), None, "{name} is there twice");
        value.to_str().expect("a header in ASCII")
    }

    /// The body of a webhook, after its signature has been verified by the Standard Webhooks library.
    pub fn verified(&self, secret: &str) -> Value {
        let webhook = standardwebhooks::Webhook::new(secret).expect("a webhook secret");
        webhook.verify(&self.body, &self.headers).expect("a signature that verifies");
        assert_eq!(self.method, Method::POST);
        self.json()
    }
}
