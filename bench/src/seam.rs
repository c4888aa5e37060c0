//! Does the seam between the store and its drivers cost too much? The store's API beside the same drivers without it.

use anyhow::Result;
use courant_store::Store;

use crate::load::{Client, Until, run as run_load, run_threads};
use crate::place::{self, Engine, Place, Tenant};
use crate::raw::{self, postgres, sqlite};
use crate::report::Row;
use crate::rounds::{Measure, alternate};
use crate::sample::{self, Owner};
use crate::{Scale, page, queue};

/// Clients at the same time.
pub(crate) const CLIENTS: [usize; 2] = [1, 8];

pub(crate) async fn run(scale: &Scale) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for engine in Engine::BOTH {
        for clients in CLIENTS {
            let title = format!("append, 1 event a unit, {}", named(clients));
            if scale.wants(&format!("{} {title}", engine.name())) {
                rows.push(append(engine, scale, clients, 1, title).await?);
            }
        }
        rows.extend(queue::run(engine, scale).await?);
        rows.extend(page::run(engine, scale).await?);
    }
    Ok(rows)
}

/// `1 client`, `8 clients`.
pub(crate) fn named(clients: usize) -> String {
    format!("{clients} client{}", if clients == 1 { "" } else { "s" })
}

/// Appends so many events a unit of work.
pub(crate) struct Append {
    pub(crate) store: Store,
    pub(crate) tenant: Tenant,
    pub(crate) number: u64,
    pub(crate) events: u64,
}

impl Client for Append {
    async fn call(&mut self) -> Result<u64> {
        let numbers = self.number..self.number + self.events;
        self.number = numbers.end;
        let appended = self.store.event_append(self.tenant.change(), numbers.map(sample::draft).collect()).await?;
        Ok(appended.len() as u64)
    }
}

/// A row about `events` a unit of work by so many clients.
pub(crate) async fn append(engine: Engine, scale: &Scale, clients: usize, events: u64, title: String) -> Result<Row> {
    let until = scale.until;
    let here = Place::new(engine).await?;
    let (store, tenant) = place::open(&here).await?;
    let there = raw::tables(engine).await?;
    let ours = async || -> Result<Measure> {
        let all = (0..clients).map(|_| Append { store: store.clone(), tenant, number: 0, events }).collect();
        Ok(run_load(all, until).await?.0)
    };
    let raw = async || raw_append(engine, &there, clients, events, until, false).await;
    let pairs = alternate(scale.rounds, ours, raw).await?;
    Ok(Row::of(engine.name(), title, "events", &pairs))
}

/// Inserts `rows` events a transaction without us.
pub(crate) async fn raw_append(
    engine: Engine,
    place: &Place,
    clients: usize,
    rows: u64,
    until: Until,
    over_http: bool,
) -> Result<Measure> {
    let owner = Owner::new();
    match engine {
        Engine::Postgres if rows == 1 => {
            let mut all = Vec::new();
            for _ in 0..clients {
                all.push(postgres::InsertOne::new(place.url(), owner, over_http).await?);
            }
            Ok(run_load(all, until).await?.0)
        }
        Engine::Postgres => {
            let mut all = Vec::new();
            for _ in 0..clients {
                all.push(postgres::InsertMany::new(place.url(), owner, rows).await?);
            }
            Ok(run_load(all, until).await?.0)
        }
        Engine::Sqlite => {
            let writer = sqlite::Writer::open(place.url())?;
            let mut all: Vec<_> =
                (0..clients).map(|_| sqlite::Insert::new(writer.clone(), owner, rows, over_http)).collect();
            run_threads(&mut all, until)
        }
    }
}
