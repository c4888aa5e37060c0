//! Wake-ups between the servers of one PostgreSQL database: a LISTEN connection of its own, and one notifier on it that
//! speaks for all commits of a short while.
//!
//! A notification is a hint and never the truth: who misses one reads at its next poll. It must never be sent inside a
//! transaction that writes, for notifying takes a lock that all commits of the database share; and nothing here may
//! hold up a writer or fail a request.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use futures_util::stream::{BoxStream, Stream, StreamExt as _, poll_fn};
use futures_util::{TryFutureExt as _, future::try_join};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Socket};
use uuid::Uuid;

use super::connect::Target;
use super::{ACQUIRE_TIMEOUT, Backend, Db, Dialect, params, statements};
use crate::Error;
use crate::change::fresh_id;

/// How the database shows the connection, beside the `courant` of all others.
const APPLICATION: &str = "courant listener";
/// What a probe says before its token; a server says its id.
const PROBE: &str = "probe";

statements! { "listen":
    LISTEN only Postgres = "LISTEN courant_journal";
    NOTIFY only Postgres = "SELECT pg_notify('courant_journal', $1)";
}

/// Whether commits of other servers are heard of at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wakeups {
    /// Notifications arrive.
    Listening,
    /// They do not; readers find what others commit by looking.
    Polling {
        /// Why, in words for an operator.
        why: String,
    },
}

/// How often things happen while listening.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Least time between two notifications of one server.
    pub apart: Duration,
    /// How long the connection may take to answer, and a probe to come back.
    pub answer: Duration,
    /// Between two probes while they come back.
    pub probe: Duration,
    /// Between two probes while they do not.
    pub probe_again: Duration,
    /// The pause before a first reconnection, which doubles with each failure.
    pub reconnect: Duration,
    /// The longest such pause.
    pub reconnect_max: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            apart: Duration::from_millis(10),
            answer: Duration::from_secs(2),
            probe: Duration::from_secs(30),
            probe_again: Duration::from_mins(1),
            reconnect: Duration::from_millis(100),
            reconnect_max: Duration::from_secs(10),
        }
    }
}

impl Db {
    /// Follows how [`listen`](Self::listen) goes.
    pub(crate) fn wakeups(&self) -> watch::Receiver<Wakeups> {
        self.wakeups.subscribe()
    }

    /// Listens, and tells others of commits here, for as long as it is polled.
    pub(crate) async fn listen(&self, server: Uuid, pace: Pace) {
        match &self.backend {
            Backend::Postgres(pool) => {
                Listener { db: self, server, pace, returned: watch::Sender::new(None) }.run(pool.target()).await;
            }
            Backend::Sqlite(_) => std::future::pending().await,
        }
    }
}

struct Listener<'a> {
    db: &'a Db,
    server: Uuid,
    pace: Pace,
    /// The token of the last probe that came back.
    returned: watch::Sender<Option<Uuid>>,
}

impl Listener<'_> {
    async fn run(&self, target: &Target) {
        let mut pause = self.pace.reconnect;
        loop {
            let mut listened = false;
            if let Err(error) = self.session(target, &mut listened).await {
                self.stands(Wakeups::Polling { why: error.to_string() });
            }
            if listened {
                pause = self.pace.reconnect;
            }
            sleep(jittered(pause)).await;
            pause = (pause * 2).min(self.pace.reconnect_max);
        }
    }

    /// One connection, from its beginning to its failure.
    async fn session(&self, target: &Target, listened: &mut bool) -> Result<(), Error> {
        let (client, mut messages) = answered(ACQUIRE_TIMEOUT, connect(target)).await?;
        let hear = async {
            while let Some(message) = messages.next().await {
                if let AsyncMessage::Notification(notification) = message? {
                    self.heard(notification.payload());
                }
            }
            Err(Error::gone())
        };
        let work = async {
            self.arm(&client).await?;
            *listened = true;
            // What others have committed while nobody listened here.
            self.db.ending.wake();
            try_join(self.notify(&client), self.probe(&client)).await.map(|_| ())
        };
        tokio::select! { ended = hear => ended, ended = work => ended }
    }

    /// Makes sure that the connection listens; its answer shows that it lives.
    async fn arm(&self, client: &Client) -> Result<(), Error> {
        LISTEN.count(Dialect::Postgres);
        answered(self.pace.answer, client.batch_execute(LISTEN.text(Dialect::Postgres)).err_into()).await
    }

    fn heard(&self, payload: &str) {
        let Some((from, what)) = payload.split_once(' ') else { return };
        if from == PROBE {
            self.returned.send_replace(what.parse().ok());
        } else if from.parse().is_ok_and(|server: Uuid| server != self.server) {
            self.db.ending.wake();
        }
    }

    /// Tells others. It begins with what an earlier connection may not have told.
    async fn notify(&self, client: &Client) -> Result<(), Error> {
        let mut head = self.db.ending.head.subscribe();
        head.mark_changed();
        let mut heads = Latest::new(head, self.pace.apart);
        while let Some(head) = heads.next().await {
            NOTIFY.count(Dialect::Postgres);
            let payload = format!("{} {head}", self.server);
            let params: [(&(dyn ToSql + Sync), Type); 1] = [(&payload, Type::TEXT)];
            let sent = client.query_typed(NOTIFY.text(Dialect::Postgres), &params);
            answered(self.pace.answer, sent.err_into()).await?;
        }
        Err(Error::gone())
    }

    /// Finds out, time and again, whether notifications come through.
    async fn probe(&self, client: &Client) -> Result<(), Error> {
        loop {
            self.arm(client).await?;
            let next = match self.ask().await {
                Some(true) => {
                    if *self.db.wakeups.borrow() != Wakeups::Listening {
                        // What was lost until now.
                        self.db.ending.wake();
                        self.stands(Wakeups::Listening);
                    }
                    self.pace.probe
                }
                Some(false) => {
                    let why = "LISTEN does not work through this connection, as behind a transaction pooler";
                    self.stands(Wakeups::Polling { why: why.into() });
                    self.pace.probe_again
                }
                None => self.pace.answer,
            };
            sleep(next).await;
        }
    }

    /// Whether a probe comes back; none when it could not be sent. It leaves through another connection, for one that
    /// is sent on the listening one comes back within its own answer, which a transaction pooler lets pass.
    async fn ask(&self) -> Option<bool> {
        let token = fresh_id();
        let sent = self.db.read(format!("{PROBE} {token}"), |tx, payload| {
            Box::pin(async move { tx.query(&NOTIFY, params![payload]).await.map(|_| ()) })
        });
        let mut returned = self.returned.subscribe();
        answered(self.pace.answer, sent).await.ok()?;
        Some(timeout(self.pace.answer, returned.wait_for(|t| *t == Some(token))).await.is_ok_and(|found| found.is_ok()))
    }

    /// Notes how it stands, and says so when that is new.
    fn stands(&self, now: Wakeups) {
        self.db.wakeups.send_if_modified(|before| {
            let new = *before != now;
            *before = now;
            new
        });
    }
}

/// The latest value: at once when none was taken for `apart`, and else when that time is over. So values are taken no
/// more often than that, and the last one always is.
struct Latest<T> {
    values: watch::Receiver<T>,
    apart: Duration,
    not_before: Instant,
}

impl<T: Copy> Latest<T> {
    fn new(values: watch::Receiver<T>, apart: Duration) -> Self {
        Self { values, apart, not_before: Instant::now() }
    }

    /// The next value; none when there will be no more.
    async fn next(&mut self) -> Option<T> {
        sleep_until(self.not_before).await;
        self.values.changed().await.ok()?;
        self.not_before = Instant::now() + self.apart;
        Some(*self.values.borrow_and_update())
    }
}

async fn answered<T>(within: Duration, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |_| Error::Unavailable("the connection that listens does not answer".into());
    timeout(within, answer).await.map_err(late)?
}

type Messages = BoxStream<'static, Result<AsyncMessage, tokio_postgres::Error>>;

async fn connect(target: &Target) -> Result<(Client, Messages), Error> {
    let config = target.config(APPLICATION);
    Ok(match target.tls() {
        Some(tls) => open(&config, tls).await?,
        None => open(&config, NoTls).await?,
    })
}

async fn open<T>(config: &Config, tls: T) -> Result<(Client, Messages), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, mut connection) = config.connect(tls).await?;
    Ok((client, messages(poll_fn(move |cx| connection.poll_message(cx)))))
}

fn messages(stream: impl Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Send + 'static) -> Messages {
    stream.boxed()
}

/// Half of it to all of it, so that servers that lost their connections together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let chance = u32::try_from(RandomState::new().build_hasher().finish() % 1024).unwrap_or(0);
    pause / 2 + pause / 2048 * chance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_told_of_at_once_and_once_more_at_its_end() {
        let (head, values) = watch::channel(0);
        let (mut heads, begun) = (Latest::new(values, Duration::from_millis(10)), Instant::now());
        let mut sent = Vec::new();
        let telling = async {
            while let Some(head) = heads.next().await {
                sent.push((head, begun.elapsed().as_millis()));
            }
        };
        let commits = async {
            head.send_replace(1);
            sleep(Duration::from_millis(1)).await;
            for n in 2..=1000 {
                head.send_replace(n);
                tokio::task::yield_now().await;
            }
            // Quiet for long, and one more.
            sleep(Duration::from_secs(1)).await;
            head.send_replace(1001);
            sleep(Duration::from_secs(1)).await;
            drop(head);
        };
        tokio::join!(telling, commits);
        assert_eq!(sent, [(1, 0), (1000, 10), (1001, 1001)]);
    }

    #[tokio::test]
    async fn a_server_is_woken_by_others_and_never_by_itself_or_by_noise() {
        let database = courant_testkit::TestDatabase::sqlite();
        let db = Db::open(&crate::Options::server(database.url())).await.unwrap();
        let (own, other, token) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let listener = Listener { db: &db, server: own, pace: Pace::default(), returned: watch::Sender::new(None) };
        let mut appended = db.appended();
        for payload in [&format!("{own} 7"), &format!("probe {token}"), "", "probe", " ", "nobody 7", &own.to_string()]
        {
            listener.heard(payload);
            assert!(!appended.has_changed().unwrap(), "woken by {payload:?}");
        }
        assert_eq!(*listener.returned.borrow(), Some(token));
        for position in ["7", "0", ""] {
            listener.heard(&format!("{other} {position}"));
            assert!(appended.has_changed().unwrap());
            appended.mark_unchanged();
        }
    }

    #[test]
    fn a_pause_is_cut_by_half_at_most() {
        let pause = Duration::from_secs(10);
        for _ in 0..1000 {
            assert!((pause / 2..=pause).contains(&jittered(pause)));
        }
    }
}
