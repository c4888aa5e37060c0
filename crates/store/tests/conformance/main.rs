//! One suite, both databases: every promise of the store that does not name a database holds on each of them.
//!
//! A case is a function that gets an empty database of its own. Times are passed in and concurrency is held by barriers;
//! nothing here sleeps. What only PostgreSQL can show, the order of concurrent appends, is in `order/`.

#![expect(clippy::unwrap_used, reason = "a test says what it met by panicking")]

mod announce;
mod append;
mod approvals;
mod bindings;
mod catalogue;
mod deployments;
mod digest;
mod faults;
mod filters;
mod gate;
mod history;
mod idempotency;
mod immutable;
mod integrations;
mod keys;
mod leases;
mod listen;
mod model;
mod order;
mod outbox;
mod outbox_ends;
mod pages;
mod principals;
mod ranges;
mod resources;
mod retention;
mod roles;
mod seam;
mod servers;
mod simulation;
mod skills;
mod starts;
mod tail;
mod tasks;
mod tenancy;
mod workspaces;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use courant_store::{Options, Store};
use courant_testkit::PATIENCE;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use world::{Engine, Ground, World};

/// Cases that run at the same time; each holds a pool of connections.
const AT_ONCE: usize = 4;

/// A named case.
type Case = (&'static str, fn(World) -> BoxFuture<'static, ()>);

/// Lists a file's cases under their names.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        pub const CASES: &[crate::Case] = &[$((
            concat!(module_path!(), "::", stringify!($case)),
            |world| Box::pin($case(world)),
        )),+];
    };
}
pub(crate) use cases;

const NOUNS: &[&[Case]] = &[
    announce::CASES,
    append::CASES,
    approvals::CASES,
    bindings::CASES,
    catalogue::CASES,
    deployments::CASES,
    digest::CASES,
    faults::CASES,
    filters::CASES,
    history::CASES,
    idempotency::CASES,
    immutable::CASES,
    integrations::CASES,
    keys::CASES,
    listen::CASES,
    leases::CASES,
    model::CASES,
    outbox::CASES,
    outbox_ends::CASES,
    pages::CASES,
    principals::CASES,
    ranges::CASES,
    resources::CASES,
    retention::CASES,
    roles::CASES,
    seam::CASES,
    servers::CASES,
    skills::CASES,
    starts::CASES,
    tail::CASES,
    tasks::CASES,
    tenancy::CASES,
    workspaces::CASES,
];

#[tokio::test(flavor = "multi_thread")]
async fn every_case_holds_on_postgres() {
    every_case_holds(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_holds_on_sqlite() {
    every_case_holds(Engine::Sqlite).await;
}

async fn every_case_holds(engine: Engine) {
    let ground = Ground::new(engine);
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    let mut names = BTreeMap::new();
    for &(name, case) in NOUNS.iter().copied().flatten() {
        let (permits, ground) = (Arc::clone(&permits), ground.clone());
        let task = running.spawn(async move {
            let _permit = permits.acquire_owned().await.unwrap();
            let case = async { case(ground.world().await).await };
            tokio::time::timeout(PATIENCE, case).await.expect("it hangs");
        });
        names.insert(task.id(), name);
    }
    let mut failures = Vec::new();
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            let name = names[&error.id()];
            failures.push(format!(
                "{name}: {}",
                error.try_into_panic().map_or("cancelled".into(), |panic| words(panic.as_ref()))
            ));
        }
    }
    failures.sort();
    assert!(failures.is_empty(), "{} of {} cases failed:\n{}", failures.len(), names.len(), failures.join("\n"));

    let world = ground.world().await;
    world.store.prepare_statements().await.unwrap();
    let unused: Vec<_> =
        world.store.statements().into_iter().filter(|(_, runs)| *runs == 0).map(|(name, _)| name).collect();
    assert!(unused.is_empty(), "no case executes {unused:?}");
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
}

/// A twin is a text that could not be shared; each one is a place where the databases may drift apart.
#[test]
fn the_twins_are_three_and_never_more_than_twelve() {
    let files = |engine: &str| {
        let folder = format!("{}/src/twin/{engine}", env!("CARGO_MANIFEST_DIR"));
        let names = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != "mod.rs").collect();
        names.sort();
        names
    };
    let twins = files("postgres");
    println!("{} twins: {}", twins.len(), twins.join(", "));
    assert_eq!(twins, files("sqlite"), "each twin has its other half");
    assert_eq!(twins, ["append.rs", "claim.rs", "horizon.rs"]);
    assert!(twins.len() <= 12);
}

/// A store on the same database as `world`'s, as another server would have it.
async fn second_server(world: &World) -> Store {
    // A SQLite file has one server; what runs beside it is a command.
    let options = if world.is_postgres() { Options::server(world.url()) } else { Options::command(world.url()) };
    Store::open(&options).await.unwrap()
}
