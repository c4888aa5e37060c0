//! `POST /events` as a producer meets it, beside the same rows inserted without HTTP, checks or order.

use anyhow::Result;
use bytes::Bytes;
use courant_api::event::EventsAppend;
use http::StatusCode;

use crate::Scale;
use crate::conn::Conn;
use crate::load::{Client, run as run_load};
use crate::ours::Ours;
use crate::place::Engine;
use crate::raw;
use crate::report::Row;
use crate::rounds::{Measure, alternate};
use crate::sample;
use crate::seam::raw_append;

/// Connections, and events a request.
const CELLS: [(usize, u64); 4] = [(1, 1), (8, 1), (32, 1), (4, 500)];

struct Producer {
    conn: Conn,
    number: u64,
    events: u64,
}

impl Client for Producer {
    async fn call(&mut self) -> Result<u64> {
        let numbers = self.number..self.number + self.events;
        self.number = numbers.end;
        let body = serde_json::to_vec(&EventsAppend { events: numbers.map(sample::event).collect() })?;
        self.conn.post("/api/v1/events", Bytes::from(body), StatusCode::CREATED).await?;
        Ok(self.events)
    }
}

pub(crate) async fn run(scale: &Scale) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for engine in Engine::BOTH {
        rows.extend(on(engine, scale).await?);
    }
    Ok(rows)
}

/// The rows of one database.
pub(crate) async fn on(engine: Engine, scale: &Scale) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (connections, events) in CELLS {
        let plural = if connections == 1 { "" } else { "s" };
        let title = format!("POST /events, {events} a request, {connections} connection{plural}");
        if scale.wants(&format!("{} {title}", engine.name())) {
            rows.push(cell(engine, scale, connections, events, title).await?);
        }
    }
    Ok(rows)
}

async fn cell(engine: Engine, scale: &Scale, connections: usize, events: u64, title: String) -> Result<Row> {
    let until = scale.until;
    let server = Ours::start(engine).await?;
    let there = raw::tables(engine).await?;
    let ours = async || -> Result<Measure> {
        let mut all = Vec::new();
        for _ in 0..connections {
            all.push(Producer { conn: Conn::open(server.running.address, &server.key).await?, number: 0, events });
        }
        Ok(run_load(all, until).await?.0)
    };
    let raw = async || raw_append(engine, &there, connections, events, until, true).await;
    let pairs = alternate(scale.rounds, ours, raw).await?;
    server.stop().await;
    Ok(Row::of(engine.name(), title, "events", &pairs))
}
