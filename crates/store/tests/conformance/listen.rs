//! Servers that wake each other: by notification where there is one, and never to the loss of an event where there is not.
//!
//! Broken on purpose: without the pause between two notifications the burst fails; without the wake and the
//! notification that begin a connection, those that lose one; without a bound on answers, the half-open one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use courant_store::{Barrier, Options, Pace, Store, Wakeups};
use courant_testkit::{Fault, PATIENCE, Proxy};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_postgres::AsyncMessage;
use uuid::Uuid;

use crate::cases;
use crate::world::{Engine, Ground, Raw, Tenant, World, draft, entities};

cases![a_commit_of_one_server_wakes_those_that_listen];

/// Probes often, and gives up on an answer soon.
fn eager() -> Pace {
    let soon = Duration::from_millis(50);
    Pace { answer: Duration::from_secs(1), probe: soon, probe_again: soon, reconnect: soon, ..Pace::default() }
}

/// Answers may take as long as the test.
fn patient() -> Pace {
    Pace { answer: PATIENCE, ..Pace::default() }
}

/// A server that listens as long as this lives.
struct Server {
    store: Store,
    id: Uuid,
    _listening: JoinSet<()>,
}

impl Server {
    async fn start(url: &str, pace: Pace) -> Self {
        Self::of(Store::open(&Options::server(url)).await.unwrap(), pace)
    }

    fn of(store: Store, pace: Pace) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let id = Uuid::from_u128(COUNT.fetch_add(1, Ordering::Relaxed).into());
        let mut listening = JoinSet::new();
        let listener = store.clone();
        listening.spawn(async move { listener.journal_listen(id, pace).await });
        Self { store, id, _listening: listening }
    }

    /// One that hears of others.
    async fn listening(url: &str, pace: Pace) -> Self {
        let server = Self::start(url, pace).await;
        server.stands(|wakeups| *wakeups == Wakeups::Listening).await;
        server
    }

    async fn stands(&self, how: impl Fn(&Wakeups) -> bool) {
        let mut wakeups = self.store.wakeups();
        let stands = timeout(PATIENCE, wakeups.wait_for(|wakeups| how(wakeups))).await.map(|found| found.is_ok());
        assert_eq!(stands, Ok(true), "it stands at {:?}", self.store.wakeups().borrow());
    }
}

/// Waits until the channel has changed.
async fn woken(appended: &mut watch::Receiver<u64>) {
    timeout(PATIENCE, appended.changed()).await.expect("nobody was woken").unwrap();
}

async fn append(store: &Store, tenant: &Tenant, what: &str) {
    store.event_append(tenant.change(), vec![draft("task.made", what)]).await.unwrap();
}

fn does_not_hear(wakeups: &Wakeups) -> bool {
    matches!(wakeups, Wakeups::Polling { why } if why.contains("LISTEN does not work"))
}

/// There is nothing but the channel here: no reader polls.
async fn a_commit_of_one_server_wakes_those_that_listen(world: World) {
    let tenant = world.tenant().await;
    if !world.is_postgres() {
        // One server: what runs beside it is not told, and says so.
        let beside = Server::of(crate::second_server(&world).await, patient());
        let appended = beside.store.appended();
        append(&world.store, &tenant, "first").await;
        assert!(!appended.has_changed().unwrap());
        assert!(matches!(&*beside.store.wakeups().borrow(), Wakeups::Polling { .. }));
        return;
    }
    let servers = [Server::listening(world.url(), patient()).await, Server::listening(world.url(), patient()).await];
    let from = world.end(&tenant).await;
    for (writer, reader) in [(0, 1), (1, 0)] {
        // Their starts have been told of before.
        let mut appended = servers[reader].store.appended();
        append(&servers[writer].store, &tenant, &format!("by {writer}")).await;
        woken(&mut appended).await;
    }
    assert_eq!(entities(&world.since(&tenant, &from).await), ["by 0", "by 1"]);
}

/// Payloads on the channel, as an onlooker sees them.
async fn onlooker(url: &str) -> (tokio_postgres::Client, mpsc::UnboundedReceiver<String>, JoinSet<()>) {
    let (client, mut connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let (seen, payloads) = mpsc::unbounded_channel();
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut messages = futures_util::stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = futures_util::StreamExt::next(&mut messages).await {
            if let AsyncMessage::Notification(notification) = message {
                let _nobody = seen.send(notification.payload().to_owned());
            }
        }
    });
    client.batch_execute("LISTEN courant_journal").await.unwrap();
    (client, payloads, task)
}

const COMMITS: usize = 1000;
const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_commits_is_told_of_a_few_times_and_its_last_one_always() {
    let world = Ground::new(Engine::Postgres).world().await;
    let tenant = world.tenant().await;
    // With a barrier every append is a commit of its own.
    let barrier = Barrier::new(|_| Box::pin(async { true }));
    let options = Options { barrier: Some(barrier), ..Options::server(world.url()) };
    let server = Server::of(Store::open(&options).await.unwrap(), patient());
    server.stands(|wakeups| *wakeups == Wakeups::Listening).await;
    let (_client, mut payloads, _task) = onlooker(world.url()).await;
    let begun = Instant::now();
    let mut writers = JoinSet::new();
    for writer in 0..AT_ONCE {
        let (store, tenant) = (server.store.clone(), tenant.clone());
        writers.spawn(async move {
            for n in 0..COMMITS / AT_ONCE {
                append(&store, &tenant, &format!("{writer}/{n}")).await;
            }
        });
    }
    writers.join_all().await;
    let head = world.raw().await.number("SELECT max(seq) FROM event").await;
    let last = format!("{} {head}", server.id);
    let mut told = 0;
    loop {
        let payload = timeout(PATIENCE, payloads.recv()).await.expect("the last commit is told of").unwrap();
        told += usize::from(payload.starts_with(&server.id.to_string()));
        if payload == last {
            break;
        }
    }
    // However long the burst took: one at its beginning, and one for each time that may lie between two.
    let most = begun.elapsed().as_millis() / Pace::default().apart.as_millis() + 2;
    assert!(told as u128 <= most, "{told} for {most}");
    assert!(told < COMMITS / 2, "{told} notifications of {COMMITS} commits");
    println!("{told} notifications of {COMMITS} commits");
}

/// Ends the backend that listens; how many there were.
async fn kill_listener(raw: &Raw) -> i64 {
    raw.number(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'courant listener'",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_lost_its_connection_comes_back_and_looks_at_what_it_missed() {
    let world = Ground::new(Engine::Postgres).world().await;
    let tenant = world.tenant().await;
    let proxy = Proxy::postgres(world.url()).await;
    let pace = Pace { reconnect: Duration::from_millis(50), reconnect_max: Duration::from_millis(100), ..patient() };
    let server = Server::listening(proxy.url(), pace).await;
    let raw = world.raw().await;
    for cut in [true, false] {
        let from = world.end(&tenant).await;
        proxy.set(Fault::Refuse);
        if cut {
            proxy.cut();
        } else {
            assert!(kill_listener(&raw).await >= 1);
        }
        server.stands(|wakeups| *wakeups != Wakeups::Listening).await;
        let mut appended = server.store.appended();
        append(&world.store, &tenant, "missed").await;
        assert!(!appended.has_changed().unwrap(), "nothing can have told of it");
        proxy.set(Fault::None);
        woken(&mut appended).await;
        assert_eq!(entities(&world.since(&tenant, &from).await), ["missed"]);
        server.stands(|wakeups| *wakeups == Wakeups::Listening).await;
        // And it hears again; `world.store` itself tells nobody.
        let other = Server::listening(world.url(), patient()).await;
        appended.mark_unchanged();
        append(&other.store, &tenant, "heard").await;
        woken(&mut appended).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_while_the_notifier_was_cut_off_is_told_of_afterwards() {
    let world = Ground::new(Engine::Postgres).world().await;
    let tenant = world.tenant().await;
    let proxy = Proxy::postgres(world.url()).await;
    let cut_off = Server::listening(proxy.url(), eager()).await;
    // Its commits still go through, on connections that it has; its listener does not come back.
    proxy.set(Fault::Refuse);
    assert_eq!(kill_listener(&world.raw().await).await, 1);
    cut_off.stands(|wakeups| *wakeups != Wakeups::Listening).await;
    append(&cut_off.store, &tenant, "meanwhile").await;
    let other = Server::listening(world.url(), patient()).await;
    let mut appended = other.store.appended();
    assert!(!appended.has_changed().unwrap());
    proxy.set(Fault::None);
    woken(&mut appended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_swallows_notifications_is_found_out_and_so_is_its_end() {
    let world = Ground::new(Engine::Postgres).world().await;
    let tenant = world.tenant().await;
    let proxy = Proxy::postgres(world.url()).await;
    // From the start, and in the middle.
    proxy.set(Fault::DropNotifications);
    let server = Server::start(proxy.url(), eager()).await;
    for _ in 0..2 {
        server.stands(does_not_hear).await;
        let mut appended = server.store.appended();
        append(&world.store, &tenant, "meanwhile").await;
        proxy.set(Fault::None);
        woken(&mut appended).await;
        server.stands(|wakeups| *wakeups == Wakeups::Listening).await;
        proxy.set(Fault::DropNotifications);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_is_noticed_and_left() {
    let world = Ground::new(Engine::Postgres).world().await;
    let proxy = Proxy::postgres(world.url()).await;
    let server = Server::listening(proxy.url(), eager()).await;
    proxy.set(Fault::Swallow);
    server.stands(|wakeups| matches!(wakeups, Wakeups::Polling { why } if why.contains("does not answer"))).await;
    proxy.set(Fault::None);
    server.stands(|wakeups| *wakeups == Wakeups::Listening).await;
}
