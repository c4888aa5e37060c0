//! A full outbox on its way to one healthy target, beside a loop that sends the same requests and remembers nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use courant_api::IntegrationId;
use courant_api::notify::{IntegrationCreate, IntegrationPatch};
use courant_server::{clock, ids};
use serde_json::{Map, json};
use standardwebhooks::Webhook;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Scale;
use crate::cpu;
use crate::ours::Ours;
use crate::place::Engine;
use crate::report::Row;
use crate::rounds::{Cost, Measure, alternate};
use crate::sample;
use crate::sink::Sink;

/// Requests under way at once, on both sides.
const CONCURRENCY: usize = 64;
/// How often it is asked whether the outbox is as it should be.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) async fn run(scale: &Scale) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for engine in Engine::BOTH {
        let title = format!("{} queued deliveries, one target", scale.deliveries);
        if !scale.wants(&format!("{} {title}", engine.name())) {
            continue;
        }
        let sink = Sink::start()?;
        let server = Ours::start(engine).await?;
        let target = Target::new(&server, &sink).await?;
        let ours = async || target.drain(&server, &sink, scale.deliveries).await;
        // The first round of ours has left a request to copy.
        let raw = async || plain_loop(&sink, &target.secret, scale.deliveries).await;
        let pairs = alternate(scale.rounds, ours, raw).await?;
        rows.push(Row::of(engine.name(), title, "deliveries", &pairs));
        server.stop().await;
    }
    Ok(rows)
}

/// An integration of ours that posts to the sink.
struct Target {
    id: IntegrationId,
    secret: String,
}

impl Target {
    async fn new(server: &Ours, sink: &Sink) -> Result<Self> {
        let mut config = Map::new();
        config.insert("url".into(), json!(format!("http://{}/", sink.address)));
        let body = IntegrationCreate {
            name: "sink".into(),
            provider: "webhook".into(),
            paused: Some(true),
            journal_types: vec!["build.".into()],
            provider_config: config,
            ..IntegrationCreate::default()
        };
        let made = server.client.create_integration(server.tenant, &body).await?;
        Ok(Self { id: made.id, secret: made.generated_secret.context("no signing secret")? })
    }

    async fn pause(&self, server: &Ours, paused: bool) -> Result<()> {
        let patch = IntegrationPatch { paused: Some(paused), ..IntegrationPatch::default() };
        server.client.update_integration(server.tenant, self.id, None, &patch).await?;
        Ok(())
    }

    /// Queues deliveries while the integration is paused; then measures from its resumption until none is left.
    async fn drain(&self, server: &Ours, sink: &Sink, deliveries: usize) -> Result<Measure> {
        self.pause(server, true).await?;
        let numbers: Vec<u64> = (0..deliveries as u64).collect();
        for batch in numbers.chunks(500) {
            let events: Vec<_> = batch.iter().map(|number| sample::event(*number)).collect();
            server.client.append(&events, false).await?;
        }
        until_backlog_is(server, deliveries).await?;
        sink.expect(deliveries as u64);
        let (start, cpu_before) = (Instant::now(), cpu::spent());
        self.pause(server, false).await?;
        sink.reached().await;
        until_backlog_is(server, 0).await?;
        let (time, cpu) = (start.elapsed(), cpu::spent().saturating_sub(cpu_before));
        ensure!(sink.requests() == deliveries as u64, "{} requests for {deliveries} deliveries", sink.requests());
        let (headers, body) = sink.first()?;
        Webhook::new(&self.secret)?.verify(&body, &headers).context("the signature of the first delivery")?;
        note_connections("ours", sink);
        let units = deliveries as u64;
        Ok(Measure::new(units, time, Vec::new(), Cost { cpu, units }))
    }
}

async fn until_backlog_is(server: &Ours, deliveries: usize) -> Result<()> {
    let wanted = i64::try_from(deliveries)?;
    while server.running.app.store.delivery_backlog().await?.iter().map(|(_, count)| count).sum::<i64>() != wanted {
        sleep(LOOK).await;
    }
    Ok(())
}

/// The same bodies, signed, from a usual HTTP client.
async fn plain_loop(sink: &Sink, secret: &str, deliveries: usize) -> Result<Measure> {
    let (_, body) = sink.first()?;
    #[expect(clippy::disallowed_methods, reason = "the baseline is a plain client, not ours")]
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
    let webhook = Arc::new(Webhook::new(secret)?);
    let left = Arc::new(AtomicUsize::new(deliveries));
    let url = format!("http://{}/", sink.address);
    sink.expect(deliveries as u64);
    let (start, cpu_before) = (Instant::now(), cpu::spent());
    let mut workers = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (client, webhook, left) = (client.clone(), Arc::clone(&webhook), Arc::clone(&left));
        let (url, body) = (url.clone(), body.clone());
        workers.spawn(async move {
            let mut calls = Vec::new();
            while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                let began = Instant::now();
                post(&client, &webhook, &url, body.clone()).await?;
                calls.push(began.elapsed());
            }
            anyhow::Ok(calls)
        });
    }
    let mut calls = Vec::new();
    while let Some(ended) = workers.join_next().await {
        calls.extend(ended??);
    }
    let (time, cpu) = (start.elapsed(), cpu::spent().saturating_sub(cpu_before));
    ensure!(sink.requests() == deliveries as u64, "{} requests for {deliveries} deliveries", sink.requests());
    sink.reached().await;
    note_connections("raw", sink);
    let units = deliveries as u64;
    Ok(Measure::new(units, time, calls, Cost { cpu, units }))
}

async fn post(client: &reqwest::Client, webhook: &Webhook, url: &str, body: Bytes) -> Result<()> {
    let (id, seconds) = (ids::new_id().to_string(), clock::now().micros() / 1_000_000);
    let signature = webhook.sign(&id, seconds, &body)?;
    let request = client
        .post(url)
        .header("content-type", "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds.to_string())
        .header("webhook-signature", signature)
        .body(body);
    let answer = request.send().await?.error_for_status()?;
    answer.bytes().await?;
    Ok(())
}

/// How many connections a side needed shows whether it keeps them.
fn note_connections(side: &'static str, sink: &Sink) {
    tracing::info!(side, connections = sink.connections(), "connections to the sink");
}
