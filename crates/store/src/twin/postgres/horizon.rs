//! Differs because transactions commit in another order than they drew their positions in.

use crate::db::{Dialect, Statement};

/// Which journal this is, and its horizon: the greatest committed position at or below the `L` of every append that has
/// not ended. One READ COMMITTED statement, whose snapshot is older than its look at the locks; a page up to the horizon
/// must be a later statement. While an append holds the horizon, the greatest committed position is told, too; finding it
/// means walking over what the append has written, so it is left out otherwise.
///
/// Why it holds: the horizon h is committed in this snapshot and h ≤ every held L. A position s < h was drawn, and so
/// locked, earlier. When the locks are looked at it is either held, then L < s < h, which cannot be, or ended, and so
/// settled in any later snapshot. Never the sequence's last value instead: one that a rolled-back transaction drew is
/// not durable and may be drawn again after a crash.
pub(crate) static STATE: Statement = Statement::only(
    "horizon.postgres",
    Dialect::Postgres,
    "WITH held AS MATERIALIZED (
        SELECT min(((l.classid::bigint & 65535) << 32) | l.objid::bigint) AS watermark
        FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint >> 16) = 19022
            AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    )
    SELECT j.id, j.incarnation,
        greatest(j.deleted_seq, (
            SELECT max(e.seq) FROM event e
            WHERE e.seq <= coalesce((SELECT h.watermark FROM held h), 9223372036854775807))),
        CASE WHEN (SELECT h.watermark FROM held h) IS NULL THEN NULL
            ELSE greatest(j.deleted_seq, (SELECT max(e.seq) FROM event e)) END
    FROM journal j",
);
