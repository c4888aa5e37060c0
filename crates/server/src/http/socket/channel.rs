//! One open socket: frames out, the peer's sign of life, and the end.
//!
//! Its buffers are small, since most sockets are idle and there may be many: a text goes out in pieces, each sent before
//! the next is made. What the peer sends is looked at and thrown away.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, error::ProtocolError};

use super::close::Ending;
use super::{Limits, Sockets};

/// Largest frame and message that is taken from a peer.
const INCOMING: usize = 4 * 1024;
/// Largest piece of a text that is sent.
const PIECE: usize = 4 * 1024;
/// Read at once.
const READ: usize = 512;
/// A piece and what the protocol answers by itself.
const UNSENT: usize = 4 * PIECE;

/// An open socket.
#[derive(Debug)]
pub struct Channel {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    sockets: Arc<Sockets>,
    heard: Instant,
    pinged: Instant,
}

impl Channel {
    pub(super) async fn new(upgraded: Upgraded, sockets: Arc<Sockets>) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ)
            .write_buffer_size(0)
            .max_write_buffer_size(UNSENT)
            .max_message_size(Some(INCOMING))
            .max_frame_size(Some(INCOMING));
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        let now = Instant::now();
        Self { socket, sockets, heard: now, pinged: now }
    }

    /// The limits that it is under.
    pub fn limits(&self) -> Limits {
        self.sockets.limits
    }

    /// Sends one text and waits until the connection has taken it; one that the peer does not take in time is the end.
    pub async fn text(&mut self, text: Bytes) -> Result<(), Ending> {
        let mut rest = text;
        let mut kind = Data::Text;
        loop {
            let piece = rest.split_to(rest.len().min(PIECE));
            let frame = Frame::message(piece, OpCode::Data(kind), rest.is_empty());
            self.send(Message::Frame(frame)).await?;
            if rest.is_empty() {
                break;
            }
            kind = Data::Continue;
        }
        metrics::counter!("courant_socket_frames_total").increment(1);
        Ok(())
    }

    /// Waits for one frame of the peer. A call that is dropped loses nothing.
    pub async fn hear(&mut self) -> Result<(), Ending> {
        let heard = self.socket.next().await;
        self.heard = Instant::now();
        match heard {
            Some(Ok(Message::Close(_))) => Err(Ending::Closed),
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(ending(&error)),
            None => Err(Ending::Lost),
        }
    }

    /// When [`Channel::tend`] has something to do.
    pub fn due(&self) -> Instant {
        let Limits { ping, silence, .. } = self.limits();
        (self.pinged + ping).min(self.heard + silence)
    }

    /// Pings the peer when it is time, and finds out whether it has gone silent.
    pub async fn tend(&mut self) -> Result<(), Ending> {
        let (now, limits) = (Instant::now(), self.limits());
        if now >= self.heard + limits.silence {
            // It may have spoken while something was sent.
            self.hear().now_or_never().unwrap_or(Err(Ending::Silent))?;
        }
        if now >= self.pinged + limits.ping {
            self.pinged = now;
            self.send(Message::Ping(Bytes::new())).await?;
        }
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), Ending> {
        let Self { socket, sockets, heard, .. } = self;
        let mut sending = std::pin::pin!(socket.send(message));
        if let Some(sent) = sending.as_mut().now_or_never() {
            return sent.map_err(|error| ending(&error));
        }
        tokio::select! {
            sent = &mut sending => sent.map_err(|error| ending(&error))?,
            () = sockets.stop.cancelled() => return Err(Ending::Stopping),
            () = sleep(sockets.limits.silence) => return Err(Ending::Silent),
        }
        // Room came only by the peer's taking something: it is slow, not gone.
        *heard = Instant::now();
        Ok(())
    }

    /// Tells the peer why, and leaves it a moment for its part.
    pub(super) async fn close(mut self, ending: &Ending) {
        let goodbye = async {
            if let Some((code, reason)) = ending.close() {
                let frame = CloseFrame { code: code.into(), reason: reason.into() };
                self.socket.close(Some(frame)).await?;
            }
            if ending.is_orderly() {
                while self.socket.next().await.transpose()?.is_some() {}
            } else {
                // Bytes that nobody reads would make the connection's end swallow the close frame.
                let connection = self.socket.get_mut();
                connection.shutdown().await?;
                let mut unread = [0; READ];
                while connection.read(&mut unread).await? > 0 {}
            }
            Ok::<_, Error>(())
        };
        if !matches!(ending, Ending::Silent | Ending::Lost) {
            // Whether the peer heard it is its own affair by now.
            let _told = timeout(self.sockets.limits.goodbye, goodbye).await;
        }
    }
}

fn ending(error: &Error) -> Ending {
    match error {
        Error::Capacity(_) => Ending::TooBig,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Ending::Lost,
        Error::Protocol(_) | Error::Utf8(_) => Ending::Broken,
        _ => Ending::Lost,
    }
}
