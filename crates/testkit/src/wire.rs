//! Answers as they come from the socket: every byte, with no client in between that tidies them.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends these bytes and gives all that comes back until the other side closes. A request that is to be answered
/// whole says `Connection: close`.
pub async fn exchange(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("somebody who listens");
    let mut answer = Vec::new();
    // A server may answer and close before it has read everything; what it said until then counts.
    let _ = stream.write_all(request).await;
    let _ = stream.read_to_end(&mut answer).await;
    answer
}
