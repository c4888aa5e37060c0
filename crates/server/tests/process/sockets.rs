//! What open sockets cost a server's memory. The clients are in this process, so that the server's can be measured.

#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::support::{Engine, Org, Place, Process, Value, eventually};

/// Most kB of memory that an idle socket may cost.
const EACH_KB: usize = 15;
/// File descriptors that the server and this process have beside those of sockets.
const OTHER_FILES: usize = 500;

type Socket = WebSocketStream<TcpStream>;

async fn open(server: SocketAddr, org: &Org, query: &str) -> Socket {
    let mut request = format!("ws://{server}/api/v1/events/ws?{query}").into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {}", org.key).parse().unwrap());
    let tcp = TcpStream::connect(server).await.unwrap();
    let small = WebSocketConfig::default().read_buffer_size(1024).write_buffer_size(0);
    client_async_with_config(request, tcp, Some(small)).await.unwrap().0
}

/// The entity of the next event, past pings and progress marks.
async fn entity(socket: &mut Socket) -> String {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            let value: Value = serde_json::from_str(&text).unwrap();
            if let Some(entity) = value["entityId"].as_str() {
                return entity.to_owned();
            }
        }
    }
}

/// Sockets that answer pings and count what they are sent.
struct Crowd {
    server: SocketAddr,
    org: Org,
    tasks: JoinSet<()>,
    received: Arc<AtomicUsize>,
}

async fn receive(mut socket: Socket, received: Arc<AtomicUsize>) {
    loop {
        entity(&mut socket).await;
        received.fetch_add(1, Ordering::Relaxed);
    }
}

impl Crowd {
    /// Opens so many more, each of which is sent the first order; so the server has come to the journal's end for it.
    async fn grow(&mut self, count: usize) {
        let opened: Vec<_> = stream::iter(0..count)
            .map(|_| async {
                let mut socket = open(self.server, &self.org, "types=order.").await;
                assert_eq!(entity(&mut socket).await, "o_1");
                socket
            })
            .buffer_unordered(32)
            // Each answers from the moment that it is open.
            .map(|socket| self.tasks.spawn(receive(socket, Arc::clone(&self.received))))
            .collect()
            .await;
        assert_eq!(opened.len(), count);
    }
}

/// Resident memory of a server in kB.
fn resident_kb(server: &Process) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn most_files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap_or(usize::MAX)
}

async fn idle_sockets_cost_little(engine: Engine, most: usize) {
    let place = Place::new(engine).await;
    let server = place.serve().await;
    let org = place.org(&server).await;
    let count = most.min(most_files().saturating_sub(OTHER_FILES));
    assert!(count >= 500, "too few files may be open here for a measurement");
    org.append(&server, 1..2).await;
    let received = Arc::new(AtomicUsize::new(0));
    let mut crowd = Crowd { server: server.address, org: org.clone(), tasks: JoinSet::new(), received };
    // What the first ones cost the server once is not counted.
    crowd.grow(100).await;
    let before = resident_kb(&server);
    crowd.grow(count).await;
    org.append(&server, 2..3).await;
    let all = 100 + count;
    eventually("an order at every socket", async || (crowd.received.load(Ordering::Relaxed) == all).then_some(()))
        .await;
    let grown = resident_kb(&server).saturating_sub(before);
    assert!(grown <= count * EACH_KB, "{count} idle sockets cost {grown} kB, {} kB each", grown / count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_idle_sockets_cost_at_most_15_kb_each_on_postgres() {
    idle_sockets_cost_little(Engine::Postgres, 2_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_sockets_cost_at_most_15_kb_each_where_so_many_files_may_be_open() {
    idle_sockets_cost_little(Engine::Sqlite, 10_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_never_read_cost_a_bounded_part_of_their_backlog() {
    const READERS: usize = 40;
    let place = Place::new(Engine::Sqlite).await;
    let server = place.serve().await;
    let org = place.org(&server).await;
    // More than a connection holds: 16 MB for each reader.
    for n in 0..80 {
        org.append_large(&server, n, 200_000).await;
    }
    let mut good = open(server.address, &org, "types=order.").await;
    assert_eq!(entity(&mut good).await, "o_0");
    let before = resident_kb(&server);
    let mut deaf = Vec::new();
    for _ in 0..READERS {
        deaf.push(open(server.address, &org, "types=order.").await);
    }
    // Others are served meanwhile, past everything that the deaf ones have not taken.
    for n in 1..80 {
        assert_eq!(entity(&mut good).await, format!("o_{n}"));
    }
    let grown = resident_kb(&server).saturating_sub(before);
    assert!(grown <= READERS * 8 * 1024, "{READERS} deaf readers cost {grown} kB");
}
