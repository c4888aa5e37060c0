//! The way out against real sockets.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use courant_core::delivery::FailureClass;
use reqwest::Method;
use reqwest::header::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::*;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

/// A receiver on this machine; it stops with the value.
struct Receiver {
    port: u16,
    requests: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Receiver {
    /// Reads the head of each request, then behaves as told.
    async fn start<F, B>(behave: B) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
        B: Fn(TcpStream) -> F + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&requests);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                seen.fetch_add(1, Ordering::SeqCst);
                read_head(&mut stream).await;
                connections.spawn(behave(stream));
            }
        });
        Self { port, requests, _tasks: tasks }
    }

    /// Answers every request with this text.
    async fn answering(answer: &'static str) -> Self {
        Self::start(move |mut stream| async move {
            let _ = stream.write_all(answer.as_bytes()).await;
        })
        .await
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    // A TLS handshake begins with 22 and has no end that we would know.
    while !head.ends_with(b"\r\n\r\n") && head.first() != Some(&22) {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
}

fn request(target: Target, url: &str) -> HttpRequest {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer SECRET-HEADER"));
    HttpRequest { method: Method::POST, url: url.parse().unwrap(), headers, body: Vec::new(), target }
}

async fn send_to(outbound: &Outbound, url: &str) -> Result<Response, Failure> {
    outbound.send(request(Target::Tenant, url), Duration::MAX).await
}

fn open_to(list: &str) -> Outbound {
    Outbound::new(Egress::parse(list).unwrap(), OutboundOptions::default()).unwrap()
}

/// A way out whose names resolve to these answers, one a look-up.
fn resolving(egress: &str, answers: Vec<Vec<IpAddr>>) -> (Outbound, Arc<AtomicUsize>) {
    let lookups = Arc::new(AtomicUsize::new(0));
    let (count, answers) = (Arc::clone(&lookups), Arc::new(Mutex::new(VecDeque::from(answers))));
    let lookup: Lookup = Arc::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let answer = answers.lock().unwrap().pop_front();
        Box::pin(async move { answer.ok_or_else(|| std::io::ErrorKind::NotFound.into()) })
    });
    let egress = Egress::parse(egress).unwrap();
    (Outbound::with_lookup(egress, OutboundOptions::default(), lookup).unwrap(), lookups)
}

fn assert_blocked(result: Result<Response, Failure>, host: &str) {
    let failure = result.unwrap_err();
    assert_eq!(failure.class, FailureClass::Blocked);
    assert_eq!(failure.text, format!("target address is not allowed: {host}"));
}

#[tokio::test]
async fn an_address_that_is_not_public_is_blocked_before_connecting() {
    let receiver = Receiver::answering(OK).await;
    let outbound = open_to("");
    for (spelling, host) in [
        ("127.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
        ("[::127.0.0.1]", "[::7f00:1]"),
        ("0.0.0.0", "0.0.0.0"),
    ] {
        assert_blocked(send_to(&outbound, &format!("http://{spelling}:{}/", receiver.port)).await, host);
    }
    assert_eq!(receiver.requests(), 0);
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_blocked() {
    let receiver = Receiver::answering(OK).await;
    let url = |host: &str| format!("http://{host}:{}/", receiver.port);
    assert_blocked(send_to(&open_to(""), &url("localhost")).await, "localhost");

    let (outbound, _) = resolving("", vec![vec![LOOPBACK], vec![LOOPBACK]]);
    for host in ["localhost.", "innocent.test"] {
        assert_blocked(send_to(&outbound, &url(host)).await, host);
    }
    assert_eq!(receiver.requests(), 0);
}

#[tokio::test]
async fn a_name_with_one_forbidden_address_among_allowed_ones_is_blocked() {
    let receiver = Receiver::answering(OK).await;
    let allowed: IpAddr = "127.0.0.2".parse().unwrap();
    let (outbound, _) = resolving("127.0.0.2", vec![vec![allowed, LOOPBACK]]);
    assert_blocked(send_to(&outbound, &format!("http://mixed.test:{}/", receiver.port)).await, "mixed.test");
    assert_eq!(receiver.requests(), 0);
}

#[tokio::test]
async fn a_name_that_moves_to_a_forbidden_address_is_blocked_at_the_next_connection() {
    let receiver = Receiver::answering(OK).await;
    let allowed: IpAddr = "127.0.0.2".parse().unwrap();
    let (outbound, lookups) = resolving("127.0.0.2", vec![vec![allowed], vec![LOOPBACK]]);
    let url = format!("http://rebind.test:{}/", receiver.port);

    assert_eq!(send_to(&outbound, &url).await.unwrap().status, 200);
    assert_eq!(lookups.load(Ordering::SeqCst), 1, "the checked address is the dialled one");
    assert_blocked(send_to(&outbound, &url).await, "rebind.test");
    assert_eq!(receiver.requests(), 1);
}

#[tokio::test]
async fn an_allowed_network_address_or_socket_is_reached() {
    let receiver = Receiver::answering(OK).await;
    let url = format!("http://127.0.0.1:{}/", receiver.port);
    for list in ["127.0.0.0/8", "127.0.0.1", &format!("127.0.0.1:{}", receiver.port)] {
        let answer = send_to(&open_to(list), &url).await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"ok".as_slice()), "{list}");
    }
    assert_blocked(send_to(&open_to("127.0.0.1:1"), &url).await, "127.0.0.1");
}

#[tokio::test]
async fn an_allowed_name_is_reached_wherever_it_leads() {
    let receiver = Receiver::answering(OK).await;
    let (outbound, _) = resolving("hooks.internal", vec![vec![LOOPBACK], vec![LOOPBACK]]);
    let url = |host: &str| format!("http://{host}:{}/", receiver.port);
    assert_eq!(send_to(&outbound, &url("HOOKS.internal.")).await.unwrap().status, 200);
    assert_blocked(send_to(&outbound, &url("other.internal")).await, "other.internal");
}

#[tokio::test]
async fn the_operators_own_target_passes_the_guard() {
    let receiver = Receiver::answering(OK).await;
    let url = format!("http://localhost:{}/", receiver.port);
    let answer = open_to("").send(request(Target::Operator, &url), Duration::MAX).await.unwrap();
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let receiver = Receiver::answering(
        "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\nretry-after: 7\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    )
    .await;
    let answer = send_to(&open_to("127.0.0.1"), &format!("http://127.0.0.1:{}/", receiver.port)).await.unwrap();
    assert_eq!(answer.status, 302);
    assert_eq!(answer.location.as_deref(), Some("/elsewhere"));
    assert_eq!(answer.retry_after.as_deref(), Some("7"));
    assert_eq!(receiver.requests(), 1);
}

#[tokio::test]
async fn an_endless_body_is_read_to_its_limit_only() {
    let receiver = Receiver::start(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while stream.write_all(b"5\r\nhello\r\n").await.is_ok() {}
    })
    .await;
    let answer = send_to(&open_to("127.0.0.1"), &format!("http://127.0.0.1:{}/", receiver.port)).await.unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, BODY_BYTES));
}

#[tokio::test]
async fn a_body_that_never_ends_in_time_is_a_failure() {
    let receiver = Receiver::start(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nslow").await;
        std::future::pending::<()>().await;
    })
    .await;
    let sending = request(Target::Tenant, &format!("http://127.0.0.1:{}/T/SECRET", receiver.port));
    let failure = open_to("127.0.0.1").send(sending, Duration::from_millis(200)).await.unwrap_err();
    assert_eq!(failure.class, FailureClass::Transient);
    assert_eq!(failure.text, format!("no complete answer in time from 127.0.0.1:{}", receiver.port));
}

#[tokio::test]
async fn every_fault_has_its_own_text_and_none_shows_a_secret() {
    let cutting = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut").await;
    let gone = TcpListener::bind((LOOPBACK, 0)).await.unwrap().local_addr().unwrap().port();
    let (outbound, _) = resolving("127.0.0.1", vec![]);
    let tail = "T/SECRET-PATH?token=SECRET-QUERY";
    let (refused, tls, cut) = (
        format!("http://127.0.0.1:{gone}/{tail}"),
        format!("https://127.0.0.1:{}/{tail}", cutting.port),
        format!("http://127.0.0.1:{}/{tail}", cutting.port),
    );
    for (url, class, text) in [
        (refused.as_str(), FailureClass::Transient, format!("connection refused by 127.0.0.1:{gone}")),
        (&tls, FailureClass::Transient, format!("TLS failed with 127.0.0.1:{}", cutting.port)),
        (&cut, FailureClass::Transient, format!("no valid HTTP answer from 127.0.0.1:{}", cutting.port)),
        ("http://x.test/SECRET", FailureClass::Transient, "name not resolved: x.test".to_owned()),
        ("http://10.0.0.1/SECRET", FailureClass::Blocked, "target address is not allowed: 10.0.0.1".to_owned()),
        ("ftp://x.test/SECRET", FailureClass::Destination, "target is not an http or https URL".to_owned()),
        ("http://SECRET:x@x.test/", FailureClass::Destination, "target URL holds a user name or password".to_owned()),
    ] {
        let failure = send_to(&outbound, url).await.unwrap_err();
        assert_eq!(failure.class, class, "{url}: {}", failure.text);
        assert!(failure.text.starts_with(&text), "{url}: {}", failure.text);
        assert!(!failure.text.contains("SECRET"), "{}", failure.text);
    }
}
