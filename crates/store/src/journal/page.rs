//! Reading by cursor.
//!
//! One statement reads one page: the subtree of a workspace and the events are seen in one snapshot, and nothing that
//! was cached decides what is left out. A filtered page walks the tenant's events in order, at most [`WALK_ROWS`] a
//! statement and [`WALKS`] statements a page, and hands out the cursor it has proven.

use courant_api::event::EventPage;
use courant_api::{Cursor, Event, TenantId, Timestamp, WorkspaceId};

use super::{Position, State, event, event_columns, state};
use crate::db::{Statement, Tx, Value, params};
use crate::{Error, Store, bound, count};

/// Events that one statement of a filtered page looks at.
const WALK_ROWS: i64 = 10_000;
/// How far the order of times may differ from that of positions.
const DISORDER_US: i64 = 60_000_000;
/// Statements of one filtered page.
const WALKS: usize = 4;

/// Which events, and from where.
#[derive(Clone, Debug)]
pub struct EventQuery {
    /// Type prefixes; none for all types.
    pub prefixes: Vec<String>,
    /// A workspace with all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Kind of entity.
    pub entity_type: Option<String>,
    /// One entity; only with its kind.
    pub entity_id: Option<String>,
    /// Where to begin.
    pub start: Start,
    /// Most events in the page.
    pub limit: i64,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// At the first retained event.
    First,
    /// After a cursor.
    After(Cursor),
    /// At the newest `limit` matching events.
    Tail,
    /// At the `limit` matching events just before the position of a cursor.
    Before(Cursor),
    /// At the first event that was appended at or after a time.
    Since(Timestamp),
}

/// A page for the server's own consumers: every tenant's events.
#[derive(Clone, Debug)]
pub struct ScanBatch {
    /// Events in journal order.
    pub events: Vec<Event>,
    /// Where to read on.
    pub next: Position,
    /// Whether more is readable now.
    pub has_more: bool,
}

macro_rules! subtree {
    ($root:literal) => {
        concat!(
            "RECURSIVE subtree(id) AS (
                SELECT w.id FROM workspace w WHERE w.tenant_id = $1 AND w.id = ",
            $root,
            "
                UNION
                SELECT w.id FROM subtree s JOIN workspace w ON w.tenant_id = $1 AND w.parent_id = s.id)"
        )
    };
}

/// $5 and $6: whether types are filtered, and their prefixes; $7 and $8: whether a workspace is, and which. A prefix
/// is compared as text, so `_` and `%` are letters.
macro_rules! matching {
    ($table:literal) => {
        concat!(
            "(NOT $5 OR EXISTS (SELECT 1 FROM {texts $6} p WHERE substr(",
            $table,
            ".type, 1, length(p.value)) = p.value))
             AND (NOT $7 OR ",
            $table,
            ".workspace_id IN (SELECT id FROM subtree))"
        )
    };
}

macro_rules! plain {
    ($order:literal) => {
        concat!(
            "SELECT ",
            event_columns!(),
            " FROM event e WHERE e.tenant_id = $1 AND e.seq > $2 AND e.seq <= $3
            ORDER BY e.seq ",
            $order,
            " LIMIT $4"
        )
    };
}

macro_rules! entity {
    ($order:literal) => {
        concat!(
            "WITH ",
            subtree!("$8"),
            " SELECT ",
            event_columns!(),
            " FROM event e
            WHERE e.tenant_id = $1 AND e.entity_type = $9 AND e.entity_id = $10 AND e.seq > $2 AND e.seq <= $3
                AND ",
            matching!("e"),
            "
            ORDER BY e.seq ",
            $order,
            " LIMIT $4"
        )
    };
}

/// The first two columns say how many events were looked at and where the last of them stands; they are there on a
/// page without a match, too.
macro_rules! walk {
    ($order:literal, $last:literal) => {
        concat!(
            "WITH ",
            subtree!("$8"),
            ", scanned AS MATERIALIZED (
                SELECT s.seq, s.type, s.entity_type, s.workspace_id FROM event s
                WHERE s.tenant_id = $1 AND s.seq > $2 AND s.seq <= $3 ORDER BY s.seq ",
            $order,
            " LIMIT $11
            ), matched AS (
                SELECT s.seq FROM scanned s WHERE ",
            matching!("s"),
            " AND (NOT $9 OR s.entity_type = $10)
                ORDER BY s.seq ",
            $order,
            " LIMIT $4
            ), reach AS (SELECT count(*) AS looked_at, ",
            $last,
            "(seq) AS last FROM scanned)
            SELECT r.looked_at, r.last, ",
            event_columns!(),
            " FROM reach r
                LEFT JOIN matched m ON TRUE LEFT JOIN event e ON e.seq = m.seq
            ORDER BY e.seq ",
            $order
        )
    };
}

pub(super) static PLAIN: Statement = Statement::new("journal.PLAIN", plain!("ASC"));
pub(super) static PLAIN_BACK: Statement = Statement::new("journal.PLAIN_BACK", plain!("DESC"));
pub(super) static ENTITY: Statement = Statement::new("journal.ENTITY", entity!("ASC"));
pub(super) static ENTITY_BACK: Statement = Statement::new("journal.ENTITY_BACK", entity!("DESC"));
pub(super) static WALK: Statement = Statement::new("journal.WALK", walk!("ASC", "max"));
pub(super) static WALK_BACK: Statement = Statement::new("journal.WALK_BACK", walk!("DESC", "min"));
pub(super) static WORKSPACE_EXISTS: Statement =
    Statement::new("journal.WORKSPACE_EXISTS", "SELECT id FROM workspace WHERE tenant_id = $1 AND id = $2");
/// The greatest position of the tenant that retention has deleted.
pub(super) static FLOOR: Statement = Statement::new(
    "journal.FLOOR",
    "SELECT coalesce((SELECT t.floor_seq FROM tenant_journal t WHERE t.tenant_id = $1), 0) FROM journal",
);
pub(super) static BY_ID: Statement = Statement::new(
    "journal.BY_ID",
    concat!("SELECT ", event_columns!(), " FROM event e WHERE e.tenant_id = $1 AND e.id = $2 AND e.seq <= $3"),
);
/// The greatest position that was ever durable: what a cursor may not lie ahead of.
pub(super) static GREATEST: Statement = Statement::new(
    "journal.GREATEST",
    "SELECT CASE WHEN m.seq > j.deleted_seq THEN m.seq ELSE j.deleted_seq END
    FROM journal j, (SELECT coalesce(max(e.seq), 0) AS seq FROM event e) m",
);
/// The first event after $2, up to $3.
pub(super) static NEXT_TIME: Statement = Statement::new(
    "journal.NEXT_TIME",
    "SELECT seq, occurred_at FROM event WHERE tenant_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT 1",
);
pub(super) static FIRST_SINCE: Statement = Statement::new(
    "journal.FIRST_SINCE",
    "SELECT seq FROM event WHERE tenant_id = $1 AND seq > $2 AND seq <= $3 AND occurred_at >= $4 ORDER BY seq LIMIT 1",
);
pub(super) static SCAN: Statement = Statement::new(
    "journal.SCAN",
    concat!("SELECT ", event_columns!(), " FROM event e WHERE e.seq > $1 AND e.seq <= $2 ORDER BY e.seq LIMIT $3"),
);

/// Events of one statement, and how far it looked.
struct Found {
    events: Vec<Event>,
    /// Where to go on when the statement looked at all it may; none when it saw everything.
    stopped_at: Option<Position>,
}

impl Store {
    /// A page of the tenant's journal.
    pub async fn event_page(&self, tenant: TenantId, query: EventQuery) -> Result<EventPage, Error> {
        self.db.read((tenant, query), |tx, (tenant, query)| Box::pin(page(tx, *tenant, query))).await
    }

    /// What every tenant appended after `after`.
    pub async fn journal_scan(&self, after: Position, limit: i64) -> Result<ScanBatch, Error> {
        self.db
            .read((after, limit), |tx, (after, limit)| {
                Box::pin(async move {
                    let State { identity, horizon, .. } = state(tx).await?;
                    let rows = tx.query(&SCAN, params![*after, horizon, *limit + 1]).await?;
                    let has_more = count(&rows) > *limit;
                    let events: Vec<_> =
                        rows.iter().take(bound(*limit)).map(|row| event(row, 0, identity)).collect::<Result<_, _>>()?;
                    let last = events.last().map(|e| e.sequence);
                    let next = if has_more { last.unwrap_or(*after) } else { horizon.max(*after) };
                    Ok(ScanBatch { events, next, has_more })
                })
            })
            .await
    }
}

async fn page(tx: &mut Tx, tenant: TenantId, query: &EventQuery) -> Result<EventPage, Error> {
    let state = state(tx).await?;
    let floor: Position = tx.query_one(&FLOOR, params![tenant]).await?.get(0)?;
    if let Some(workspace) = query.workspace_id {
        tx.query_opt(&WORKSPACE_EXISTS, params![tenant, workspace]).await?.ok_or(Error::NotFound("workspace"))?;
    }
    let after = match query.start {
        Start::Tail => return tail(tx, tenant, query, state, floor).await,
        Start::Before(cursor) => {
            let before = check(tx, state, floor, tenant, cursor).await?;
            return backward(tx, tenant, query, state, floor, before).await;
        }
        Start::First => floor,
        Start::After(cursor) => check(tx, state, floor, tenant, cursor).await?,
        Start::Since(time) => since(tx, tenant, state, floor, time).await?,
    };
    forward(tx, tenant, query, state, after).await
}

/// The position of a cursor that belongs to this journal.
async fn check(
    tx: &mut Tx,
    state: State,
    floor: Position,
    tenant: TenantId,
    cursor: Cursor,
) -> Result<Position, Error> {
    if cursor != state.identity.cursor(tenant, cursor.seq) {
        return Err(Error::CursorFromOtherJournal);
    }
    if cursor.seq < floor {
        return Err(Error::CursorBelowFloor { floor: state.identity.cursor(tenant, floor).encode() });
    }
    if cursor.seq > state.horizon {
        // It may have been proven by another server, ahead of what is settled here now; but never ahead of what is
        // committed: judged by all tenants' events, in a statement that began after the request came.
        let greatest: Position = tx.query_one(&GREATEST, params![]).await?.get(0)?;
        if cursor.seq > greatest {
            return Err(Error::CursorFromOtherJournal);
        }
    }
    Ok(cursor.seq)
}

async fn forward(
    tx: &mut Tx,
    tenant: TenantId,
    query: &EventQuery,
    state: State,
    after: Position,
) -> Result<EventPage, Error> {
    let mut from = after;
    for _ in 0..WALKS {
        let found = find(tx, tenant, query, state, (from, state.horizon), query.limit + 1, false).await?;
        let mut events = found.events;
        if count(&events) > query.limit {
            events.truncate(bound(query.limit));
            let last = events.last().map_or(from, |e| e.sequence);
            return Ok(answer(tenant, state, events, last, true));
        }
        match found.stopped_at {
            None => return Ok(answer(tenant, state, events, state.horizon.max(after), false)),
            Some(reached) if !events.is_empty() => return Ok(answer(tenant, state, events, reached, true)),
            Some(reached) => from = reached,
        }
    }
    Ok(answer(tenant, state, Vec::new(), from, true))
}

/// A page that begins with its first event; the page before it ends just before that one.
fn answer(tenant: TenantId, state: State, items: Vec<Event>, next: Position, has_more: bool) -> EventPage {
    EventPage {
        prev_cursor: items.first().map(|e| e.cursor.clone()),
        next_cursor: state.identity.cursor(tenant, next).encode(),
        has_more,
        items,
    }
}

/// The matching events just before `before`, in journal order.
async fn backward(
    tx: &mut Tx,
    tenant: TenantId,
    query: &EventQuery,
    state: State,
    floor: Position,
    before: Position,
) -> Result<EventPage, Error> {
    let end = (before - 1).max(floor);
    let mut until = end.min(state.horizon);
    let mut more = true;
    let mut events: Vec<Event> = Vec::new();
    for _ in 0..WALKS {
        let found = find(tx, tenant, query, state, (floor, until), query.limit + 1, true).await?;
        events = found.events;
        match found.stopped_at {
            _ if count(&events) > query.limit => break,
            Some(reached) => until = reached - 1,
            None => more = false,
        }
        if !more || !events.is_empty() {
            break;
        }
    }
    events.truncate(bound(query.limit));
    events.reverse();
    // Where the page before this one ends: at this one's first event, or where an empty one has looked to.
    let first = events.first().map_or(until + 1, |e| e.sequence);
    Ok(EventPage {
        prev_cursor: more.then(|| state.identity.cursor(tenant, first).encode()),
        next_cursor: state.identity.cursor(tenant, end).encode(),
        has_more: more,
        items: events,
    })
}

/// The newest matching events, in journal order.
async fn tail(
    tx: &mut Tx,
    tenant: TenantId,
    query: &EventQuery,
    state: State,
    floor: Position,
) -> Result<EventPage, Error> {
    let mut newest_first: Vec<Event> = Vec::new();
    let mut until = state.horizon;
    loop {
        let wanted = query.limit - count(&newest_first);
        let found = find(tx, tenant, query, state, (floor, until), wanted, true).await?;
        newest_first.extend(found.events);
        match found.stopped_at {
            Some(reached) if count(&newest_first) < query.limit => until = reached - 1,
            _ => break,
        }
    }
    newest_first.reverse();
    Ok(answer(tenant, state, newest_first, state.horizon, false))
}

/// Where to read on for the first event appended at or after `time`.
///
/// Times follow positions but for the length of a transaction and what clocks differ by; so the position is narrowed
/// down by halves to a time well before, and from there the first event that is late enough is looked for.
async fn since(
    tx: &mut Tx,
    tenant: TenantId,
    state: State,
    floor: Position,
    time: Timestamp,
) -> Result<Position, Error> {
    let well_before = time.plus_micros(-DISORDER_US);
    let (mut low, mut high) = (floor, state.horizon);
    while low < high {
        let middle = low + (high - low) / 2;
        match tx.query_opt(&NEXT_TIME, params![tenant, middle, high]).await? {
            Some(row) if row.get::<Timestamp>(1)? < well_before => low = row.get(0)?,
            _ => high = middle,
        }
    }
    let first = tx.query_opt(&FIRST_SINCE, params![tenant, low, state.horizon, time]).await?;
    first.map_or(Ok(state.horizon), |row| Ok(row.get::<Position>(0)? - 1))
}

/// Matching events with `range.0 < seq <= range.1`, at most `limit`.
async fn find(
    tx: &mut Tx,
    tenant: TenantId,
    query: &EventQuery,
    State { identity, .. }: State,
    range: (Position, Position),
    limit: i64,
    back: bool,
) -> Result<Found, Error> {
    let mut values = params![tenant, range.0, range.1, limit].to_vec();
    let filtered = !query.prefixes.is_empty() || query.workspace_id.is_some() || query.entity_type.is_some();
    if !filtered {
        let rows = tx.query(if back { &PLAIN_BACK } else { &PLAIN }, &values).await?;
        let events = rows.iter().map(|row| event(row, 0, identity)).collect::<Result<_, _>>()?;
        return Ok(Found { events, stopped_at: None });
    }
    values.extend([
        Value::from(!query.prefixes.is_empty()),
        query.prefixes.clone().into(),
        query.workspace_id.is_some().into(),
        query.workspace_id.into(),
    ]);
    if let (Some(entity_type), Some(entity_id)) = (&query.entity_type, &query.entity_id) {
        values.extend([Value::from(entity_type), entity_id.into()]);
        let rows = tx.query(if back { &ENTITY_BACK } else { &ENTITY }, &values).await?;
        let events = rows.iter().map(|row| event(row, 0, identity)).collect::<Result<_, _>>()?;
        return Ok(Found { events, stopped_at: None });
    }
    values.extend([query.entity_type.is_some().into(), query.entity_type.as_ref().into(), WALK_ROWS.into()]);
    let rows = tx.query(if back { &WALK_BACK } else { &WALK }, &values).await?;
    let first = rows.first().ok_or_else(|| Error::Corrupt("journal walk: no row".into()))?;
    let looked_at: i64 = first.get(0)?;
    let stopped_at = if looked_at == WALK_ROWS { first.get::<Option<Position>>(1)? } else { None };
    let mut events = Vec::with_capacity(rows.len());
    for row in &rows {
        if row.get::<Option<Position>>(2)?.is_some() {
            events.push(event(row, 2, identity)?);
        }
    }
    Ok(Found { events, stopped_at })
}
