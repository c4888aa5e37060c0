//! A lean HTTP/1.1 client: one connection that is kept, one request at a time.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A kept connection.
pub(crate) struct Conn {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    authorization: HeaderValue,
    _driver: JoinSet<()>,
}

impl Conn {
    pub(crate) async fn open(address: SocketAddr, key: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // Its end is the sender's end, or the sender's calls say why.
            let _ended = connection.await;
        });
        let authorization = HeaderValue::from_str(&format!("Bearer {key}"))?;
        Ok(Self { sender, host: HeaderValue::from_str(&address.to_string())?, authorization, _driver: driver })
    }

    /// Posts JSON and reads the whole answer, which must have this status.
    pub(crate) async fn post(&mut self, path: &'static str, body: Bytes, expected: StatusCode) -> Result<Bytes> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static(path);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(request, expected).await
    }

    /// Gets a path and reads the whole answer, which must be a good one.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Bytes> {
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = path.parse()?;
        self.send(request, StatusCode::OK).await
    }

    async fn send(&mut self, mut request: Request<Full<Bytes>>, expected: StatusCode) -> Result<Bytes> {
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(AUTHORIZATION, self.authorization.clone());
        self.sender.ready().await.context("the server closed the connection")?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        ensure!(status == expected, "{status}: {}", String::from_utf8_lossy(&body));
        Ok(body)
    }
}
