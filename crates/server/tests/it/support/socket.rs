//! A WebSocket as a client of any language would hold it.

use courant_testkit::PATIENCE;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::Api;

/// A connected client. It answers pings only while something is awaited from it.
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
}

impl Socket {
    /// Connects as the caller of `api`; a path that does not start with `/api` is one of version 1.
    pub async fn open(api: &Api, path: &str) -> Self {
        let headers: Vec<_> =
            api.credential().map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect();
        Self::open_with(api, path, &headers).await.unwrap().0
    }

    /// Connects with these headers and no other.
    pub async fn open_with(
        api: &Api,
        path: &str,
        headers: &[(&'static str, String)],
    ) -> Result<(Self, Response), Error> {
        // A small window, so that a client that does not read is soon noticed.
        let tcp = TcpSocket::new_v4().unwrap();
        tcp.set_recv_buffer_size(16 * 1024).unwrap();
        let tcp = tcp.connect(api.host().parse().unwrap()).await.unwrap();
        let prefix = if path.starts_with("/api/") { "" } else { "/api/v1" };
        let mut request = format!("ws://{}{prefix}{path}", api.host()).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        let (stream, response) = client_async(request, tcp).await?;
        Ok((Self { stream }, response))
    }

    /// Opens `/events/ws` with this query.
    pub async fn events(api: &Api, query: &str) -> Self {
        Self::open(api, &format!("/events/ws?{query}")).await
    }

    async fn next(&mut self) -> Option<Result<Message, Error>> {
        timeout(PATIENCE, self.stream.next()).await.expect("a frame or the end")
    }

    /// The next text, as JSON.
    pub async fn text(&mut self) -> Value {
        serde_json::from_str(&self.raw_text().await).unwrap()
    }

    /// The next text.
    pub async fn raw_text(&mut self) -> String {
        loop {
            match self.next().await.expect("a frame").expect("a good frame") {
                Message::Text(text) => return text.to_string(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("no text: {other:?}"),
            }
        }
    }

    /// The next event; progress marks are passed over.
    pub async fn event(&mut self) -> Value {
        loop {
            let text = self.text().await;
            if text["type"] != "progress" {
                return text;
            }
        }
    }

    /// The entities of the next `count` events.
    pub async fn entities(&mut self, count: usize) -> Vec<String> {
        let mut entities = Vec::new();
        for _ in 0..count {
            entities.push(self.event().await["entityId"].as_str().unwrap().to_owned());
        }
        entities
    }

    /// Waits for a ping, which it answers.
    pub async fn pinged(&mut self) {
        while !matches!(self.next().await.expect("a frame").expect("a good frame"), Message::Ping(_)) {}
        // The pong goes out with the next flush.
        self.stream.flush().await.unwrap();
    }

    /// The close code and its reason, past whatever comes before it.
    pub async fn closed(&mut self) -> (u16, String) {
        loop {
            match self.next().await.expect("a close frame").expect("a good frame") {
                Message::Close(Some(frame)) => return (frame.code.into(), frame.reason.to_string()),
                Message::Close(None) => panic!("a close frame without a code"),
                _ => {}
            }
        }
    }

    pub async fn send(&mut self, message: Message) {
        self.stream.send(message).await.unwrap();
    }

    /// Sends bytes that are no frame of a well-behaved client.
    pub async fn raw(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.unwrap();
    }

    /// The end of the connection without a close frame.
    pub async fn dropped(&mut self) {
        loop {
            match self.next().await {
                None | Some(Err(_)) => return,
                Some(Ok(Message::Close(frame))) => panic!("closed with {frame:?}"),
                Some(Ok(_)) => {}
            }
        }
    }
}
