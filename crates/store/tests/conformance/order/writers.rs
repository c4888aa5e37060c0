//! Many writers that pause between append and commit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use courant_store::{EventDraft, EventQuery, Options, Start, Store};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::gate::{Gate, Held};
use crate::world::{Chance, Engine, Ground, Raw, Tenant, after, draft, query};

const WRITERS: usize = 32;
const APPENDS: usize = 12;

/// Follows its cursor and keeps the positions it was shown.
struct Reader {
    store: Store,
    tenant: Tenant,
    filter: EventQuery,
    seen: Vec<i64>,
}

impl Reader {
    fn new(store: &Store, tenant: &Tenant, filter: EventQuery) -> Self {
        Self { store: store.clone(), tenant: tenant.clone(), filter, seen: Vec::new() }
    }

    /// Reads to the end of what is readable now.
    async fn step(&mut self) {
        loop {
            let page = self.store.event_page(self.tenant.id, self.filter.clone()).await.unwrap();
            self.seen.extend(page.items.iter().map(|e| e.sequence));
            self.filter.start = after(&page.next_cursor);
            if !page.has_more {
                return;
            }
        }
    }
}

/// What a writer appends: one to three events, of a type that says which filter they pass.
fn drafts(writer: usize, append: usize) -> Vec<EventDraft> {
    let kind = if writer.is_multiple_of(2) { "even.made" } else { "odd.made" };
    vec![draft(kind, format!("{writer}/{append}")); 1 + (writer + append) % 3]
}

/// Starts the writers; each tells of every append that has ended.
fn start(store: &Store, tenant: &Tenant) -> (JoinSet<()>, mpsc::UnboundedReceiver<(usize, bool)>) {
    let (ended, endings) = mpsc::unbounded_channel();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (store, tenant, ended) = (store.clone(), tenant.clone(), ended.clone());
        writers.spawn(async move {
            for append in 0..APPENDS {
                let outcome = store.event_append(tenant.change(), drafts(writer, append)).await;
                ended.send((writer, outcome.is_ok())).unwrap();
            }
        });
    }
    (writers, endings)
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_who_follow_their_cursor_miss_nothing_that_thirty_two_writers_commit() {
    let mut world = Ground::new(Engine::Postgres).world().await;
    // The writers would be ended by the database's time-outs if every reader waited for what they hold back.
    let options = Options { read_wait: Duration::ZERO, ..Options::server(world.url()) };
    world.store = Store::open(&options).await.unwrap();
    let tenant = world.tenant().await;
    let (store, mut gate) = Gate::store(world.url(), WRITERS + 4).await;

    // Somebody else's transaction with an id, in another database of the same server, open all the time.
    let elsewhere = Ground::new(Engine::Postgres).database().await;
    let foreign = Raw::open(elsewhere.url()).await;
    foreign.run("BEGIN").await.unwrap();
    let foreign_id = foreign.number("SELECT pg_current_xact_id()::text::bigint").await;

    let mut whole = Reader::new(&world.store, &tenant, query(7));
    let mut even = Reader::new(&world.store, &tenant, EventQuery { prefixes: vec!["even.".into()], ..query(3) });
    let mut tail = Vec::new();
    let (mut scanned, mut scan_at) = (Vec::new(), 0);
    let (naive, mut naively_seen) = (world.raw().await, Vec::new());
    let over = Arc::new(AtomicBool::new(false));
    let mut racing = JoinSet::new();
    let (mut racer, is_over) = (Reader::new(&world.store, &tenant, query(100)), Arc::clone(&over));
    racing.spawn(async move {
        while !is_over.load(Ordering::Acquire) {
            racer.step().await;
            tokio::task::yield_now().await;
        }
        racer.step().await;
        racer.seen
    });

    let (mut writers, mut endings) = start(&store, &tenant);
    let mut chance = Chance(0x5eed_0000_c0ff_ee01);
    let mut held: Vec<Held> = Vec::new();
    let mut left = [APPENDS; WRITERS];
    let (mut committed, mut rolled_back, mut seen_midway) = (0, 0, 0);
    while left.iter().any(|n| *n > 0) {
        // Every writer that goes on stands between its append and its commit; one of them, by chance, may end.
        while held.len() < left.iter().filter(|n| **n > 0).count() {
            held.push(gate.next().await);
        }
        let one = held.swap_remove(chance.below(held.len()));
        let (commits, events) = (chance.below(6) > 0, one.entities.len());
        if commits {
            one.commit();
        } else {
            one.roll_back();
        }
        let (writer, ok) = endings.recv().await.unwrap();
        assert_eq!(ok, commits);
        left[writer] -= 1;
        if commits {
            committed += events;
        } else {
            rolled_back += events;
        }

        whole.step().await;
        even.step().await;
        let page = world.page(&tenant, EventQuery { start: Start::Tail, ..query(5) }).await;
        tail.extend(page.items.iter().map(|e| e.sequence));
        let batch = world.store.journal_scan(scan_at, 1000).await.unwrap();
        scanned.extend(batch.events.iter().map(|e| e.sequence));
        scan_at = batch.next;
        let last = naively_seen.last().copied().unwrap_or(0);
        naively_seen.extend(naive.numbers(&format!("SELECT seq FROM event WHERE seq > {last} ORDER BY seq")).await);
        if !held.is_empty() {
            seen_midway = whole.seen.len();
        }
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    over.store(true, Ordering::Release);
    let raced = racing.join_next().await.unwrap().unwrap();

    // The foreign transaction is still the same one: nobody has waited for it.
    assert_eq!(foreign.number("SELECT pg_current_xact_id_if_assigned()::text::bigint").await, foreign_id);
    let truth = naive.numbers("SELECT seq FROM event ORDER BY seq").await;
    assert_eq!(truth.len(), committed + 4, "the tenant's own beginning and what was committed");
    assert_eq!(whole.seen, truth);
    assert_eq!(raced, truth);
    assert_eq!(scanned, truth);
    let of_even = naive.numbers("SELECT seq FROM event WHERE type = 'even.made' ORDER BY seq").await;
    assert_eq!(even.seen, of_even);
    assert!(tail.iter().all(|seq| truth.contains(seq)));
    assert!(rolled_back > 50 && seen_midway > WRITERS, "{rolled_back} rolled back, {seen_midway} seen on the way");

    let naively_seen: BTreeSet<_> = naively_seen.into_iter().collect();
    let missed = truth.iter().filter(|seq| !naively_seen.contains(seq)).count();
    assert!(
        missed > 0,
        "a reader who orders by position alone would have missed nothing here: the test proves nothing"
    );
    println!("{} events; a reader who orders by position alone missed {missed}", truth.len());
}
