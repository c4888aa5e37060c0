//! Leases: consumers that retention waits for until their lease ends.
//!
//! Reading never looks here, and a lease that has ended must hold nothing back. A lease is put under the lock that the
//! batches of a prune take, so it stands before a batch or after it and never within.

use courant_api::events::EventType;
use courant_api::events::consumer::{CONSUMER_REGISTERED, CONSUMER_RELEASED, ConsumerChange};
use courant_api::operations::{ConsumerView, MAX_LEASES};
use courant_api::{Cursor, Timestamp};
use courant_core::place::Lies;

use super::retention::lock;
use super::{EventQuery, Start};
use crate::change::Change;
use crate::db::{Tx, params, statements};
use crate::{Error, Store};

statements! { "lease":
    OTHERS = "SELECT count(*) FROM consumer_lease WHERE tenant_id = $1 AND name <> $2";
    FORGET = "DELETE FROM consumer_lease WHERE tenant_id = $1 AND expires_at <= $2";
    PUT = "INSERT INTO consumer_lease (tenant_id, name, seq, expires_at, updated_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (tenant_id, name) DO UPDATE SET seq = excluded.seq, expires_at = excluded.expires_at,
            updated_at = excluded.updated_at";
    UNTIL = "SELECT expires_at FROM consumer_lease WHERE tenant_id = $1 AND name = $2";
    DELETE = "DELETE FROM consumer_lease WHERE tenant_id = $1 AND name = $2 RETURNING expires_at";
}

fn tell(
    tx: &mut Tx,
    change: &Change,
    kind: &EventType<ConsumerChange>,
    name: &str,
    expires_at: Timestamp,
) -> Result<(), Error> {
    let payload = ConsumerChange { name: name.to_owned(), expires_at };
    tx.append(change.event(kind, name, Lies::NOWHERE, &payload)?);
    Ok(())
}

impl Store {
    /// Has retention wait for a consumer that stands at a cursor. The cursor is judged as reading after it would be. That it
    /// waits is told once, not at every renewal.
    pub async fn lease_put(
        &self,
        change: Change,
        name: String,
        cursor: Cursor,
        expires_at: Timestamp,
    ) -> Result<ConsumerView, Error> {
        let tenant = change.tenant_id;
        let query = EventQuery {
            prefixes: Vec::new(),
            workspace_id: None,
            entity_type: None,
            entity_id: None,
            start: Start::After(cursor),
            limit: 1,
        };
        self.event_page(tenant, query).await?;
        let input = (self.clone(), name, cursor.seq, expires_at);
        let done = self.db.write((change, input), |tx, (change, (store, name, seq, expires_at))| {
            Box::pin(async move {
                let (tenant, now) = (change.tenant_id, change.now);
                let floor = lock(tx, tenant).await?;
                if *seq < floor {
                    return Err(Error::CursorBelowFloor { floor: store.journal_cursor(tenant, floor) });
                }
                let mut others: i64 = tx.query_one(&OTHERS, params![tenant, name]).await?.get(0)?;
                if others >= MAX_LEASES {
                    others -= i64::try_from(tx.execute(&FORGET, params![tenant, now]).await?).unwrap_or(0);
                }
                if others >= MAX_LEASES {
                    return Err(Error::Conflict(format!("the tenant has {MAX_LEASES} consumers already")));
                }
                let until = tx
                    .query_opt(&UNTIL, params![tenant, name])
                    .await?
                    .map(|row| row.get::<Timestamp>(0))
                    .transpose()?;
                tx.execute(&PUT, params![tenant, name, *seq, *expires_at, now]).await?;
                if until.is_none_or(|until| until <= now) {
                    tell(tx, change, &CONSUMER_REGISTERED, name, *expires_at)?;
                }
                let cursor = store.journal_cursor(tenant, *seq);
                Ok(ConsumerView { name: name.clone(), cursor, expires_at: *expires_at })
            })
        });
        Ok(done.await?.value)
    }

    /// Has retention wait for a consumer no longer.
    pub async fn lease_delete(&self, change: Change, name: String) -> Result<(), Error> {
        let done = self.db.write((change, name), |tx, (change, name)| {
            Box::pin(async move {
                let row = tx.query_opt(&DELETE, params![change.tenant_id, name]).await?;
                let until = row.ok_or(Error::NotFound("consumer"))?.get(0)?;
                tell(tx, change, &CONSUMER_RELEASED, name, until)
            })
        });
        done.await.map(|_| ())
    }
}
