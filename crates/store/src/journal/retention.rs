//! Retention: deleting the oldest events of one tenant, in batches that anybody may go on with.
//!
//! A prune is planned by a read, begun by noting how far it goes, and carried out a batch a unit of work. Each batch
//! looks again, under the lock of the tenant's row, at who has yet to read: it must never pass a consumer. The floor
//! rises in the transaction that deletes.

use courant_api::events::journal::{EVENT_JOURNAL_PRUNED, EventJournalPruned};
use courant_api::operations::{ConsumerKind, JournalPruned};
use courant_api::{TenantId, Timestamp};
use courant_core::place::Lies;
use uuid::Uuid;

use super::Position;
use crate::change::{self, Change, Changed};
use crate::db::{Tx, params, statements};
use crate::error::Blocker;
use crate::{Error, Store};

/// Most events that one unit of work deletes.
pub const PRUNE_BATCH: i64 = 1000;
/// Consumers that a refusal names.
const NAMED: i64 = 20;

statements! { "retention":
    TENANTS = "SELECT id FROM tenant WHERE id > $1 ORDER BY id LIMIT $2";
    TENANT = "SELECT id FROM tenant WHERE id = $1";
    PENDING = "SELECT tenant_id FROM tenant_journal WHERE prune_through > floor_seq ORDER BY tenant_id LIMIT 1000";
    STATE = "SELECT floor_seq, prune_through, pruned_count FROM tenant_journal WHERE tenant_id = $1";
    ENTER = "INSERT INTO tenant_journal (tenant_id, floor_seq, prune_through, pruned_count) VALUES ($1, 0, 0, 0)
        ON CONFLICT (tenant_id) DO NOTHING";
    LOCK = "SELECT floor_seq, prune_through, pruned_count FROM tenant_journal WHERE tenant_id = $1 {for update}";
    /// Where the event after $4 others stands.
    NTH = "SELECT seq FROM event WHERE tenant_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT 1 OFFSET $4";
    FIRST_KEPT = "SELECT seq FROM event WHERE tenant_id = $1 AND seq > $2 AND seq <= $3 AND occurred_at >= $4
        ORDER BY seq LIMIT 1";
    /// How many, where the last stands, and how many are not of retention itself.
    RANGE = "SELECT count(*), coalesce(max(seq), 0), sum(CASE WHEN type = 'event_journal.pruned' THEN 0 ELSE 1 END)
        FROM event WHERE tenant_id = $1 AND seq > $2 AND seq <= $3";
    /// When the first event of the tenant after $2, up to $3, occurred.
    NEXT_TIME = "SELECT occurred_at FROM event WHERE tenant_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT 1";
    /// The events of one batch: how many, and where the last stands.
    BATCH = "SELECT count(*), coalesce(max(b.seq), 0) FROM (
            SELECT e.seq FROM event e WHERE e.tenant_id = $1 AND e.seq > $2 AND e.seq <= $3 ORDER BY e.seq LIMIT $4) b";
    ANNOUNCER = "SELECT seq FROM consumer_position WHERE name = 'announcer'";
    /// Leases that have not ended and stand below $3, the furthest behind first.
    LEASES_BELOW = "SELECT name, seq, expires_at FROM consumer_lease
        WHERE tenant_id = $1 AND expires_at > $2 AND seq < $3 ORDER BY seq, name LIMIT $4";
    BEGIN = "UPDATE tenant_journal SET prune_through = $2 WHERE tenant_id = $1";
    RAISE = "UPDATE tenant_journal SET floor_seq = $2, prune_through = $3, pruned_count = $4 WHERE tenant_id = $1";
    RAISE_DELETED = "UPDATE journal SET deleted_seq = $1 WHERE deleted_seq < $1";
    DELETE = "DELETE FROM event WHERE tenant_id = $1 AND seq > $2 AND seq <= $3";
}

/// What a prune may delete.
#[derive(Clone, Copy, Debug)]
pub struct PruneRequest {
    /// Events that occurred before this time.
    pub before: Timestamp,
    /// At most so many, the oldest first.
    pub max_events: i64,
    /// Only count.
    pub dry_run: bool,
    /// What to do where a consumer has yet to read.
    pub blocked: WhenBlocked,
}

/// What a prune does where a consumer has yet to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBlocked {
    /// Nothing: it is refused and names who blocks it.
    Refuse,
    /// It goes as far as it may.
    StopThere,
}

/// What a batch of a prune came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PruneStep {
    /// Nothing is under way.
    Idle,
    /// There is more to delete.
    More,
    /// The prune has ended and been journalled.
    Ended {
        /// What it deleted, whoever did.
        pruned: JournalPruned,
        /// Whether a consumer appeared on its way, so that it ended early.
        stopped: bool,
    },
}

/// How a tenant's retention stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionState {
    /// The greatest position that was deleted.
    pub floor: Position,
    /// Where the prune that is under way ends.
    pub through: Option<Position>,
}

/// What a prune would delete, by a look at the events alone.
#[derive(Clone, Copy, Debug)]
struct Plan {
    floor: Position,
    /// The last event of it.
    target: Position,
    count: i64,
    has_more: bool,
}

/// The tenant's row.
#[derive(Clone, Copy, Debug)]
struct Row {
    floor: Position,
    through: Position,
    count: i64,
}

async fn row(tx: &mut Tx, tenant: TenantId, lock: bool) -> Result<Option<Row>, Error> {
    let found = tx.query_opt(if lock { &LOCK } else { &STATE }, params![tenant]).await?;
    found.map(|r| Ok(Row { floor: r.get(0)?, through: r.get(1)?, count: r.get(2)? })).transpose()
}

/// Locks the tenant's retention, against batches and leases alike, and gives its floor.
pub(super) async fn lock(tx: &mut Tx, tenant: TenantId) -> Result<Position, Error> {
    Ok(locked(tx, tenant).await?.floor)
}

async fn locked(tx: &mut Tx, tenant: TenantId) -> Result<Row, Error> {
    tx.execute(&ENTER, params![tenant]).await?;
    row(tx, tenant, true).await?.ok_or_else(|| Error::Corrupt("tenant_journal: no row".into()))
}

/// Consumers of the tenant that have yet to read what lies at or below `target`, the furthest behind first.
async fn behind(tx: &mut Tx, tenant: TenantId, now: Timestamp, target: Position) -> Result<Vec<Blocker>, Error> {
    let mut blockers = Vec::new();
    let announcer: Position = tx.query_one(&ANNOUNCER, params![]).await?.get(0)?;
    if announcer < target {
        blockers.push(Blocker::new(ConsumerKind::Announcer, "announcer".into(), announcer, None));
    }
    for lease in tx.query(&LEASES_BELOW, params![tenant, now, target, NAMED]).await? {
        blockers.push(Blocker::new(ConsumerKind::Lease, lease.get(0)?, lease.get(1)?, Some(lease.get(2)?)));
    }
    blockers.sort_by_key(|b| b.position);
    Ok(blockers)
}

async fn plan(tx: &mut Tx, tenant: TenantId, horizon: Position, request: &PruneRequest) -> Result<Plan, Error> {
    let floor = row(tx, tenant, false).await?.map_or(0, |r| r.floor);
    let last = tx.query_opt(&NTH, params![tenant, floor, horizon, request.max_events - 1]).await?;
    let last = last.map_or(Ok(horizon), |row| row.get(0))?;
    let kept = tx.query_opt(&FIRST_KEPT, params![tenant, floor, last, request.before]).await?;
    let end = kept.map_or(Ok(last), |row| row.get::<Position>(0).map(|seq| seq - 1))?;
    let range = tx.query_one(&RANGE, params![tenant, floor, end]).await?;
    let (mut count, mut target): (i64, _) = (range.get(0)?, range.get::<Position>(1)?.max(floor));
    if request.blocked == WhenBlocked::StopThere && range.get::<Option<i64>>(2)?.unwrap_or(0) == 0 {
        // On a schedule, what earlier prunes have told is no reason for another one, which would tell of itself again.
        (count, target) = (0, floor);
    }
    let next = tx.query_opt(&NEXT_TIME, params![tenant, target, horizon]).await?;
    let has_more = count > 0 && next.is_some_and(|row| row.get::<Timestamp>(0).is_ok_and(|t| t < request.before));
    Ok(Plan { floor, target, count, has_more })
}

impl Store {
    /// Ids of tenants in their order, after `after`.
    pub async fn tenant_ids(&self, after: Option<TenantId>, limit: i64) -> Result<Vec<TenantId>, Error> {
        self.db
            .read((after.map_or(Uuid::nil(), TenantId::uuid), limit), |tx, (after, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&TENANTS, params![*after, *limit]).await?;
                    rows.iter().map(|row| row.get(0)).collect()
                })
            })
            .await
    }

    /// Refuses the id of no tenant.
    pub async fn tenant_exists(&self, tenant: TenantId) -> Result<(), Error> {
        self.db
            .read(tenant, |tx, tenant| {
                Box::pin(async move {
                    tx.query_opt(&TENANT, params![*tenant]).await?.map(|_| ()).ok_or(Error::NotFound("tenant"))
                })
            })
            .await
    }

    /// Tenants with a prune that has begun and not ended.
    pub async fn prunes_pending(&self) -> Result<Vec<TenantId>, Error> {
        self.db
            .read((), |tx, ()| {
                Box::pin(async move {
                    let rows = tx.query(&PENDING, params![]).await?;
                    rows.iter().map(|row| row.get(0)).collect()
                })
            })
            .await
    }

    /// How the tenant's retention stands.
    pub async fn retention_state(&self, tenant: TenantId) -> Result<RetentionState, Error> {
        self.db
            .read(tenant, |tx, tenant| {
                Box::pin(async move {
                    let found = row(tx, *tenant, false).await?;
                    let through = found.and_then(|r| (r.through > r.floor).then_some(r.through));
                    Ok(RetentionState { floor: found.map_or(0, |r| r.floor), through })
                })
            })
            .await
    }

    /// Begins a prune: decides what goes and notes it, so that whoever comes next goes on with it. `Error::Repeat` says
    /// that another one is under way and must be ended first.
    pub async fn prune_begin(&self, change: Change, request: PruneRequest) -> Result<Changed<JournalPruned>, Error> {
        let (tenant, horizon) = (change.tenant_id, self.journal_horizon().await?);
        // Apart from the writing unit: it looks at every event that is to go, and what it finds stays so, since events
        // at or below the horizon neither change nor come, and go only with the floor.
        let plan = self
            .db
            .read((tenant, horizon, request), |tx, (tenant, horizon, request)| {
                Box::pin(plan(tx, *tenant, *horizon, request))
            })
            .await?;
        self.db
            .change(change, (self.clone(), request, plan), |tx, (change, (store, request, plan))| {
                Box::pin(async move {
                    let tenant = change.tenant_id;
                    let mut plan = *plan;
                    let row = if request.dry_run { None } else { Some(locked(tx, tenant).await?) };
                    if row.is_some_and(|r| r.floor != plan.floor || r.through > r.floor) {
                        return Err(Error::Repeat("another prune is under way".into()));
                    }
                    let blockers = behind(tx, tenant, change.now, plan.target).await?;
                    if let Some(first) = blockers.first().filter(|_| plan.count > 0) {
                        if request.blocked == WhenBlocked::Refuse {
                            return Err(Error::RetentionBlocked(store.named(tenant, blockers)));
                        }
                        let range = tx.query_one(&RANGE, params![tenant, plan.floor, first.position]).await?;
                        plan.count = range.get(0)?;
                        plan.target = range.get::<Position>(1)?.max(plan.floor);
                        plan.has_more = true;
                    }
                    if plan.count > 0 && !request.dry_run {
                        tx.execute(&BEGIN, params![tenant, plan.target]).await?;
                    }
                    Ok(JournalPruned {
                        deleted: plan.count,
                        floor_cursor: store.journal_cursor(tenant, plan.target),
                        has_more: plan.has_more,
                    })
                })
            })
            .await
    }

    /// Deletes the next batch of the prune that is under way, none of it after `upto`, and ends the prune with its
    /// event when that was the last. A prune that ends early under `change`'s idempotency key keeps what it really did.
    pub async fn prune_step(&self, change: Change, upto: Position) -> Result<PruneStep, Error> {
        let done = self.db.write((self.clone(), change, upto), |tx, (store, change, upto)| {
            Box::pin(async move {
                let Some(row) = row(tx, change.tenant_id, true).await? else { return Ok(PruneStep::Idle) };
                if row.through <= row.floor {
                    return Ok(PruneStep::Idle);
                }
                step(tx, store, change, row, *upto).await
            })
        });
        Ok(done.await?.value)
    }

    fn named(&self, tenant: TenantId, mut blockers: Vec<Blocker>) -> Vec<Blocker> {
        blockers.truncate(usize::try_from(NAMED).unwrap_or(0));
        for blocker in &mut blockers {
            blocker.cursor = self.journal_cursor(tenant, blocker.position);
        }
        blockers
    }
}

async fn step(tx: &mut Tx, store: &Store, change: &Change, row: Row, upto: Position) -> Result<PruneStep, Error> {
    let tenant = change.tenant_id;
    let first = behind(tx, tenant, change.now, row.through).await?.into_iter().next();
    let through = first.as_ref().map_or(row.through, |b| b.position.max(row.floor));
    let stopped = through < row.through;
    let batch = tx.query_one(&BATCH, params![tenant, row.floor, through.min(upto), PRUNE_BATCH]).await?;
    let (deleted, floor): (i64, Position) = (batch.get(0)?, batch.get::<Position>(1)?.max(row.floor));
    // What `upto` left out is for a later batch; what lies below it and is not there has gone with another's.
    let ended = if upto < through { false } else { floor == through || deleted < PRUNE_BATCH };
    let count = row.count + deleted;
    if deleted == 0 && !ended {
        return Ok(PruneStep::More);
    }
    let kept = if ended { (floor, 0) } else { (row.through, count) };
    tx.execute(&RAISE, params![tenant, floor, kept.0, kept.1]).await?;
    tx.execute(&RAISE_DELETED, params![floor]).await?;
    let gone = tx.execute(&DELETE, params![tenant, row.floor, floor]).await?;
    if i64::try_from(gone) != Ok(deleted) {
        return Err(Error::Corrupt(format!("retention deleted {gone} events where {deleted} were counted")));
    }
    if !ended {
        return Ok(PruneStep::More);
    }
    let floor_cursor = store.journal_cursor(tenant, floor);
    if count > 0 {
        let payload = EventJournalPruned { count, through_cursor: floor_cursor.clone() };
        tx.append(change.event(&EVENT_JOURNAL_PRUNED, tenant, Lies::NOWHERE, &payload)?);
    }
    let pruned = JournalPruned { deleted: count, floor_cursor, has_more: stopped };
    if stopped {
        change::keep(tx, change, &pruned).await?;
    }
    Ok(PruneStep::Ended { pruned, stopped })
}
