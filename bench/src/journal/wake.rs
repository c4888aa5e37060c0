//! How soon a WebSocket is told of an event, on the server that appended it and on another, beside a bare notification.
//!
//! Events come one at a time, some 20 ms apart, so that each is told of by itself; bare notifications, too.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use courant_api::event::{EventsAppend, EventsAppended};
use courant_store::{Store, Wakeups};
use futures_util::StreamExt as _;
use http::StatusCode;
use http::header::AUTHORIZATION;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::Scale;
use crate::conn::Conn;
use crate::load::{Client, Until, run as run_load};
use crate::ours::Ours;
use crate::place::Engine;
use crate::raw::notify::RoundTrip;
use crate::report::Row;
use crate::rounds::{Measure, Pairs, alternate};
use crate::sample;

/// Starts to listen, and an event reaches a socket, within this.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a time is counted from.
const FROM: [&str; 2] = ["append sent", "append answered"];
/// Where the socket is.
const WHERE: [&str; 2] = ["same server", "other server"];

fn title(from: &str, place: &str) -> String {
    format!("{from} to WebSocket frame, {place}")
}

pub(super) async fn run(scale: &Scale) -> Result<Vec<Row>> {
    let wanted = |from, place| scale.wants(&format!("{} {}", Engine::Postgres.name(), title(from, place)));
    if !FROM.iter().any(|from| WHERE.iter().any(|place| wanted(from, place))) {
        return Ok(Vec::new());
    }
    let server = Ours::start(Engine::Postgres).await?;
    let other = server.another().await?;
    for running in [&server.running, &other] {
        timeout(PATIENCE, listening(&running.app.store)).await.context("a server does not hear of others")??;
    }
    let mut rows = Vec::new();
    for (place, address) in WHERE.into_iter().zip([server.running.address, other.address]) {
        if FROM.iter().any(|from| wanted(from, place)) {
            let pairs = told(&server, address, scale).await?;
            for (from, pairs) in FROM.into_iter().zip(pairs).filter(|(from, _)| wanted(from, place)) {
                rows.push(Row::of_p50(Engine::Postgres.name(), title(from, place), "events", &pairs));
            }
        }
    }
    other.stop().await;
    server.stop().await;
    Ok(rows)
}

async fn listening(store: &Store) -> Result<()> {
    let mut wakeups = store.wakeups();
    wakeups.wait_for(|stands| matches!(stands, Wakeups::Listening)).await?;
    Ok(())
}

/// Measures a socket at this address, by both times.
async fn told(server: &Ours, address: SocketAddr, scale: &Scale) -> Result<[Pairs; 2]> {
    let by_answer = RefCell::new(Vec::new());
    let ours = async || {
        let (measure, follower) = lone(Follower::open(server, address).await?, scale.until).await?;
        by_answer.borrow_mut().push(measure.with_times(counted(follower.since_answered, scale.until)));
        Ok(measure.with_times(counted(follower.since_sent, scale.until)))
    };
    let raw = async || {
        let notified = Notified { trip: RoundTrip::new(server.place.url()).await?, took: Vec::new() };
        let (measure, notified) = lone(notified, scale.until).await?;
        Ok(measure.with_times(counted(notified.took, scale.until)))
    };
    let sent = alternate(scale.rounds, ours, raw).await?;
    let answered = Pairs { ours: by_answer.into_inner(), raw: sent.raw.clone() };
    Ok([sent, answered])
}

/// Runs one client.
async fn lone<C: Client>(client: C, until: Until) -> Result<(Measure, C)> {
    let (measure, mut clients) = run_load(vec![client], until).await?;
    Ok((measure, clients.pop().context("no client")?))
}

/// Without those of the warm-up.
fn counted(mut times: Vec<Duration>, until: Until) -> Vec<Duration> {
    if matches!(until, Until::Passed(_)) {
        times.drain(..times.len() / 6);
    }
    times
}

/// A pause before the call with this number, so that calls keep no step with anything.
async fn pause(number: usize) {
    sleep(Duration::from_millis(15 + number as u64 * 7 % 11)).await;
}

/// Appends an event and waits for its frame.
struct Follower {
    conn: Conn,
    socket: WebSocketStream<TcpStream>,
    since_sent: Vec<Duration>,
    since_answered: Vec<Duration>,
}

impl Follower {
    async fn open(server: &Ours, address: SocketAddr) -> Result<Self> {
        let store = &server.running.app.store;
        let cursor = store.journal_cursor(server.tenant, store.journal_horizon().await?);
        let mut request = format!("ws://{address}/api/v1/events/ws?after={cursor}").into_client_request()?;
        request.headers_mut().insert(AUTHORIZATION, format!("Bearer {}", server.key).parse()?);
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (socket, _answer) = client_async(request, stream).await?;
        let conn = Conn::open(server.running.address, &server.key).await?;
        Ok(Self { conn, socket, since_sent: Vec::new(), since_answered: Vec::new() })
    }

    async fn frame(socket: &mut WebSocketStream<TcpStream>) -> Result<String> {
        loop {
            match socket.next().await.context("the socket ended")?? {
                Message::Text(text) => return Ok(text.to_string()),
                Message::Ping(_) | Message::Pong(_) => {}
                other => bail!("no event came: {other:?}"),
            }
        }
    }
}

impl Client for Follower {
    async fn call(&mut self) -> Result<u64> {
        let number = self.since_sent.len();
        pause(number).await;
        let body = serde_json::to_vec(&EventsAppend { events: vec![sample::event(number as u64)] })?;
        let sent = Instant::now();
        let append = async {
            let answer = self.conn.post("/api/v1/events", Bytes::from(body), StatusCode::CREATED).await?;
            anyhow::Ok((answer, Instant::now()))
        };
        let told = async {
            let frame = timeout(PATIENCE, Self::frame(&mut self.socket)).await.context("no frame came")??;
            anyhow::Ok((frame, Instant::now()))
        };
        let ((answer, answered), (frame, told)) = tokio::try_join!(append, told)?;
        let appended: EventsAppended = serde_json::from_slice(&answer)?;
        let id = appended.items.first().context("nothing was appended")?.id;
        ensure!(frame.contains(&id.to_string()), "another event was told of: {frame}");
        self.since_sent.push(told - sent);
        // The frame may come first.
        self.since_answered.push(told.saturating_duration_since(answered));
        Ok(1)
    }
}

struct Notified {
    trip: RoundTrip,
    took: Vec<Duration>,
}

impl Client for Notified {
    async fn call(&mut self) -> Result<u64> {
        pause(self.took.len()).await;
        self.took.push(self.trip.once().await?);
        Ok(1)
    }
}
