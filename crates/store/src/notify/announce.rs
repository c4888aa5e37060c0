//! From the journal to the outbox: one page of events, its deliveries and the announcer's position in one
//! transaction, so that each event is announced once whatever crashes.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use courant_api::{Event, Permission, PrincipalId, TenantId, Timestamp, WorkspaceId};
use courant_core::announce::{News, Route};

use serde::de::DeserializeOwned;

use crate::access::{Unknown, grants, place};
use crate::change::{fresh_id, to_json};
use crate::db::{Row, Tx, Value, params, statements};
use crate::journal::Position;
use crate::{Authority, Error, Rights, Store};

const ANNOUNCER: &str = "announcer";

statements! { "announce":
    POSITION = "SELECT seq FROM consumer_position WHERE name = $1";
    PLACE = "SELECT j.incarnation, c.seq FROM consumer_position c, journal j WHERE c.name = $1";
    INCARNATION = "SELECT incarnation FROM journal";
    POSITION_LOCK = "SELECT seq FROM consumer_position WHERE name = $1 {for update}";
    POSITION_MOVE = "UPDATE consumer_position SET seq = $2, updated_at = $3 WHERE name = $1";
    ROUTES = "SELECT i.id, i.tenant_id, i.journal_types, i.workspace_id, i.saved_by, p.status, coalesce(e.seq, 0),
            i.events, i.stack_labels, i.changes_only
        FROM integration i
        JOIN principal p ON p.tenant_id = i.tenant_id AND p.id = i.saved_by
        LEFT JOIN event e ON e.tenant_id = i.tenant_id AND e.id = i.created_event_id
        WHERE i.enabled AND (i.journal_types <> '[]' OR i.events <> '[]') AND i.tenant_id IN {uuids $1} ORDER BY i.id";
    SUBTREE = "WITH RECURSIVE subtree(id) AS (
            SELECT w.id FROM workspace w WHERE w.tenant_id = $1 AND w.id = $2
            UNION
            SELECT w.id FROM subtree s JOIN workspace w ON w.tenant_id = $1 AND w.parent_id = s.id)
        SELECT id FROM subtree";
    ENQUEUE = "INSERT INTO delivery (id, tenant_id, integration_id, event_id, event_type, cause_type, status, run_at,
            attempt_count, claim_token, payload, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, 0, 0, $8, $7)
        ON CONFLICT (integration_id, event_id) DO NOTHING";
}

/// Where a consumer of the server's own stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which incarnation of the journal.
    pub incarnation: u32,
    /// Which position in it.
    pub seq: Position,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.seq.fmt(f)
    }
}

fn incarnation(stored: i64) -> Result<u32, Error> {
    stored.try_into().map_err(|_| Error::Corrupt("journal.incarnation".into()))
}

/// What became of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// The position moved, and this many deliveries were queued.
    Moved {
        /// How many.
        deliveries: u64,
        /// Integrations that were told nothing of the journal, because who saved them may not read events any more.
        withheld: u64,
    },
    /// Another server moved the position meanwhile, or the journal was replaced; nothing was done.
    Stale,
}

impl Store {
    /// Where the announcer stands.
    pub async fn announcer_position(&self) -> Result<Position, Error> {
        self.db
            .read((), |tx, ()| Box::pin(async move { tx.query_one(&POSITION, params![ANNOUNCER]).await?.get(0) }))
            .await
    }

    /// The same with the incarnation of the journal, apart from which a position means nothing.
    pub async fn announcer_place(&self) -> Result<Place, Error> {
        let place = self.db.read((), |tx, ()| {
            Box::pin(async move {
                let row = tx.query_one(&PLACE, params![ANNOUNCER]).await?;
                Ok(Place { incarnation: incarnation(row.get(0)?)?, seq: row.get(1)? })
            })
        });
        place.await
    }

    /// Queues what a page of events announces and moves the announcer from `from` to `next`. `base_url` is where people find
    /// this server.
    pub async fn announce(
        &self,
        from: Place,
        next: Place,
        events: Vec<Event>,
        base_url: Option<Arc<str>>,
        now: Timestamp,
    ) -> Result<Announced, Error> {
        let input = (from, next, events, base_url, now, self.authority.clone());
        let done = self.db.write(input, |tx, (from, next, events, base_url, now, authority)| {
            Box::pin(async move {
                let stands: Position = tx.query_one(&POSITION_LOCK, params![ANNOUNCER]).await?.get(0)?;
                // A page of a journal that was replaced meanwhile says nothing about the one that is written here.
                let journal = incarnation(tx.query_one(&INCARNATION, params![]).await?.get(0)?)?;
                if stands != from.seq || [from.incarnation, next.incarnation] != [journal; 2] {
                    return Ok(Announced::Stale);
                }
                let (deliveries, withheld) = enqueue(tx, events, base_url.as_deref(), authority, *now).await?;
                tx.execute(&POSITION_MOVE, params![ANNOUNCER, next.seq, *now]).await?;
                Ok(Announced::Moved { deliveries, withheld })
            })
        });
        Ok(done.await?.value)
    }
}

async fn enqueue(
    tx: &mut Tx,
    events: &[Event],
    base_url: Option<&str>,
    authority: &Authority,
    now: Timestamp,
) -> Result<(u64, u64), Error> {
    let (routes, withheld) = routes(tx, events, authority).await?;
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for event in events {
        let Some(routes) = routes.get(&event.tenant_id) else { continue };
        let news = News::of(event);
        for route in routes {
            let Some(heard_as) = news.reaches(route) else { continue };
            let notification = news.notification(fresh_id().into(), heard_as, base_url);
            rows.push(
                params![
                    notification.id,
                    event.tenant_id,
                    route.integration_id,
                    event.id,
                    &notification.event_type,
                    &event.event_type,
                    now,
                    to_json(&notification)?
                ]
                .to_vec(),
            );
        }
    }
    if rows.is_empty() {
        return Ok((0, withheld));
    }
    Ok((tx.execute_each(&ENQUEUE, &rows).await?.into_iter().sum(), withheld))
}

/// The routes of the tenants that have events here, as they stand in this transaction, and how many there would be more
/// if who saved them might still read.
async fn routes(
    tx: &mut Tx,
    events: &[Event],
    authority: &Authority,
) -> Result<(HashMap<TenantId, Vec<Route>>, u64), Error> {
    let tenants: HashSet<_> = events.iter().map(|e| e.tenant_id.uuid()).collect();
    let mut routes: HashMap<TenantId, Vec<Route>> = HashMap::new();
    if tenants.is_empty() {
        return Ok((routes, 0));
    }
    let mut withheld = 0;
    let (mut savers, mut unknown) = (Savers::new(), Unknown::default());
    for row in tx.query(&ROUTES, params![tenants.into_iter().collect::<Vec<_>>()]).await? {
        let mut route = route(&row)?;
        let (tenant, workspace): (TenantId, Option<WorkspaceId>) = (row.get(1)?, row.get(3)?);
        if !route.journal_types.is_empty() {
            let may_read = row.get::<String>(5)? == "active" && {
                let answer = saver_may_read(tx, &mut savers, authority, (tenant, row.get(4)?), workspace).await;
                unknown.note(answer)?
            };
            if !may_read {
                let id = route.integration_id;
                tracing::warn!(integration.id = %id, "told nothing of the journal: the principal who saved it may not read events");
                withheld += 1;
                route.journal_types.clear();
            }
        }
        if let Some(root) = workspace {
            let rows = tx.query(&SUBTREE, params![tenant, root]).await?;
            route.workspace = Some(rows.iter().map(|row| row.get(0)).collect::<Result<HashSet<WorkspaceId>, _>>()?);
        }
        routes.entry(tenant).or_default().push(route);
    }
    unknown.settled()?;
    Ok((routes, withheld))
}

/// A row without what its workspace stands for.
fn route(row: &Row) -> Result<Route, Error> {
    fn json<T: DeserializeOwned>(row: &Row, column: usize, name: &str) -> Result<T, Error> {
        serde_json::from_str(&row.get::<String>(column)?).map_err(|_| Error::Corrupt(format!("integration.{name}")))
    }
    Ok(Route {
        integration_id: row.get(0)?,
        events: json(row, 7, "events")?,
        stack_labels: json(row, 8, "stack_labels")?,
        changes_only: row.get(9)?,
        journal_types: json(row, 2, "journal_types")?,
        workspace: None,
        created_seq: row.get(6)?,
    })
}

type Savers = HashMap<(TenantId, PrincipalId), Rights>;

/// An integration sees what the principal who saved it may still read.
async fn saver_may_read(
    tx: &mut Tx,
    savers: &mut Savers,
    authority: &Authority,
    (tenant, saver): (TenantId, PrincipalId),
    workspace: Option<WorkspaceId>,
) -> Result<bool, Error> {
    let rights = match savers.entry((tenant, saver)) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(entry) => {
            entry.insert(Rights::new(authority, tenant, saver, grants::of(tx, tenant, saver).await?))
        }
    };
    rights.allows_here(tx, Permission::EventsRead, &place(workspace)).await
}
