//! The texts of pages.
//!
//! Each text reads in one snapshot what a page consists of: the journal's incarnation and the tenant's floor (the first two
//! columns of every row, also of the one row without an event), the subtree of a workspace, and the events. Rows come in no
//! particular order.
//!
//! A filter is read along one axis: ordered ranges of the types that its prefixes match, of the workspaces of its subtree,
//! of one entity, or of the whole tenant. What the axis does not judge is judged row by row. Each range is read up to a bound,
//! and rows count only up to where every range has been read: the *reach*.
//!
//! | parameter | meaning |
//! |---|---|
//! | `$1` | tenant |
//! | `$2`, `$3` | events with `$2 < seq <= $3` |
//! | `$4` | most events |
//! | `$5` | most rows of one range |

use super::event_columns;
use crate::db::statements;

/// `subtree(id)`: the workspace $root with all below it.
macro_rules! subtree {
    ($root:literal) => {
        concat!(
            "subtree(id) AS (
                SELECT w.id FROM workspace w WHERE w.tenant_id = $1 AND w.id = ",
            $root,
            "
                UNION
                SELECT w.id FROM subtree s JOIN workspace w ON w.tenant_id = $1 AND w.parent_id = s.id)"
        )
    };
}
pub(crate) use subtree;

/// Whether ($whether) types are filtered, and by which prefixes. A prefix is compared as text, so `_` and `%` are letters.
macro_rules! types_match {
    ($whether:literal, $prefixes:literal) => {
        concat!(
            "(NOT $",
            $whether,
            " OR EXISTS (SELECT 1 FROM {texts $",
            $prefixes,
            "} p WHERE substr(s.type, 1, length(p.value)) = p.value))"
        )
    };
}

macro_rules! workspace_matches {
    ($whether:literal) => {
        concat!("(NOT $", $whether, " OR s.workspace_id IN (SELECT t.id FROM subtree t))")
    };
}

macro_rules! entity_matches {
    ($whether:literal, $entity_type:literal) => {
        concat!("(NOT $", $whether, " OR s.entity_type = $", $entity_type, ")")
    };
}

/// The page's own columns, and the events of `matched(seq)`.
macro_rules! page_of {
    ($columns:literal) => {
        concat!(
            " SELECT j.incarnation, coalesce(t.floor_seq, 0), ",
            $columns,
            ", ",
            event_columns!(),
            " FROM journal j
                LEFT JOIN tenant_journal t ON t.tenant_id = $1
                CROSS JOIN reach r
                LEFT JOIN matched m ON TRUE
                LEFT JOIN event e ON e.seq = m.seq"
        )
    };
}

macro_rules! plain {
    ($order:literal) => {
        concat!(
            "WITH matched AS (
                SELECT * FROM event s WHERE s.tenant_id = $1 AND s.seq > $2 AND s.seq <= $3
                ORDER BY s.seq ",
            $order,
            " LIMIT $4)
            SELECT j.incarnation, coalesce(t.floor_seq, 0), ",
            event_columns!(),
            " FROM journal j
                LEFT JOIN tenant_journal t ON t.tenant_id = $1
                LEFT JOIN matched e ON TRUE"
        )
    };
}

/// One range, `$range`. The third column says how many rows were looked at, the fourth where the last of them stands.
macro_rules! walk {
    ($range:literal, $order:literal, $last:literal) => {
        concat!(
            "WITH RECURSIVE ",
            subtree!("$9"),
            ", scanned AS MATERIALIZED (
                SELECT s.seq, s.type, s.entity_type, s.workspace_id FROM event s
                WHERE s.tenant_id = $1 AND ",
            $range,
            " AND s.seq > $2 AND s.seq <= $3
                ORDER BY s.seq ",
            $order,
            " LIMIT $5
            ), matched AS (
                SELECT s.seq FROM scanned s WHERE ",
            types_match!("6", "7"),
            " AND ",
            workspace_matches!("8"),
            " AND ",
            entity_matches!("10", "11"),
            " ORDER BY s.seq ",
            $order,
            " LIMIT $4
            ), reach AS (SELECT count(*) AS looked_at, ",
            $last,
            "(seq) AS last FROM scanned)",
            page_of!("r.looked_at, r.last")
        )
    };
}

/// A range of each key. The third column says whether there are more keys than are read side by side, and then no range is
/// read at all; the fourth is the reach, null when every range was read to its end.
///
/// What an axis leaves to be judged is asked row by row by a scalar subquery: instead of an EXISTS, PostgreSQL may hash the
/// whole journal.
macro_rules! keyed {
    ($keys:expr, $on:literal, $rest:expr, $order:literal, $last:literal, $first:literal, $within:literal) => {
        concat!(
            "WITH RECURSIVE ",
            $keys,
            ", few AS MATERIALIZED (
                SELECT k.key FROM keys k WHERE (SELECT count(*) FROM keys) <= 50
            ), ranged AS MATERIALIZED (
                SELECT k.key, r.value AS seq FROM few k CROSS JOIN {each seq}
                    SELECT s.seq FROM event s
                    WHERE s.tenant_id = $1 AND ",
            $on,
            " = k.key AND s.seq > $2 AND s.seq <= $3
                    ORDER BY s.seq ",
            $order,
            " LIMIT $5 {end each} r
            ), reach AS MATERIALIZED (
                SELECT ",
            $first,
            "(c.last) AS seq FROM (SELECT ",
            $last,
            "(g.seq) AS last FROM ranged g GROUP BY g.key HAVING count(*) = $5) c
            ), matched AS (
                SELECT g.seq FROM ranged g, reach c
                WHERE (c.seq IS NULL OR g.seq ",
            $within,
            " c.seq) AND ",
            $rest,
            " ORDER BY g.seq ",
            $order,
            " LIMIT $4)",
            page_of!("(SELECT count(*) FROM keys) > 50, r.seq")
        )
    };
}

/// Ranges of the types in the journal that begin with one of $6; found by leaping from one type to the next in the index.
/// Type names are of lower-case letters, digits, `_` and `.`, all of which sort before `~`.
macro_rules! by_type {
    ($order:literal, $last:literal, $first:literal, $within:literal) => {
        keyed!(
            concat!(
                subtree!("$9"),
                ", types(prefix, name) AS (
                    SELECT p.value, (SELECT s.type FROM event s WHERE s.tenant_id = $1
                        AND s.type >= p.value AND s.type < p.value || '~' ORDER BY s.type LIMIT 1)
                    FROM {texts $6} p
                    UNION ALL
                    SELECT f.prefix, (SELECT s.type FROM event s WHERE s.tenant_id = $1
                        AND s.type > f.name AND s.type < f.prefix || '~' ORDER BY s.type LIMIT 1)
                    FROM types f WHERE f.name IS NOT NULL
                ), keys AS MATERIALIZED (SELECT DISTINCT f.name AS key FROM types f WHERE f.name IS NOT NULL)"
            ),
            "s.type",
            concat!(
                "(NOT $7 OR (SELECT ",
                workspace_matches!("8"),
                " AND ",
                entity_matches!("10", "11"),
                " FROM event s WHERE s.seq = g.seq))"
            ),
            $order,
            $last,
            $first,
            $within
        )
    };
}

/// Ranges of the workspaces of the subtree of $6.
macro_rules! by_workspace {
    ($order:literal, $last:literal, $first:literal, $within:literal) => {
        keyed!(
            concat!(subtree!("$6"), ", keys AS MATERIALIZED (SELECT s.id AS key FROM subtree s)"),
            "s.workspace_id",
            concat!(
                "(NOT $7 OR (SELECT ",
                types_match!("8", "9"),
                " AND ",
                entity_matches!("10", "11"),
                " FROM event s WHERE s.seq = g.seq))"
            ),
            $order,
            $last,
            $first,
            $within
        )
    };
}

statements! { "journal":
    PLAIN = plain!("ASC");
    PLAIN_BACK = plain!("DESC");
    WALK = walk!("true", "ASC", "max");
    WALK_BACK = walk!("true", "DESC", "min");
    ENTITY = walk!("s.entity_type = $11 AND s.entity_id = $12", "ASC", "max");
    ENTITY_BACK = walk!("s.entity_type = $11 AND s.entity_id = $12", "DESC", "min");
    BY_TYPE = by_type!("ASC", "max", "min", "<=");
    BY_TYPE_BACK = by_type!("DESC", "min", "max", ">=");
    BY_WORKSPACE = by_workspace!("ASC", "max", "min", "<=");
    BY_WORKSPACE_BACK = by_workspace!("DESC", "min", "max", ">=");
    // A page that need not look at any event.
    FLOOR = "SELECT j.incarnation, coalesce((SELECT t.floor_seq FROM tenant_journal t WHERE t.tenant_id = $1), 0)
        FROM journal j";
    WORKSPACE_EXISTS = "SELECT id FROM workspace WHERE tenant_id = $1 AND id = $2";
    BY_ID = concat!("SELECT ", event_columns!(), " FROM event e WHERE e.tenant_id = $1 AND e.id = $2 AND e.seq <= $3");
    // The greatest position that was ever durable: what a cursor may not lie ahead of.
    GREATEST = "SELECT j.incarnation, CASE WHEN m.seq > j.deleted_seq THEN m.seq ELSE j.deleted_seq END
        FROM journal j, (SELECT coalesce(max(e.seq), 0) AS seq FROM event e) m";
    // The first event after $2, up to $3.
    NEXT_TIME = "SELECT seq, occurred_at FROM event
        WHERE tenant_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT 1";
    FIRST_SINCE = "SELECT seq FROM event
        WHERE tenant_id = $1 AND seq > $2 AND seq <= $3 AND occurred_at >= $4 ORDER BY seq LIMIT 1";
    // Every tenant's events; also one row without an event.
    SCAN = concat!(
        "SELECT j.incarnation, ",
        event_columns!(),
        " FROM journal j LEFT JOIN (
            SELECT * FROM event s WHERE s.seq > $1 AND s.seq <= $2 ORDER BY s.seq LIMIT $3) e ON TRUE"
    );
}
