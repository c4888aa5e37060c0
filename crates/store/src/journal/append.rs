//! Appending what producers outside the core publish.

use std::collections::{BTreeMap, HashMap, HashSet};

use courant_api::{EventId, TenantId, WorkspaceId};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::change::{Change, fresh_id};
use crate::db::{Appended, Db, NewEvent, Row, Statement, Tx, params};
use crate::{Error, Store};

use super::Position;

/// An event that has been checked against its type's schema.
#[derive(Clone, Debug)]
pub struct EventDraft {
    /// The producer's own id, which makes the append idempotent.
    pub id: Option<EventId>,
    /// A registered type.
    pub event_type: String,
    /// The version that the payload was checked against.
    pub schema_version: u32,
    /// The type's entity type.
    pub entity_type: String,
    /// The entity.
    pub entity_id: String,
    /// Its workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// JSON text, kept as it is.
    pub payload: String,
    /// The event's own correlation, else the request's.
    pub correlation_id: Option<String>,
    /// What caused it.
    pub causation_id: Option<String>,
}

/// What became of one draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendOutcome {
    /// The event's id.
    pub id: EventId,
    /// Its position.
    pub seq: Position,
    /// Whether it had been appended before.
    pub duplicate: bool,
}

pub(super) static FIND_BY_IDS: Statement = Statement::new(
    "journal.FIND_BY_IDS",
    "SELECT id, seq, type, entity_type, entity_id, workspace_id, causation_id, payload FROM event
    WHERE tenant_id = $1 AND id IN {uuids $2}",
);
pub(super) static FIND_WORKSPACES: Statement = Statement::new(
    "journal.FIND_WORKSPACES",
    "SELECT id FROM workspace WHERE tenant_id = $1 AND archived_at IS NULL AND id IN {uuids $2}",
);

/// One producer's request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub change: Change,
    pub drafts: Vec<EventDraft>,
}

/// Where a draft's position comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// It stood in the journal before.
    Stored(EventId, Position),
    /// It is the n-th of the events that this unit appends.
    New(usize),
    /// It repeats that one.
    Again(usize),
}

impl Store {
    /// Appends drafts in their order, all or none. One whose id stands in the journal with the same content is
    /// answered as a duplicate; with other content the whole append is refused.
    pub async fn event_append(&self, change: Change, drafts: Vec<EventDraft>) -> Result<Vec<AppendOutcome>, Error> {
        self.appender.append(Request { change, drafts }).await
    }
}

/// Appends several requests in one unit of work; each is refused or appended as a whole, whatever becomes of the others.
pub(super) async fn append_all(
    db: &Db,
    requests: Vec<Request>,
) -> Result<Vec<Result<Vec<AppendOutcome>, Error>>, Error> {
    let committed = db.write(requests, |tx, requests| {
        Box::pin(async move {
            let mut batch = Batch::look_up(tx, requests).await?;
            Ok(requests.iter().map(|request| batch.place(tx, request)).collect::<Vec<_>>())
        })
    });
    let committed = committed.await?;
    let outcome = |place: Place| match place {
        Place::Stored(id, seq) => Ok(AppendOutcome { id, seq, duplicate: true }),
        Place::New(n) | Place::Again(n) => {
            let Appended { id, seq } =
                *committed.appended.get(n).ok_or_else(|| Error::Corrupt("an append answered too few rows".into()))?;
            Ok(AppendOutcome { id, seq, duplicate: matches!(place, Place::Again(_)) })
        }
    };
    Ok(committed
        .value
        .into_iter()
        .map(|places| places.and_then(|places| places.into_iter().map(outcome).collect()))
        .collect())
}

/// What a unit knows: what stood in the journal before, which workspaces there are, and what it has appended itself.
struct Batch<'a> {
    stored: HashMap<(TenantId, EventId), Row>,
    workspaces: HashSet<(TenantId, WorkspaceId)>,
    fresh: HashMap<(TenantId, EventId), (usize, &'a EventDraft)>,
}

impl<'a> Batch<'a> {
    /// One look for each tenant, not for each request.
    async fn look_up(tx: &mut Tx, requests: &[Request]) -> Result<Self, Error> {
        let mut wanted: HashMap<TenantId, (HashSet<Uuid>, HashSet<Uuid>)> = HashMap::new();
        for Request { change, drafts } in requests {
            let (ids, workspaces) = wanted.entry(change.tenant_id).or_default();
            ids.extend(drafts.iter().filter_map(|d| d.id).map(EventId::uuid));
            workspaces.extend(drafts.iter().filter_map(|d| d.workspace_id).map(WorkspaceId::uuid));
        }
        let mut batch = Self { stored: HashMap::new(), workspaces: HashSet::new(), fresh: HashMap::new() };
        for (tenant, (ids, workspaces)) in wanted {
            if !ids.is_empty() {
                for row in tx.query(&FIND_BY_IDS, params![tenant, ids.into_iter().collect::<Vec<_>>()]).await? {
                    batch.stored.insert((tenant, row.get(0)?), row);
                }
            }
            if !workspaces.is_empty() {
                let workspaces: Vec<_> = workspaces.into_iter().collect();
                for row in tx.query(&FIND_WORKSPACES, params![tenant, workspaces]).await? {
                    batch.workspaces.insert((tenant, row.get(0)?));
                }
            }
        }
        Ok(batch)
    }

    /// Finds a place for each draft of a request and buffers what is new, unless one of them is refused.
    fn place(&mut self, tx: &mut Tx, Request { change, drafts }: &'a Request) -> Result<Vec<Place>, Error> {
        let tenant = change.tenant_id;
        let mut places = Vec::with_capacity(drafts.len());
        let mut new: Vec<((TenantId, EventId), &'a EventDraft)> = Vec::with_capacity(drafts.len());
        let first = tx.appended_count();
        for draft in drafts {
            if draft.workspace_id.is_some_and(|id| !self.workspaces.contains(&(tenant, id))) {
                return Err(Error::NotFound("workspace"));
            }
            let id = draft.id.unwrap_or_else(|| fresh_id().into());
            let key = (tenant, id);
            let known = self.fresh.get(&key).copied();
            let known = known.or_else(|| new.iter().position(|(k, _)| *k == key).map(|n| (first + n, new[n].1)));
            let place = if let Some(row) = self.stored.get(&key) {
                if !same_content(draft, row)? {
                    return Err(Error::EventIdConflict(id));
                }
                Place::Stored(id, row.get(1)?)
            } else if let Some((n, before)) = known {
                if !same_draft(draft, before) {
                    return Err(Error::EventIdConflict(id));
                }
                Place::Again(n)
            } else {
                new.push((key, draft));
                Place::New(first + new.len() - 1)
            };
            places.push(place);
        }
        for (n, (key, draft)) in new.into_iter().enumerate() {
            tx.append(new_event(change, draft, key.1));
            self.fresh.insert(key, (first + n, draft));
        }
        Ok(places)
    }
}

fn new_event(change: &Change, draft: &EventDraft, id: EventId) -> NewEvent {
    NewEvent {
        tenant_id: change.tenant_id,
        id,
        event_type: draft.event_type.clone(),
        schema_version: draft.schema_version,
        entity_type: draft.entity_type.clone(),
        entity_id: draft.entity_id.clone(),
        workspace_id: draft.workspace_id,
        actor_id: change.actor_id,
        session_id: None,
        correlation_id: draft.correlation_id.clone().or_else(|| change.correlation_id.clone()),
        causation_id: draft.causation_id.clone(),
        request_id: change.request_id.clone(),
        payload: draft.payload.clone(),
        occurred_at: change.now,
    }
}

/// The same event, as its producer meant it: a correlation id may be the request's and is left out.
fn same_content(draft: &EventDraft, row: &Row) -> Result<bool, Error> {
    Ok(row.get::<String>(2)? == draft.event_type
        && row.get::<String>(3)? == draft.entity_type
        && row.get::<String>(4)? == draft.entity_id
        && row.get::<Option<WorkspaceId>>(5)? == draft.workspace_id
        && row.get::<Option<String>>(6)? == draft.causation_id
        && same_json(&row.get::<String>(7)?, &draft.payload))
}

fn same_draft(a: &EventDraft, b: &EventDraft) -> bool {
    a.event_type == b.event_type
        && a.entity_type == b.entity_type
        && a.entity_id == b.entity_id
        && a.workspace_id == b.workspace_id
        && a.causation_id == b.causation_id
        && same_json(&a.payload, &b.payload)
}

/// The same JSON but for spacing, escapes and the order of keys. Numbers are compared as they are written: read as
/// doubles, two long ones would pass for one.
fn same_json(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    if a == b {
        return true;
    }
    match (a.as_bytes().first(), b.as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => same::<BTreeMap<String, &RawValue>>(a, b, |a, b| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && same_json(a.1.get(), b.1.get()))
        }),
        (Some(b'['), Some(b'[')) => same::<Vec<&RawValue>>(a, b, |a, b| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_json(a.get(), b.get()))
        }),
        (Some(b'"'), Some(b'"')) => same::<String>(a, b, |a, b| a == b),
        _ => false,
    }
}

fn same<'a, T: serde::Deserialize<'a>>(a: &'a str, b: &'a str, compare: impl Fn(&T, &T) -> bool) -> bool {
    matches!((serde_json::from_str(a), serde_json::from_str(b)), (Ok(a), Ok(b)) if compare(&a, &b))
}
