//! Reading by cursor.
//!
//! A page goes by a look at the horizon that is older than the page's own statements, and by one incarnation: a statement
//! that meets another one ends the attempt. The subtree of a workspace, the floor and the events are seen in one snapshot,
//! and nothing that was cached decides what is left out. A filtered page reads at most so many rows a statement and
//! [`STATEMENTS_A_PAGE`] statements, and hands out the cursor that it has proven.

use courant_api::event::EventPage;
use courant_api::{Cursor, Event, TenantId, Timestamp, WorkspaceId};

use super::horizon::{self, Look};
use super::texts::{
    BY_TYPE, BY_TYPE_BACK, BY_WORKSPACE, BY_WORKSPACE_BACK, ENTITY, ENTITY_BACK, FIRST_SINCE, FLOOR, GREATEST,
    NEXT_TIME, PLAIN, PLAIN_BACK, SCAN, WALK, WALK_BACK, WORKSPACE_EXISTS,
};
use super::{Position, event, incarnation};
use crate::db::{Row, Statement, Tx, Value, params};
use crate::{Error, Store, bound, count};

/// Rows that one statement looks at along one range.
const WALK_ROWS: i64 = 10_000;
/// Rows of each range when several are read side by side and must be judged one by one.
const RANGE_ROWS: i64 = 1_000;
/// How far the order of times may differ from that of positions.
const DISORDER_US: i64 = 60_000_000;
/// Statements of one filtered page.
const STATEMENTS_A_PAGE: usize = 4;
/// Attempts of a page while the database changes under it.
const ATTEMPTS: usize = 3;

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
    /// Which incarnation of the journal the positions belong to.
    pub incarnation: u32,
    /// Events in journal order.
    pub events: Vec<Event>,
    /// Where to read on.
    pub next: Position,
    /// Whether more is readable now.
    pub has_more: bool,
}

/// Events of one statement, and how far it looked.
struct Found {
    events: Vec<Event>,
    /// Where to go on when the statement looked at all it may; none when it saw everything.
    stopped_at: Option<Position>,
    /// The tenant's floor in the statement's own snapshot.
    floor: Position,
}

/// Why an attempt gave no page.
enum Fault {
    /// It met another incarnation than it began with.
    Elsewhere,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// A page about to be read.
struct Reader<'a> {
    tx: &'a mut Tx,
    tenant: TenantId,
    query: &'a EventQuery,
    look: Look,
}

impl Store {
    /// A page of the tenant's journal.
    pub async fn event_page(&self, tenant: TenantId, query: EventQuery) -> Result<EventPage, Error> {
        if let Start::After(cursor) = query.start
            && !self.is_embedded()
        {
            // A page that is full below what is proven needs no look. With fewer positions than the page may hold events it
            // cannot be.
            let proven = self.horizon.proven();
            if proven.horizon - cursor.seq > query.limit
                && let Ok(page) = self.attempt(tenant, &query, Some(proven)).await?
                && page.has_more
            {
                return Ok(page);
            }
        }
        for _ in 0..ATTEMPTS {
            let settled = self.settled().await?;
            if let Ok(page) = self.attempt(tenant, &query, settled).await? {
                return Ok(page);
            }
        }
        Err(replaced())
    }

    /// A page that goes by this look; none when it met another incarnation.
    async fn attempt(
        &self,
        tenant: TenantId,
        query: &EventQuery,
        look: Option<Look>,
    ) -> Result<Result<EventPage, ()>, Error> {
        let page = self.db.read((tenant, query.clone()), move |tx, (tenant, query)| {
            Box::pin(async move {
                let look = horizon::or_look(tx, look).await?;
                match (Reader { tx, tenant: *tenant, query, look }).page().await {
                    Ok(page) => Ok(Ok(page)),
                    Err(Fault::Elsewhere) => Ok(Err(())),
                    Err(Fault::Failed(error)) => Err(error),
                }
            })
        });
        page.await
    }

    /// What every tenant appended after `after`.
    pub async fn journal_scan(&self, after: Position, limit: i64) -> Result<ScanBatch, Error> {
        let look = self.given_look().await?;
        self.db
            .read((after, limit), move |tx, (after, limit)| {
                Box::pin(async move {
                    let look = horizon::or_look(tx, look).await?;
                    scan(tx, look, *after, *limit).await
                })
            })
            .await
    }
}

/// Every tenant's events after `after`, up to the horizon of the look.
pub(super) async fn scan(tx: &mut Tx, look: Look, after: Position, limit: i64) -> Result<ScanBatch, Error> {
    let rows = tx.query(&SCAN, params![after, look.horizon, limit + 1]).await?;
    let incarnation = look.identity.incarnation;
    if first(&rows, &SCAN)?.get::<i64>(0)? != i64::from(incarnation) {
        return Err(replaced());
    }
    let mut events = Vec::with_capacity(rows.len());
    for row in &rows {
        if row.get::<Option<Position>>(1)?.is_some() {
            events.push(event(row, 1, look.identity)?);
        }
    }
    events.sort_by_key(|e| e.sequence);
    let has_more = count(&events) > limit;
    events.truncate(bound(limit));
    let last = events.last().map(|e| e.sequence);
    let next = if has_more { last.unwrap_or(after) } else { look.horizon.max(after) };
    Ok(ScanBatch { incarnation, events, next, has_more })
}

fn replaced() -> Error {
    Error::Unavailable("the database is being replaced".into())
}

impl Reader<'_> {
    async fn page(&mut self) -> Result<EventPage, Fault> {
        if let Some(workspace) = self.query.workspace_id {
            let found = self.tx.query_opt(&WORKSPACE_EXISTS, params![self.tenant, workspace]).await?;
            found.ok_or(Error::NotFound("workspace"))?;
        }
        match self.query.start {
            Start::First => self.forward(0, false).await,
            Start::After(cursor) => {
                let after = self.check(cursor).await?;
                self.forward(after, true).await
            }
            Start::Before(cursor) => {
                let before = self.check(cursor).await?;
                self.backward(before).await
            }
            Start::Tail => self.tail().await,
            Start::Since(time) => self.since(time).await,
        }
    }

    /// The position of a cursor that belongs to this journal and does not lie ahead of it.
    async fn check(&mut self, cursor: Cursor) -> Result<Position, Fault> {
        let present = self.look.identity.cursor(self.tenant, cursor.seq);
        if cursor.journal != present.journal {
            return Err(Error::CursorFromOtherJournal.into());
        }
        if cursor.incarnation != present.incarnation {
            return Ok(incarnation::check(self.tx, cursor).await?);
        }
        if cursor.seq > self.look.horizon {
            // It may have been proven by another server, ahead of what is settled here now; but never ahead of what is
            // committed: judged by all tenants' events, in a statement that began after the request came.
            let row = self.tx.query_one(&GREATEST, params![]).await?;
            self.same_incarnation(&row)?;
            if cursor.seq > row.get::<Position>(1)? {
                return Err(Error::CursorFromOtherJournal.into());
            }
        }
        Ok(cursor.seq)
    }

    /// That a row, which begins with the incarnation, is of the journal that the page began with.
    fn same_incarnation(&self, row: &Row) -> Result<(), Fault> {
        let same = row.get::<i64>(0)? == i64::from(self.look.identity.incarnation);
        if same { Ok(()) } else { Err(Fault::Elsewhere) }
    }

    fn cursor(&self, position: Position) -> String {
        self.look.identity.cursor(self.tenant, position).encode()
    }

    /// Refuses to read after what retention has deleted.
    fn above_floor(&self, floor: Position, position: Position) -> Result<(), Fault> {
        if position < floor { Err(Error::CursorBelowFloor { floor: self.cursor(floor) }.into()) } else { Ok(()) }
    }

    /// The matching events after a position. Retention may have deleted what follows it only if the reader does not
    /// `insist` on having it.
    async fn forward(&mut self, after: Position, insist: bool) -> Result<EventPage, Fault> {
        let mut from = after;
        for _ in 0..STATEMENTS_A_PAGE {
            let found = self.find((from, self.look.horizon), self.query.limit + 1, false).await?;
            if insist {
                // What the statements before this one have not seen may be gone by now.
                self.above_floor(found.floor, from)?;
            }
            from = from.max(found.floor);
            let mut events = found.events;
            if count(&events) > self.query.limit {
                events.truncate(bound(self.query.limit));
                let last = events.last().map_or(from, |e| e.sequence);
                return Ok(self.answer(events, last, true));
            }
            match found.stopped_at {
                None => return Ok(self.answer(events, self.look.horizon.max(from), false)),
                Some(reached) if !events.is_empty() => return Ok(self.answer(events, reached, true)),
                Some(reached) => from = reached,
            }
        }
        Ok(self.answer(Vec::new(), from, true))
    }

    /// A page that begins with its first event; the page before it ends just before that one.
    fn answer(&self, items: Vec<Event>, next: Position, has_more: bool) -> EventPage {
        EventPage {
            prev_cursor: items.first().map(|e| e.cursor.clone()),
            next_cursor: self.cursor(next),
            has_more,
            items,
        }
    }

    /// The matching events just before `before`, in journal order.
    async fn backward(&mut self, before: Position) -> Result<EventPage, Fault> {
        let mut until = (before - 1).min(self.look.horizon);
        let mut more = true;
        let mut events: Vec<Event> = Vec::new();
        let mut end = until;
        for statement in 0..STATEMENTS_A_PAGE {
            let found = self.find((0, until), self.query.limit + 1, true).await?;
            if statement == 0 {
                self.above_floor(found.floor, before)?;
                end = (before - 1).max(found.floor);
            }
            events = found.events;
            match found.stopped_at {
                _ if count(&events) > self.query.limit => break,
                Some(reached) => until = reached - 1,
                None => more = false,
            }
            if !more || !events.is_empty() {
                break;
            }
        }
        events.truncate(bound(self.query.limit));
        events.reverse();
        // Where the page before this one ends: at this one's first event, or where an empty one has looked to.
        let first = events.first().map_or(until + 1, |e| e.sequence);
        Ok(EventPage {
            prev_cursor: more.then(|| self.cursor(first)),
            next_cursor: self.cursor(end),
            has_more: more,
            items: events,
        })
    }

    /// The newest matching events, in journal order.
    async fn tail(&mut self) -> Result<EventPage, Fault> {
        let mut newest_first: Vec<Event> = Vec::new();
        let mut until = self.look.horizon;
        loop {
            let wanted = self.query.limit - count(&newest_first);
            let found = self.find((0, until), wanted, true).await?;
            newest_first.extend(found.events);
            match found.stopped_at {
                Some(reached) if count(&newest_first) < self.query.limit => until = reached - 1,
                _ => break,
            }
        }
        newest_first.reverse();
        Ok(self.answer(newest_first, self.look.horizon, false))
    }

    /// From the first event appended at or after `time` on.
    ///
    /// Times follow positions but for the length of a transaction and what clocks differ by; so the position is narrowed
    /// down by halves to a time well before, and from there the first event that is late enough is looked for.
    async fn since(&mut self, time: Timestamp) -> Result<EventPage, Fault> {
        let well_before = time.plus_micros(-DISORDER_US);
        let row = self.tx.query_one(&FLOOR, params![self.tenant]).await?;
        self.same_incarnation(&row)?;
        let (mut low, mut high) = (row.get::<Position>(1)?, self.look.horizon);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.tx.query_opt(&NEXT_TIME, params![self.tenant, middle, high]).await? {
                Some(row) if row.get::<Timestamp>(1)? < well_before => low = row.get(0)?,
                _ => high = middle,
            }
        }
        let first = self.tx.query_opt(&FIRST_SINCE, params![self.tenant, low, self.look.horizon, time]).await?;
        let after = first.map_or(Ok(self.look.horizon), |row| Ok::<_, Error>(row.get::<Position>(0)? - 1))?;
        // What is deleted meanwhile was old enough to be: the page then begins at the first event that is left.
        self.forward(after, false).await
    }

    /// Matching events with `range.0 < seq <= range.1`, at most `limit`, newest first when `back`.
    async fn find(&mut self, range: (Position, Position), limit: i64, back: bool) -> Result<Found, Fault> {
        let query = self.query;
        if range.0 >= range.1 {
            let row = self.tx.query_one(&FLOOR, params![self.tenant]).await?;
            self.same_incarnation(&row)?;
            return Ok(Found { events: Vec::new(), stopped_at: None, floor: row.get(1)? });
        }
        let common = params![self.tenant, range.0, range.1, limit].to_vec();
        let (typed, placed) = (!query.prefixes.is_empty(), query.workspace_id.is_some());
        let kind = [Value::from(query.entity_type.is_some()), query.entity_type.as_ref().into()];
        if let Some(entity_id) = &query.entity_id {
            let kind = [false.into(), query.entity_type.as_ref().into(), entity_id.into()];
            return self.walk(if back { &ENTITY_BACK } else { &ENTITY }, common, &kind, back).await;
        }
        if !typed && !placed && query.entity_type.is_none() {
            let rows = self.tx.query(if back { &PLAIN_BACK } else { &PLAIN }, &common).await?;
            let (events, floor) = self.events(&rows, 2, back)?;
            return Ok(Found { events, stopped_at: None, floor });
        }
        let mut best: Option<Found> = None;
        if typed {
            let rest = placed || query.entity_type.is_some();
            let mut values = common.clone();
            values.push(if rest { limit.max(RANGE_ROWS) } else { limit }.into());
            values.extend([query.prefixes.clone().into(), rest.into(), placed.into(), query.workspace_id.into()]);
            values.extend(kind.clone());
            best = self.ranges(if back { &BY_TYPE_BACK } else { &BY_TYPE }, &values, limit, back).await?;
        }
        if placed && best.as_ref().is_none_or(|found| found.stopped_at.is_some()) {
            let rest = typed || query.entity_type.is_some();
            let mut values = common.clone();
            values.push(if rest { limit.max(RANGE_ROWS) } else { limit }.into());
            values.extend([query.workspace_id.into(), rest.into(), typed.into(), query.prefixes.clone().into()]);
            values.extend(kind.clone());
            let found =
                self.ranges(if back { &BY_WORKSPACE_BACK } else { &BY_WORKSPACE }, &values, limit, back).await?;
            best = further(best, found, back);
        }
        match best {
            Some(found) => Ok(found),
            None => self.walk(if back { &WALK_BACK } else { &WALK }, common, &kind, back).await,
        }
    }

    /// Reads ranges side by side; none when there are too many.
    async fn ranges(
        &mut self,
        statement: &'static Statement,
        values: &[Value],
        limit: i64,
        back: bool,
    ) -> Result<Option<Found>, Fault> {
        let rows = self.tx.query(statement, values).await?;
        let first = first(&rows, statement)?;
        if first.get(2)? {
            self.same_incarnation(first)?;
            return Ok(None);
        }
        let reach: Option<Position> = first.get(3)?;
        let (events, floor) = self.events(&rows, 4, back)?;
        // A page that is full ends at its last event, wherever the ranges were read to.
        let stopped_at = reach.filter(|_| count(&events) < limit);
        Ok(Some(Found { events, stopped_at, floor }))
    }

    /// Reads one range and judges every row.
    async fn walk(
        &mut self,
        statement: &'static Statement,
        mut values: Vec<Value>,
        kind: &[Value],
        back: bool,
    ) -> Result<Found, Fault> {
        let query = self.query;
        values.push(WALK_ROWS.into());
        values.extend([Value::from(!query.prefixes.is_empty()), query.prefixes.clone().into()]);
        values.extend([Value::from(query.workspace_id.is_some()), query.workspace_id.into()]);
        values.extend_from_slice(kind);
        let rows = self.tx.query(statement, &values).await?;
        let first = first(&rows, statement)?;
        let looked_at: i64 = first.get(2)?;
        let stopped_at = if looked_at == WALK_ROWS { first.get::<Option<Position>>(3)? } else { None };
        let (events, floor) = self.events(&rows, 4, back)?;
        Ok(Found { events, stopped_at, floor })
    }

    /// The events of a statement's rows, whose event columns begin at `at`, and the floor that it saw.
    fn events(&self, rows: &[Row], at: usize, back: bool) -> Result<(Vec<Event>, Position), Fault> {
        let first = rows.first().ok_or_else(|| Error::Corrupt("journal page: no row".into()))?;
        self.same_incarnation(first)?;
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            if row.get::<Option<Position>>(at)?.is_some() {
                events.push(event(row, at, self.look.identity)?);
            }
        }
        events.sort_by_key(|e| if back { -e.sequence } else { e.sequence });
        Ok((events, first.get(1)?))
    }
}

fn first<'a>(rows: &'a [Row], statement: &Statement) -> Result<&'a Row, Error> {
    rows.first().ok_or_else(|| Error::Corrupt(format!("{}: no row", statement.name)))
}

/// Of two readings of the same range the one that got further.
fn further(a: Option<Found>, b: Option<Found>, back: bool) -> Option<Found> {
    let (Some(x), Some(y)) = (&a, &b) else { return a.or(b) };
    let b_is = match (x.stopped_at, y.stopped_at) {
        (None, _) => false,
        (_, None) => true,
        (Some(x), Some(y)) => (y > x) != back,
    };
    if b_is { b } else { a }
}
