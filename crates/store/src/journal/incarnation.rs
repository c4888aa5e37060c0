//! Incarnations: whether positions that were handed out still mean what they meant.
//!
//! A database that is put back from a copy, or taken over by a standby that lacked its last commits, goes on with
//! positions that readers have already passed. So what the journal runs on is compared whenever it is met, and a change
//! opens an incarnation that begins at the present head. A cursor of an earlier one is good as long as it lies at or
//! below the start of every later one: a clean promotion keeps all cursors, and after a loss they are an error, never a
//! gap.

use courant_api::Cursor;

use super::Position;
use crate::Error;
use crate::change::fresh_id;
use crate::db::{Db, Tx, params, statements};

/// Incarnations that are remembered; each start of an embedded server opens one.
pub(crate) const KEPT: i64 = 10_000;

statements! { "incarnation":
    IDENTITY only Postgres = "SELECT i.identity FROM journal j JOIN journal_incarnation i ON i.tag = j.incarnation";
    LOCK only Postgres = "SELECT id FROM journal FOR UPDATE";
    IDENTIFY only Postgres = "UPDATE journal_incarnation SET identity = $1
        WHERE identity IS NULL AND tag = (SELECT incarnation FROM journal)";
    // Opens one of tag $1, unless the present one was opened on the same database. An embedded database has no identity.
    OPEN = "INSERT INTO journal_incarnation (number, tag, start_seq, identity)
        SELECT i.number + 1, $1, CASE WHEN m.seq > j.deleted_seq THEN m.seq ELSE j.deleted_seq END, CAST($2 AS text)
        FROM journal j JOIN journal_incarnation i ON i.tag = j.incarnation,
            (SELECT coalesce(max(e.seq), 0) AS seq FROM event e)
            AS m
        WHERE CAST($2 AS text) IS NULL OR i.identity <> CAST($2 AS text)";
    SWITCH = "UPDATE journal SET incarnation = $1 WHERE EXISTS (SELECT 1 FROM journal_incarnation WHERE tag = $1)";
    FORGET = "DELETE FROM journal_incarnation WHERE number <= (SELECT max(number) FROM journal_incarnation) - $1";
    // Where the incarnations after the one of this tag began; none when it is unknown or the last.
    LATER = "SELECT min(l.start_seq) FROM journal_incarnation o JOIN journal_incarnation l ON l.number > o.number
        WHERE o.tag = $1";
}

/// A tag for a new incarnation; two copies of one database must not draw the same.
pub(crate) fn fresh_tag() -> u32 {
    let bytes = fresh_id().into_bytes();
    // The end of such an id is random.
    u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]])
}

/// Opens an incarnation for a server that starts on an embedded database: its file may have been put back from a copy
/// while nobody ran.
pub(crate) async fn open_embedded(db: &Db) -> Result<(), Error> {
    let done = db.write(fresh_tag(), |tx, tag| {
        Box::pin(async move {
            tx.execute(&OPEN, params![*tag, None::<String>]).await?;
            tx.execute(&SWITCH, params![*tag]).await?;
            tx.execute(&FORGET, params![KEPT]).await
        })
    });
    done.await.map(|_| ())
}

/// That the cursor of an earlier incarnation still means its position.
pub(super) async fn check(tx: &mut Tx, cursor: Cursor) -> Result<Position, Error> {
    let start: Option<Position> = tx.query_one(&LATER, params![cursor.incarnation]).await?.get(0)?;
    if start.is_some_and(|start| cursor.seq <= start) { Ok(cursor.seq) } else { Err(Error::CursorFromOtherJournal) }
}
