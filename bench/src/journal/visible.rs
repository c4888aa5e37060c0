//! How long a committed event stays unreadable, for a reader that asks for a page in a loop, while 32 writers put half of
//! the load on the database that it bears; beside what a commit takes at that rate.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use courant_api::{Cursor, EventId};
use courant_store::{EventQuery, Start, Store};
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::Scale;
use crate::load::{Client, Until, run as run_load};
use crate::place::{self, Engine, Place, Tenant};
use crate::raw::{self, postgres};
use crate::report::Row;
use crate::rounds::{Measure, alternate};
use crate::sample::{self, Owner};
use crate::seam::{Append, raw_append};

const WRITERS: u32 = 32;
/// The reader has this long for what is left when the writers have ended.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) async fn run(scale: &Scale) -> Result<Vec<Row>> {
    let title = format!("commit to readable beside commit, {WRITERS} writers at half load");
    if !scale.wants(&format!("{} {title}", Engine::Postgres.name())) {
        return Ok(Vec::new());
    }
    let (here, there) = (Place::new(Engine::Postgres).await?, raw::tables(Engine::Postgres).await?);
    let (store, tenant) = place::open(&here).await?;
    let every = interval(&store, tenant, &there, scale.until).await?;
    let ours = async || readable(&store, tenant, every, scale.until).await;
    let raw = async || committed(&there, every, scale.until).await;
    let pairs = alternate(scale.rounds, ours, raw).await?;
    Ok(vec![Row::of_p50(Engine::Postgres.name(), title, "events", &pairs)])
}

/// Between two appends of a writer, for half of the load that both sides bear.
async fn interval(store: &Store, tenant: Tenant, there: &Place, until: Until) -> Result<Duration> {
    let writer = |_| Append { store: store.clone(), tenant, number: 0, events: 1 };
    let ours = run_load((0..WRITERS).map(writer).collect(), until).await?.0;
    let raw = raw_append(Engine::Postgres, there, WRITERS as usize, 1, until, false).await?;
    Ok(Duration::from_secs_f64(f64::from(WRITERS) * 2.0 / ours.rate.min(raw.rate)))
}

/// A client that calls at set times, or as soon as it can when it is late.
struct Paced<C> {
    client: C,
    due: Instant,
    every: Duration,
    /// How long each call took.
    took: Vec<Duration>,
}

impl<C> Paced<C> {
    /// All of them, each with its own share of the interval.
    fn all(clients: Vec<C>, every: Duration) -> Vec<Self> {
        let now = Instant::now();
        let paced = |(n, client)| Self { client, due: now + every * n / WRITERS, every, took: Vec::new() };
        (0..).zip(clients).map(paced).collect()
    }
}

impl<C: Client> Client for Paced<C> {
    async fn call(&mut self) -> Result<u64> {
        sleep_until(self.due.into()).await;
        self.due = Instant::now().max(self.due + self.every);
        let began = Instant::now();
        let units = self.client.call().await?;
        self.took.push(began.elapsed());
        Ok(units)
    }
}

/// Without those of the warm-up.
fn counted<T>(all: Vec<T>, until: Until) -> impl Iterator<Item = T> {
    let warm_up = if matches!(until, Until::Passed(_)) { all.len() / 6 } else { 0 };
    all.into_iter().skip(warm_up)
}

async fn committed(there: &Place, every: Duration, until: Until) -> Result<Measure> {
    let (owner, mut all) = (Owner::new(), Vec::new());
    for _ in 0..WRITERS {
        all.push(postgres::InsertOne::new(there.url(), owner, false).await?);
    }
    let (measure, clients) = run_load(Paced::all(all, every), until).await?;
    Ok(measure.with_times(clients.into_iter().flat_map(|c| counted(c.took, until)).collect()))
}

/// Appends, and notes when it was told of the commit.
struct Writer {
    store: Store,
    tenant: Tenant,
    committed: Vec<(EventId, Instant)>,
}

impl Client for Writer {
    async fn call(&mut self) -> Result<u64> {
        let draft = sample::draft(self.committed.len() as u64);
        let appended = self.store.event_append(self.tenant.change(), vec![draft]).await?;
        let now = Instant::now();
        self.committed.extend(appended.iter().map(|event| (event.id, now)));
        Ok(1)
    }
}

async fn readable(store: &Store, tenant: Tenant, every: Duration, until: Until) -> Result<Measure> {
    let all = (0..WRITERS).map(|_| Writer { store: store.clone(), tenant, committed: Vec::new() }).collect();
    let expected = Arc::new(AtomicUsize::new(usize::MAX));
    let start = Cursor::decode(&store.journal_cursor(tenant.id, store.journal_horizon().await?))?;
    let mut reader = JoinSet::new();
    reader.spawn(read(store.clone(), tenant, start, Arc::clone(&expected)));
    let (measure, clients) = run_load(Paced::all(all, every), until).await?;
    let count = clients.iter().map(|c| c.client.committed.len()).sum();
    expected.store(count, Ordering::SeqCst);
    let joined = tokio::time::timeout(PATIENCE, reader.join_next()).await;
    let seen = joined.context("events that were committed are not readable")?.context("no reader")???;
    let mut times = Vec::with_capacity(count);
    for (id, committed) in clients.into_iter().flat_map(|c| counted(c.client.committed, until)) {
        let seen = seen.get(&id).context("an event was committed and is not readable")?;
        // The reader may have it before the writer hears of its own commit.
        times.push(seen.saturating_duration_since(committed));
    }
    Ok(measure.with_times(times))
}

/// Reads pages until so many events were seen; when each was.
async fn read(
    store: Store,
    tenant: Tenant,
    from: Cursor,
    expected: Arc<AtomicUsize>,
) -> Result<HashMap<EventId, Instant>> {
    let (mut seen, mut after) = (HashMap::new(), from);
    while seen.len() < expected.load(Ordering::SeqCst) {
        let query = EventQuery {
            prefixes: Vec::new(),
            workspace_id: None,
            entity_type: None,
            entity_id: None,
            start: Start::After(after),
            limit: 1000,
        };
        let page = store.event_page(tenant.id, query).await?;
        let now = Instant::now();
        seen.extend(page.items.iter().map(|event| (event.id, now)));
        after = Cursor::decode(&page.next_cursor)?;
    }
    Ok(seen)
}
