//! Catching up: a tenant's journal from its start, page by page, each page written out as JSON.

use anyhow::{Result, ensure};
use courant_api::Cursor;
use courant_store::{EventQuery, Start, Store};

use crate::Scale;
use crate::load::{Client, Until, run as run_load, run_threads};
use crate::place::{self, Engine, Place, Tenant};
use crate::raw::{postgres, sqlite};
use crate::report::Row;
use crate::rounds::{Measure, alternate};
use crate::sample;
use crate::seam::{CLIENTS, named};

const LIMITS: [i64; 2] = [1000, 50];

/// Reads a tenant's journal over and over through the store.
pub(crate) struct Pages {
    store: Store,
    tenant: Tenant,
    start: Start,
    limit: i64,
}

impl Pages {
    pub(crate) fn new(store: Store, tenant: Tenant, limit: i64) -> Self {
        Self { store, tenant, start: Start::First, limit }
    }
}

impl Client for Pages {
    async fn call(&mut self) -> Result<u64> {
        let query = EventQuery {
            prefixes: Vec::new(),
            workspace_id: None,
            entity_type: None,
            entity_id: None,
            start: self.start,
            limit: self.limit,
        };
        let page = self.store.event_page(self.tenant.id, query).await?;
        let json = serde_json::to_vec(&page)?;
        ensure!(!page.items.is_empty() && json.len() > page.items.len(), "an empty page");
        self.start = if page.has_more { Start::After(Cursor::decode(&page.next_cursor)?) } else { Start::First };
        Ok(page.items.len() as u64)
    }
}

pub(crate) async fn run(engine: Engine, scale: &Scale) -> Result<Vec<Row>> {
    let cells = LIMITS.into_iter().flat_map(|limit| CLIENTS.map(|clients| (limit, clients)));
    let titled =
        cells.map(|(limit, clients)| (limit, clients, format!("pages of {limit} to JSON, {}", named(clients))));
    let wanted: Vec<_> = titled.filter(|(.., title)| scale.wants(&format!("{} {title}", engine.name()))).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let place = Place::new(engine).await?;
    let (store, tenant) = place::open(&place).await?;
    fill(&store, tenant, scale.journal).await?;
    if engine == Engine::Postgres {
        let connection = postgres::Connection::open(place.url()).await?;
        connection.batch("VACUUM ANALYZE event").await?;
        connection.batch("CHECKPOINT").await?;
    }
    let until = scale.until;
    let mut rows = Vec::new();
    for (limit, clients, title) in wanted {
        let ours = async || -> Result<Measure> {
            let new = |_| Pages::new(store.clone(), tenant, limit);
            Ok(run_load((0..clients).map(new).collect(), until).await?.0)
        };
        let raw = async || raw_pages(engine, &place, tenant, limit, clients, until).await;
        let pairs = alternate(scale.rounds, ours, raw).await?;
        rows.push(Row::of(engine.name(), title, "events", &pairs));
    }
    Ok(rows)
}

/// Appends so many events.
pub(crate) async fn fill(store: &Store, tenant: Tenant, events: usize) -> Result<()> {
    let numbers: Vec<u64> = (0..events as u64).collect();
    for batch in numbers.chunks(500) {
        let drafts = batch.iter().map(|number| sample::draft(*number)).collect();
        store.event_append(tenant.change(), drafts).await?;
    }
    Ok(())
}

/// The same rows of the same table.
pub(crate) async fn raw_pages(
    engine: Engine,
    place: &Place,
    tenant: Tenant,
    limit: i64,
    clients: usize,
    until: Until,
) -> Result<Measure> {
    let tenant = tenant.id.uuid();
    match engine {
        Engine::Postgres => {
            let mut all = Vec::new();
            for _ in 0..clients {
                all.push(postgres::Pages::new(place.url(), tenant, limit).await?);
            }
            Ok(run_load(all, until).await?.0)
        }
        Engine::Sqlite => {
            let all: Result<Vec<_>> = (0..clients).map(|_| sqlite::Pages::new(place.url(), tenant, limit)).collect();
            run_threads(&mut all?, until)
        }
    }
}
