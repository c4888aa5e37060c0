//! Connections: from a listening socket to the router, until the server stops.
//!
//! A client may be slow, but not for ever: a connection whose next request head does not arrive in time is closed, an
//! idle one too. It must never end because one connection, or one `accept`, failed.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::client::Peer;

/// Longest wait for a request head, from the connection's start or the end of the answer before.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Wait after an `accept` that failed for want of something, like file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves every connection as a task of `tasks`. After `stop` none is accepted, idle ones are closed and requests in
/// hand are answered.
pub async fn serve(tasks: TaskTracker, listener: TcpListener, routes: Router, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                tasks.spawn(connection(stream, peer, routes.clone(), stop.clone()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted; the next try is in a second");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                }
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::ConnectionRefused | K::ConnectionAborted | K::ConnectionReset | K::Interrupted)
}

async fn connection(stream: TcpStream, peer: SocketAddr, routes: Router, stop: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was refused");
    }
    let routes = routes.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer.ip()));
        request
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
            // A socket goes on in a task of its own.
            .with_upgrades()
    );
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Notify;

    use super::*;

    struct Served {
        tasks: TaskTracker,
        stop: CancellationToken,
        stream: TcpStream,
    }

    /// A server of these routes and a connection to it.
    async fn served(routes: Router) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(serve(tasks.clone(), listener, routes, stop.clone()));
        Served { tasks, stop, stream: TcpStream::connect(address).await.unwrap() }
    }

    async fn rest(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_arrive_ends_its_connection() {
        for head in ["", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "] {
            let mut server = served(Router::new()).await;
            server.stream.write_all(head.as_bytes()).await.unwrap();
            let answer = rest(&mut server.stream).await;
            assert!(!answer.contains(" 200 "), "{head:?}: {answer}");
        }
    }

    #[tokio::test]
    async fn stopping_closes_idle_connections_and_answers_what_is_in_hand() {
        static BEGUN: Notify = Notify::const_new();
        static GO_ON: Notify = Notify::const_new();
        async fn slow() -> &'static str {
            BEGUN.notify_one();
            GO_ON.notified().await;
            "done"
        }
        let mut server = served(Router::new().route("/", get(slow))).await;
        let mut idle = TcpStream::connect(server.stream.peer_addr().unwrap()).await.unwrap();
        server.stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        BEGUN.notified().await;
        server.stop.cancel();
        assert_eq!(rest(&mut idle).await, "");
        GO_ON.notify_one();
        let answer = rest(&mut server.stream).await;
        assert!(answer.ends_with("done"), "{answer}");
        server.tasks.close();
        server.tasks.wait().await;
    }
}
