//! The receiving ends on this machine: a stand-in for Slack and a sink for webhooks, each on a socket of its own.
//!
//! They check what comes as a careful receiver would and pass it on; what fails the check is passed on as a failure,
//! never dropped.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, anyhow, bail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::routing::post;
use http::{HeaderMap, HeaderName, StatusCode, header};
use serde::Serialize;
use serde_json::Value;
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::slack::{self, SlackMessage};
use crate::clock;
use crate::secrets::Secret;

/// A webhook whose signature is valid.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookCall {
    /// The path without its slash: which target was called.
    pub target: String,
    /// Always true: what does not verify never becomes one of these.
    pub verified: bool,
    /// The headers that carry the signature and what it is over.
    pub headers: SignedHeaders,
    /// The body.
    pub body: Value,
}

/// Standard Webhooks' headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignedHeaders {
    /// The same in every attempt.
    #[serde(rename = "webhook-id")]
    pub id: String,
    /// Of this attempt, in seconds.
    #[serde(rename = "webhook-timestamp")]
    pub timestamp: String,
    /// `v1,…`
    #[serde(rename = "webhook-signature")]
    pub signature: String,
}

/// What arrives.
pub enum Arrival {
    /// In Slack.
    Slack(SlackMessage),
    /// At a webhook target.
    Webhook(WebhookCall),
}

/// What the handlers know.
struct Desk {
    bot_token: Secret,
    posted: AtomicU32,
    slack: UnboundedSender<Result<SlackMessage>>,
    webhooks: UnboundedSender<Result<WebhookCall>>,
    targets: Mutex<Targets>,
}

#[derive(Default)]
struct Targets {
    keys: HashMap<String, Webhook>,
    broken: HashSet<String>,
}

/// Both receivers, listening.
pub struct Receivers {
    desk: Arc<Desk>,
    slack_at: SocketAddr,
    webhooks_at: SocketAddr,
    slack: UnboundedReceiver<Result<SlackMessage>>,
    webhooks: UnboundedReceiver<Result<WebhookCall>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Receivers {
    /// Opens both on free ports. Slack's takes only this bot token.
    pub async fn start(bot_token: &Secret) -> Result<Self> {
        let ((slack_sender, slack), (webhook_sender, webhooks)) = (unbounded_channel(), unbounded_channel());
        let desk = Arc::new(Desk {
            bot_token: bot_token.clone(),
            posted: AtomicU32::new(0),
            slack: slack_sender,
            webhooks: webhook_sender,
            targets: Mutex::default(),
        });
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let slack_routes =
            Router::new().route("/api/chat.postMessage", post(post_message)).with_state(Arc::clone(&desk));
        let webhook_routes = Router::new().route("/{target}", post(receive)).with_state(Arc::clone(&desk));
        Ok(Self {
            slack_at: serve(slack_routes, &stop, &tasks).await?,
            webhooks_at: serve(webhook_routes, &stop, &tasks).await?,
            desk,
            slack,
            webhooks,
            stop,
            tasks,
        })
    }

    /// The two sockets, which the server has to be allowed to reach.
    pub fn sockets(&self) -> [SocketAddr; 2] {
        [self.slack_at, self.webhooks_at]
    }

    /// Where Slack's methods live here.
    pub fn slack_api(&self) -> String {
        format!("http://{}/api", self.slack_at)
    }

    /// The address of a webhook target.
    pub fn webhook_url(&self, target: &str) -> String {
        format!("http://{}/{target}", self.webhooks_at)
    }

    /// Gives a target the secret that its webhooks are signed with.
    pub fn expect(&self, target: &str, secret: &str) -> Result<()> {
        let key = Webhook::new(secret).context("the secret of a webhook")?;
        self.desk.targets().keys.insert(target.to_owned(), key);
        Ok(())
    }

    /// Makes a target answer 404.
    pub fn break_target(&self, target: &str) {
        self.desk.targets().broken.insert(target.to_owned());
    }

    /// Makes it answer again.
    pub fn mend_target(&self, target: &str) {
        self.desk.targets().broken.remove(target);
    }

    /// The next message in Slack, however long it takes.
    pub async fn slack_message(&mut self) -> Result<SlackMessage> {
        self.slack.recv().await.context("the Slack stand-in has ended")?
    }

    /// The next webhook, however long it takes.
    pub async fn webhook(&mut self) -> Result<WebhookCall> {
        self.webhooks.recv().await.context("the webhook receiver has ended")?
    }

    /// The next of either, however long it takes.
    pub async fn next(&mut self) -> Result<Arrival> {
        let arrival = tokio::select! {
            message = self.slack.recv() => message.map(|message| Ok(Arrival::Slack(message?))),
            call = self.webhooks.recv() => call.map(|call| Ok(Arrival::Webhook(call?))),
        };
        arrival.context("a receiver has ended")?
    }

    /// Fails when something has arrived that nobody has taken.
    pub fn nothing_left(&mut self) -> Result<()> {
        if let Ok(message) = self.slack.try_recv() {
            bail!("one more Slack message arrived than was due: {}", message?.shown.fallback);
        }
        if let Ok(call) = self.webhooks.try_recv() {
            bail!("one more webhook arrived than was due, at {}", call?.target);
        }
        Ok(())
    }

    /// Closes both.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Desk {
    fn targets(&self) -> std::sync::MutexGuard<'_, Targets> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(routes: Router, stop: &CancellationToken, tasks: &TaskTracker) -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("opening a receiver on 127.0.0.1")?;
    let address = listener.local_addr()?;
    let stop = stop.clone();
    tasks.spawn(async move {
        let served = axum::serve(listener, routes).with_graceful_shutdown(async move { stop.cancelled().await }).await;
        if let Err(error) = served {
            tracing::error!(%error, "a receiver of the demo ended");
        }
    });
    Ok(address)
}

async fn post_message(
    State(desk): State<Arc<Desk>>,
    headers: HeaderMap,
    body: Bytes,
) -> ([(HeaderName, &'static str); 1], String) {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (answer, arrival) = match slack::accept(desk.bot_token.expose(), authorization, &body) {
        Ok(message) => {
            let nth = desk.posted.fetch_add(1, Ordering::Relaxed);
            (slack::posted(&message, clock::now().unix_seconds(), nth), Ok(message))
        }
        Err(refusal) => (slack::refused(&refusal), Err(anyhow!("Slack refused a message: {}", refusal.why))),
    };
    // Nobody listens any more once the demo ends.
    let _ = desk.slack.send(arrival);
    ([(header::CONTENT_TYPE, "application/json; charset=utf-8")], answer.to_string())
}

async fn receive(
    State(desk): State<Arc<Desk>>,
    Path(target): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let verified = {
        let targets = desk.targets();
        if targets.broken.contains(&target) {
            return StatusCode::NOT_FOUND;
        }
        let Some(key) = targets.keys.get(&target) else {
            return StatusCode::NOT_FOUND;
        };
        key.verify(&body, &headers)
    };
    let call = verified.map_err(anyhow::Error::from).and_then(|()| read(&target, &headers, &body));
    let answer = if call.is_ok() { StatusCode::NO_CONTENT } else { StatusCode::UNAUTHORIZED };
    let _ = desk.webhooks.send(call.with_context(|| format!("a webhook to {target} does not verify")));
    answer
}

fn read(target: &str, headers: &HeaderMap, body: &[u8]) -> Result<WebhookCall> {
    let header = |name: &str| -> Result<String> {
        Ok(headers.get(name).with_context(|| format!("no {name}"))?.to_str()?.to_owned())
    };
    Ok(WebhookCall {
        target: target.to_owned(),
        verified: true,
        headers: SignedHeaders {
            id: header(HEADER_WEBHOOK_ID)?,
            timestamp: header(HEADER_WEBHOOK_TIMESTAMP)?,
            signature: header(HEADER_WEBHOOK_SIGNATURE)?,
        },
        body: serde_json::from_slice(body).context("its body is not JSON")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const BODY: &[u8] = br#"{"id":"d1"}"#;

    fn desk() -> (Arc<Desk>, UnboundedReceiver<Result<WebhookCall>>) {
        let ((slack, _), (webhooks, calls)) = (unbounded_channel(), unbounded_channel());
        let (bot_token, posted) = (Secret::new("xoxb-1".into()), AtomicU32::new(0));
        let desk = Desk { bot_token, posted, slack, webhooks, targets: Mutex::default() };
        desk.targets().keys.insert("till".into(), Webhook::new(SECRET).unwrap());
        (Arc::new(desk), calls)
    }

    fn signed(signature_over: &[u8]) -> HeaderMap {
        let at = clock::now().unix_seconds();
        let signature = Webhook::new(SECRET).unwrap().sign("d1", at, signature_over).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HEADER_WEBHOOK_ID, "d1".parse().unwrap());
        headers.insert(HEADER_WEBHOOK_TIMESTAMP, at.to_string().parse().unwrap());
        headers.insert(HEADER_WEBHOOK_SIGNATURE, signature.parse().unwrap());
        headers
    }

    async fn call(desk: &Arc<Desk>, target: &str, headers: HeaderMap) -> StatusCode {
        receive(State(Arc::clone(desk)), Path(target.to_owned()), headers, Bytes::from_static(BODY)).await
    }

    #[tokio::test]
    async fn a_signed_webhook_is_passed_on() {
        let (desk, mut calls) = desk();
        assert_eq!(call(&desk, "till", signed(BODY)).await, StatusCode::NO_CONTENT);
        let call = calls.try_recv().unwrap().unwrap();
        assert_eq!((call.target.as_str(), call.headers.id.as_str()), ("till", "d1"));
    }

    #[tokio::test]
    async fn a_webhook_that_does_not_verify_is_passed_on_as_a_failure() {
        let (desk, mut calls) = desk();
        for headers in [signed(b"another body"), HeaderMap::new()] {
            assert_eq!(call(&desk, "till", headers).await, StatusCode::UNAUTHORIZED);
            let error = calls.try_recv().unwrap().unwrap_err();
            assert!(format!("{error:#}").starts_with("a webhook to till does not verify: "), "{error:#}");
        }
    }

    #[tokio::test]
    async fn a_broken_target_is_not_found_until_it_is_mended() {
        let (desk, mut calls) = desk();
        desk.targets().broken.insert("till".into());
        assert_eq!(call(&desk, "till", signed(BODY)).await, StatusCode::NOT_FOUND);
        assert_eq!(call(&desk, "unknown", signed(BODY)).await, StatusCode::NOT_FOUND);
        assert!(calls.try_recv().is_err());
        desk.targets().broken.remove("till");
        assert_eq!(call(&desk, "till", signed(BODY)).await, StatusCode::NO_CONTENT);
    }
}
