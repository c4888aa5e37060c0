//! The proxy does what its fault says and nothing else.

#![expect(clippy::unwrap_used, reason = "a test says what it met by panicking")]

use std::net::SocketAddr;
use std::time::Duration;

use courant_testkit::{Fault, PATIENCE, Proxy, TestDatabase, eventually};
use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// Says everything back.
async fn echo() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            open.spawn(async move {
                let (mut from, mut to) = stream.split();
                // Its end is the client's.
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    (address, serving)
}

/// What comes back; none when the connection has ended.
async fn said(stream: &mut TcpStream, word: &[u8]) -> Option<Vec<u8>> {
    let mut answer = vec![0; word.len()];
    let exchange = async {
        stream.write_all(word).await.ok()?;
        stream.read_exact(&mut answer).await.ok()
    };
    timeout(PATIENCE, exchange).await.expect("an answer or an end")?;
    Some(answer)
}

#[tokio::test]
async fn connections_pass_are_cut_and_are_refused() {
    let (target, _serving) = echo().await;
    let proxy = Proxy::start(target).await;
    let mut first = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(said(&mut first, b"hello").await.as_deref(), Some(&b"hello"[..]));
    proxy.set(Fault::Refuse);
    let mut second = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(said(&mut second, b"hello").await, None);
    assert_eq!(said(&mut first, b"still here").await.as_deref(), Some(&b"still here"[..]));
    assert_eq!(proxy.cut(), 1);
    assert_eq!(said(&mut first, b"gone").await, None);
    proxy.set(Fault::Delay(Duration::from_millis(1)));
    let mut third = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(said(&mut third, b"later").await.as_deref(), Some(&b"later"[..]));
}

#[tokio::test]
async fn what_is_swallowed_never_comes_and_ends_its_connection_afterwards() {
    let (target, _serving) = echo().await;
    let proxy = Proxy::start(target).await;
    let mut loser = TcpStream::connect(proxy.address()).await.unwrap();
    let mut idle = TcpStream::connect(proxy.address()).await.unwrap();
    for stream in [&mut loser, &mut idle] {
        assert_eq!(said(stream, b"before").await.as_deref(), Some(&b"before"[..]));
    }
    proxy.set(Fault::Swallow);
    loser.write_all(b"lost").await.unwrap();
    eventually("the loss", async || (proxy.lost() == 4).then_some(())).await;
    proxy.set(Fault::None);
    let mut byte = [0];
    let ended = timeout(PATIENCE, loser.read(&mut byte)).await.expect("an end");
    assert!(!ended.is_ok_and(|n| n > 0));
    assert_eq!(said(&mut idle, b"after").await.as_deref(), Some(&b"after"[..]));
}

/// A connection, what it is notified of, and its task.
async fn listener(url: &str) -> (Client, mpsc::UnboundedReceiver<String>, JoinSet<()>) {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let (heard, payloads) = mpsc::unbounded_channel();
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut messages = futures_util::stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                // Nobody listens once the test is over.
                let _ = heard.send(notification.payload().to_owned());
            }
        }
    });
    client.batch_execute("LISTEN test").await.unwrap();
    (client, payloads, task)
}

#[tokio::test]
async fn notifications_alone_are_dropped_and_everything_else_passes() {
    let database = TestDatabase::postgres().await;
    let proxy = Proxy::postgres(database.url()).await;
    let (client, mut payloads, _task) = listener(proxy.url()).await;
    for (fault, payload) in [(Fault::None, "one"), (Fault::DropNotifications, "two"), (Fault::None, "three")] {
        proxy.set(fault);
        client.batch_execute(&format!("NOTIFY test, '{payload}'")).await.unwrap();
        // A long answer comes in many pieces.
        let row = client.query_one("SELECT repeat('A', 1000000)", &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0).len(), 1_000_000);
    }
    assert_eq!(payloads.recv().await.as_deref(), Some("one"));
    assert_eq!(payloads.recv().await.as_deref(), Some("three"));
}
