//! Servers on this database: who is alive, and which encryption keys they need.

use courant_api::Timestamp;
use uuid::Uuid;

use crate::change::fresh_id;
use crate::db::{Dialect, params, statements};
use crate::{Error, Store};

/// A server whose heartbeat is older is gone.
pub(crate) const GONE_AFTER_US: i64 = 10_000_000;
/// A gone server's row is kept this long, for people to see.
const FORGOTTEN_AFTER_US: i64 = 3_600_000_000;

statements! { "servers":
    REGISTER = "INSERT INTO server (id, started_at, heartbeat_at) VALUES ($1, $2, $2)";
    BEAT = "UPDATE server SET heartbeat_at = $2 WHERE id = $1";
    LEAVE = "DELETE FROM server WHERE id = $1";
    FORGET = "DELETE FROM server WHERE heartbeat_at < $1";
    KEYS = "SELECT id, check_value FROM encryption_key ORDER BY id";
    KEY_ADD = "INSERT INTO encryption_key (id, check_value) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
    KEY_FORGET = "DELETE FROM encryption_key WHERE id = $1";
}

impl Store {
    /// Enters a server. On SQLite, where there is one, all others are thereby gone.
    pub async fn server_register(&self, now: Timestamp) -> Result<Uuid, Error> {
        let id = fresh_id();
        self.db
            .write((id, now), |tx, (id, now)| {
                Box::pin(async move {
                    let others =
                        if tx.dialect() == Dialect::Sqlite { i64::MAX } else { now.micros() - FORGOTTEN_AFTER_US };
                    tx.execute(&FORGET, params![others]).await?;
                    tx.execute(&REGISTER, params![*id, *now]).await
                })
            })
            .await?;
        Ok(id)
    }

    /// Says that a server lives; false when its row is gone and it must register again.
    pub async fn server_beat(&self, id: Uuid, now: Timestamp) -> Result<bool, Error> {
        let done = self
            .db
            .write((id, now), |tx, (id, now)| Box::pin(async move { tx.execute(&BEAT, params![*id, *now]).await }));
        Ok(done.await?.value == 1)
    }

    /// Takes a server off: it has ended in order.
    pub async fn server_leave(&self, id: Uuid) -> Result<(), Error> {
        let done = self.db.write(id, |tx, id| Box::pin(async move { tx.execute(&LEAVE, params![*id]).await }));
        done.await.map(|_| ())
    }

    /// The encryption keys that this database needs, each with the value that proves it.
    pub async fn encryption_keys(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        self.db
            .read((), |tx, ()| {
                Box::pin(async move {
                    let rows = tx.query(&KEYS, params![]).await?;
                    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
                })
            })
            .await
    }

    /// Forgets a key that nothing is sealed with any more.
    pub async fn encryption_key_forget(&self, id: String) -> Result<(), Error> {
        let done =
            self.db.write(id, |tx, id| Box::pin(async move { tx.execute(&KEY_FORGET, params![id.as_str()]).await }));
        done.await.map(|_| ())
    }

    /// Notes that this database needs a key.
    pub async fn encryption_key_add(&self, id: String, check_value: Vec<u8>) -> Result<(), Error> {
        let done = self.db.write((id, check_value), |tx, (id, check)| {
            Box::pin(async move { tx.execute(&KEY_ADD, params![id, check.as_slice()]).await })
        });
        done.await.map(|_| ())
    }
}
