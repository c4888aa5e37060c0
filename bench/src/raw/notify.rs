//! LISTEN and NOTIFY with nothing in between.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, NoTls, Statement};

use super::postgres::Connection;

/// One connection notifies, another listens.
pub(crate) struct RoundTrip {
    notifier: Connection,
    notify: Statement,
    heard: mpsc::UnboundedReceiver<()>,
    /// Keeps the listening session open.
    _listener: tokio_postgres::Client,
    _driver: JoinSet<()>,
}

impl RoundTrip {
    pub(crate) async fn new(url: &str) -> Result<Self> {
        let notifier = Connection::open(url).await?;
        let notify = notifier.client.prepare("SELECT pg_notify('bench', $1)").await?;
        let (listener, mut connection) = tokio_postgres::connect(url, NoTls).await?;
        let (hears, heard) = mpsc::unbounded_channel();
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
            while let Some(Ok(message)) = messages.next().await {
                if matches!(message, AsyncMessage::Notification(_)) && hears.send(()).is_err() {
                    break;
                }
            }
        });
        listener.batch_execute("LISTEN bench").await?;
        Ok(Self { notifier, notify, heard, _listener: listener, _driver: driver })
    }

    /// How long a notification takes from its sending to its arrival.
    pub(crate) async fn once(&mut self) -> Result<Duration> {
        let sent = Instant::now();
        let heard = async {
            self.heard.recv().await.context("the listener's connection ended")?;
            anyhow::Ok(sent.elapsed())
        };
        let notify = async { anyhow::Ok(self.notifier.client.query(&self.notify, &[&"event"]).await?) };
        let (took, _notified) = tokio::try_join!(heard, notify)?;
        Ok(took)
    }
}
