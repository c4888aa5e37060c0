//! Group commit: requests that wait at the same time share a transaction.
//!
//! A writer takes what has queued and never lingers for more, so a lone request is as quick as before and a crowd
//! shares its commits. A request stays all or nothing of its own.

use tokio::sync::{mpsc, oneshot};

use super::append::{AppendOutcome, Request, append_all};
use crate::Error;
use crate::db::{Db, Dialect};

/// Requests that may wait; one more is answered `Unavailable`.
const QUEUE: usize = 2048;
/// Bounds of one transaction.
const MAX_REQUESTS: usize = 256;
const MAX_EVENTS: usize = 1_000;
const MAX_BYTES: usize = 4 * 1024 * 1024;

type Answer = Result<Vec<AppendOutcome>, Error>;

struct Waiting {
    request: Request,
    answer: oneshot::Sender<Answer>,
}

/// The way to the writers.
#[derive(Clone, Debug)]
pub(crate) struct Appender {
    db: Db,
    /// None: each request has a transaction of its own.
    queue: Option<mpsc::Sender<Waiting>>,
}

impl Appender {
    /// Starts the writers: two on PostgreSQL, so that one can collect while the other commits; one on SQLite.
    pub(crate) fn start(db: &Db, grouped: bool) -> Self {
        if !grouped {
            return Self { db: db.clone(), queue: None };
        }
        let (queue, waiting) = mpsc::channel(QUEUE);
        let waiting = std::sync::Arc::new(tokio::sync::Mutex::new(waiting));
        let writers = if db.dialect() == Dialect::Postgres { 2 } else { 1 };
        for _ in 0..writers {
            let (db, waiting) = (db.clone(), std::sync::Arc::clone(&waiting));
            #[expect(clippy::disallowed_methods, reason = "the writers end with the last appender")]
            tokio::spawn(async move {
                loop {
                    let batch = collect(&mut *waiting.lock().await).await;
                    if batch.is_empty() {
                        break;
                    }
                    write(&db, batch).await;
                }
            });
        }
        Self { db: db.clone(), queue: Some(queue) }
    }

    /// How many requests wait in this process.
    pub(super) fn waiting(&self) -> i64 {
        self.queue.as_ref().map_or(0, |q| i64::try_from(q.max_capacity() - q.capacity()).unwrap_or(i64::MAX))
    }

    pub(super) async fn append(&self, request: Request) -> Answer {
        let Some(queue) = &self.queue else {
            return alone(&self.db, request).await;
        };
        let (answer, result) = oneshot::channel();
        queue
            .try_send(Waiting { request, answer })
            .map_err(|_| Error::Unavailable("too many appends are waiting".into()))?;
        result.await.map_err(|_| Error::Panicked("an appending writer ended".into()))?
    }
}

/// What has queued, within bounds; empty when no more will come.
async fn collect(waiting: &mut mpsc::Receiver<Waiting>) -> Vec<Waiting> {
    let Some(first) = waiting.recv().await else { return Vec::new() };
    let (mut events, mut bytes) = size(&first.request);
    let mut batch = vec![first];
    while batch.len() < MAX_REQUESTS && events < MAX_EVENTS && bytes < MAX_BYTES {
        let Ok(next) = waiting.try_recv() else { break };
        let (n, b) = size(&next.request);
        events += n;
        bytes += b;
        batch.push(next);
    }
    batch
}

fn size(request: &Request) -> (usize, usize) {
    (request.drafts.len(), request.drafts.iter().map(|d| d.payload.len()).sum())
}

async fn write(db: &Db, batch: Vec<Waiting>) {
    let (requests, answers): (Vec<_>, Vec<_>) = batch.into_iter().map(|w| (w.request, w.answer)).unzip();
    let several = requests.len() > 1;
    let outcomes = match append_all(db, requests.clone()).await {
        Ok(outcomes) => outcomes,
        // Something of one request ended the transaction: each tries alone, so that only that one fails. What may
        // have been committed must not be tried again.
        Err(Error::OutcomeUnknown) => requests.iter().map(|_| Err(Error::OutcomeUnknown)).collect(),
        Err(error) if several && !matches!(error, Error::Unavailable(_)) => {
            let mut outcomes = Vec::with_capacity(requests.len());
            for request in requests {
                outcomes.push(alone(db, request).await);
            }
            outcomes
        }
        Err(error) => {
            let text = error.to_string();
            let unavailable = matches!(error, Error::Unavailable(_));
            let mut first = Some(error);
            let mut again =
                || if unavailable { Error::Unavailable(text.clone()) } else { Error::Database(text.clone()) };
            requests.iter().map(|_| Err(first.take().unwrap_or_else(&mut again))).collect()
        }
    };
    for (answer, outcome) in answers.into_iter().zip(outcomes) {
        // A request whose caller has gone is appended all the same.
        let _gone = answer.send(outcome);
    }
}

async fn alone(db: &Db, request: Request) -> Answer {
    append_all(db, vec![request])
        .await?
        .pop()
        .unwrap_or_else(|| Err(Error::Corrupt("an append without an outcome".into())))
}
