//! Faults at random, for a minute, under load: nothing is lost, repeated or reordered.
//!
//! The kinds of fault, their order and their places come from a seed, which is printed; `COURANT_FAULT_SEED` gives one.
//! Broken on purpose: with a horizon that does not look at the locks, readers miss events here.
//!
//! How long it lasts is part of the promise, so here alone a clock decides when a test is over.

mod load;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use courant_testkit::{Backends, Proxy, Which, eventually};

use crate::support::{Engine, Org, Place, Process};
use load::{Chance, Load, Targets};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// A server is killed and started again.
    Server,
    /// One of the servers' backends in the database is ended.
    Backend,
    /// A backend between append and commit is ended.
    Writer,
    /// A backend that listens is ended.
    Listener,
    /// Every connection of one server to the database is cut.
    Connections,
}

/// Servers on one database that can be harmed.
struct Cluster {
    place: Place,
    org: Org,
    targets: Targets,
    processes: Vec<Option<Process>>,
    /// On PostgreSQL, each server's way to the database, and the database's side of it.
    proxies: Vec<Proxy>,
    backends: Option<Backends>,
}

impl Cluster {
    async fn start(engine: Engine) -> Self {
        let place = Place::new(engine).await;
        let (mut proxies, mut processes) = (Vec::new(), Vec::new());
        if engine == Engine::Postgres {
            proxies = vec![Proxy::postgres(place.database.url()).await, Proxy::postgres(place.database.url()).await];
        }
        for n in 0..proxies.len().max(1) {
            processes.push(Some(serve(&place, proxies.get(n)).await));
        }
        let backends = match engine {
            Engine::Postgres => Some(Backends::connect(place.database.url()).await),
            Engine::Sqlite => None,
        };
        let org = place.org(processes[0].as_ref().unwrap()).await;
        load::register(&org.at(processes[0].as_ref().unwrap())).await;
        if let Some(backends) = &backends {
            backends.slow_commits(5).await;
        }
        let targets = Targets::new(&org, processes.iter().flatten().map(|process| process.address));
        Self { place, org, targets, processes, proxies, backends }
    }

    fn kinds(&self) -> &'static [Fault] {
        if self.backends.is_some() {
            &[Fault::Server, Fault::Backend, Fault::Writer, Fault::Listener, Fault::Connections]
        } else {
            &[Fault::Server]
        }
    }

    async fn harm(&mut self, fault: Fault, chance: &mut Chance) {
        let end = async |which: Which| {
            let backends = self.backends.as_ref().unwrap();
            eventually(&format!("{which:?}"), async || (backends.end(which).await > 0).then_some(())).await;
        };
        match fault {
            Fault::Server => {
                let n = chance.below(self.processes.len());
                self.processes[n].take().unwrap().kill();
                let process = serve(&self.place, self.proxies.get(n)).await;
                self.targets.set(n, &self.org, process.address);
                self.processes[n] = Some(process);
            }
            Fault::Backend => end(Which::Any(u32::try_from(chance.below(1000)).unwrap())).await,
            Fault::Writer => end(Which::Writers).await,
            Fault::Listener => end(Which::Listeners).await,
            Fault::Connections => {
                let proxy = &self.proxies[chance.below(self.proxies.len())];
                eventually("connections to cut", async || (proxy.cut() > 0).then_some(())).await;
            }
        }
    }
}

async fn serve(place: &Place, proxy: Option<&Proxy>) -> Process {
    let changes: Vec<_> = proxy.iter().map(|proxy| ("COURANT_DATABASE_URL", proxy.url())).collect();
    place.serve_with(&changes).await.unwrap_or_else(|ended| panic!("the server did not start: {ended:?}"))
}

#[expect(clippy::print_stdout, reason = "whoever runs it wants the seed and what was injected")]
async fn nothing_is_lost_repeated_or_reordered(engine: Engine, duration: Duration) {
    let seed = load::seed();
    println!("COURANT_FAULT_SEED={seed}");
    let mut chance = Chance::new(seed, 0);
    let mut cluster = Cluster::start(engine).await;
    let mut load = Load::start(&cluster.targets, seed);
    let mut injected = BTreeMap::<Fault, usize>::new();
    let begun = Instant::now();
    let mut bag = Vec::new();
    while begun.elapsed() < duration {
        // Every kind comes once before any comes again.
        if bag.is_empty() {
            bag = cluster.kinds().to_vec();
        }
        let fault = bag.swap_remove(chance.below(bag.len()));
        cluster.harm(fault, &mut chance).await;
        *injected.entry(fault).or_default() += 1;
        // However it was harmed, it goes on.
        load.goes_on(chance.below(120) as u64).await;
    }
    let (events, readers) = load.finish_and_check().await;
    println!("{injected:?} in {:?}; {events} events, {readers} readers", begun.elapsed());
    for kind in cluster.kinds() {
        assert!(injected.get(kind).is_some_and(|n| *n >= 1), "no fault of kind {kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minute_of_random_faults_costs_no_reader_of_two_servers_an_event() {
    nothing_is_lost_repeated_or_reordered(Engine::Postgres, Duration::from_mins(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_of_a_server_on_sqlite_cost_no_reader_an_event() {
    nothing_is_lost_repeated_or_reordered(Engine::Sqlite, Duration::from_secs(15)).await;
}
