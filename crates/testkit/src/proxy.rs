//! A TCP proxy whose faults the test switches: what networks and poolers do to connections.
//!
//! It must never invent a byte: it forwards, holds back, loses or cuts. A connection that has lost bytes can never be
//! whole again, so it is cut when the loss is over, as a network cuts it in the end.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::postgres::{address_of, with_address};

/// What the proxy does to its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// New connections are closed at once.
    Refuse,
    /// What arrives is read and lost, both ways; nobody is told.
    Swallow,
    /// Each piece is forwarded this much later.
    Delay(Duration),
    /// PostgreSQL's notifications are lost, as a transaction pooler loses them. Only of [`Proxy::postgres`].
    DropNotifications,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    fault: Fault,
    cuts: u64,
}

#[derive(Debug, Default)]
struct Counts {
    /// Connections that are open.
    open: AtomicUsize,
    /// Bytes that were swallowed.
    lost: AtomicUsize,
}

/// A proxy on a port of its own, gone when dropped, with its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    url: String,
    state: watch::Sender<State>,
    counts: Arc<Counts>,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// A proxy of whatever listens at `target`.
    pub async fn start(target: SocketAddr) -> Self {
        Self::of(target, String::new(), false).await
    }

    /// A proxy of a PostgreSQL server, for connections without TLS.
    pub async fn postgres(url: &str) -> Self {
        Self::of(address_of(url), url.to_owned(), true).await
    }

    async fn of(target: SocketAddr, url: String, framed: bool) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("the port just bound");
        let state = watch::Sender::new(State::default());
        let states = state.subscribe();
        let counts = Arc::new(Counts::default());
        let counting = Arc::clone(&counts);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    Ok((client, _)) = listener.accept() => {
                        if states.borrow().fault != Fault::Refuse {
                            let (states, counts) = (states.clone(), Arc::clone(&counting));
                            connections.spawn(async move {
                                counts.open.fetch_add(1, Ordering::Relaxed);
                                carry(client, target, framed, states, &counts).await;
                                counts.open.fetch_sub(1, Ordering::Relaxed);
                            });
                        }
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        let url = with_address(&url, address);
        Self { address, url, state, counts, _serving: serving }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the PostgreSQL database, through the proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on, for all connections.
    pub fn set(&self, fault: Fault) {
        self.state.send_modify(|state| state.fault = fault);
    }

    /// How many bytes it has swallowed so far.
    pub fn lost(&self) -> usize {
        self.counts.lost.load(Ordering::Relaxed)
    }

    /// Cuts every connection now; how many there were.
    pub fn cut(&self) -> usize {
        let open = self.counts.open.load(Ordering::Relaxed);
        self.state.send_modify(|state| state.cuts += 1);
        open
    }
}

/// One connection, to its end. Both sides are closed when this returns.
async fn carry(client: TcpStream, target: SocketAddr, framed: bool, states: watch::Receiver<State>, counts: &Counts) {
    let cuts = states.borrow().cuts;
    let Ok(server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut watched = states.clone();
    tokio::select! {
        () = forward(from_client, to_server, None, states.clone(), counts) => {},
        () = forward(from_server, to_client, framed.then(BytesMut::new), states, counts) => {},
        _ = watched.wait_for(|state| state.cuts != cuts) => {},
    }
}

/// One direction, until it ends. `frames` holds an incomplete frame of a server whose frames are looked at.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut frames: Option<BytesMut>,
    mut states: watch::Receiver<State>,
    counts: &Counts,
) {
    let mut lost = false;
    let mut piece = BytesMut::with_capacity(64 * 1024);
    loop {
        piece.clear();
        tokio::select! {
            read = from.read_buf(&mut piece) => if !read.is_ok_and(|n| n > 0) { return },
            _ = states.wait_for(|state| state.fault != Fault::Swallow), if lost => return,
        }
        let fault = states.borrow().fault;
        match fault {
            Fault::Swallow => {
                lost = true;
                counts.lost.fetch_add(piece.len(), Ordering::Relaxed);
                continue;
            }
            Fault::Delay(time) => sleep(time).await,
            Fault::None | Fault::Refuse | Fault::DropNotifications => {}
        }
        if let Some(frames) = &mut frames {
            frames.extend_from_slice(&piece);
            piece = whole_frames(frames, fault == Fault::DropNotifications);
        }
        if to.write_all(&piece).await.is_err() {
            return;
        }
    }
}

/// Takes the frames that are complete: a byte that names the kind, and the length of the rest with itself.
fn whole_frames(buffer: &mut BytesMut, without_notifications: bool) -> BytesMut {
    let mut whole = BytesMut::new();
    while buffer.len() >= 5 {
        let length = 1 + u32::from_be_bytes([buffer[1], buffer[2], buffer[3], buffer[4]]) as usize;
        if buffer.len() < length {
            break;
        }
        if without_notifications && buffer[0] == b'A' {
            buffer.advance(length);
        } else {
            whole.unsplit(buffer.split_to(length));
        }
    }
    whole
}
