//! A server on a real socket: it hands out scripted answers in order and keeps what it was asked.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{Client, ClientBuilder};

pub(super) const KEY: &str = "cak_very-secret-key";

pub(super) enum Answer {
    Is(u16, Vec<(&'static str, &'static str)>, String),
    /// The answer begins, and then the connection breaks.
    Breaks,
}

impl Answer {
    pub(super) fn ok(body: &Value) -> Self {
        Self::Is(200, vec![], body.to_string())
    }

    pub(super) fn no_content() -> Self {
        Self::Is(204, vec![], String::new())
    }

    pub(super) fn refused(status: u16, code: &str) -> Self {
        let body = json!({ "error": { "code": code, "message": "it says why", "details": {} } });
        Self::Is(status, vec![("x-request-id", "r-1")], body.to_string())
    }

    pub(super) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        if let Self::Is(_, headers, _) = &mut self {
            headers.push((name, value));
        }
        self
    }
}

#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

pub(super) struct Server {
    address: SocketAddr,
    script: Script,
    /// Ends with this value.
    _tasks: JoinSet<()>,
}

impl Server {
    pub(super) async fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Script { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() };
        let router = Router::new().fallback(answer).with_state(script.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, script, _tasks: tasks }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client that pauses for a millisecond at most.
    pub(super) fn builder(&self) -> ClientBuilder {
        Client::builder(self.url()).api_key(KEY).retry_pause(Duration::from_millis(1), Duration::from_millis(1))
    }

    pub(super) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.script.asked.lock().unwrap().clone()
    }

    /// The only request there was.
    pub(super) fn asked_once(&self) -> Asked {
        let asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked[0].clone()
    }
}

async fn answer(State(script): State<Script>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let asked = Asked {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: to_bytes(body, usize::MAX).await.unwrap(),
    };
    script.asked.lock().unwrap().push(asked);
    let answer = script.answers.lock().unwrap().pop_front();
    let (status, headers, body) = match answer {
        Some(Answer::Is(status, headers, body)) => (status, headers, Body::from(body)),
        Some(Answer::Breaks) => {
            (200, vec![], Body::from_stream(stream::iter([Ok("{"), Err(std::io::Error::other("broken"))])))
        }
        // 418: nobody repeats it, so a test that asks too often sees it.
        None => (418, vec![], Body::from("nothing more was scripted")),
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(body).unwrap()
}
