//! A change: who makes it, its idempotency key, and the events it tells.

use std::sync::Arc;

use courant_api::events::workspace::{EntityLeft, WORKSPACE_ENTITY_LEFT};
use courant_api::events::{EventType, Payload};
use courant_api::{PrincipalId, TenantId, Timestamp, WorkspaceId};
use courant_core::place::{Lies, workspace_of};
use courant_core::redact::redact_and_cut;
use serde::Serialize;
use uuid::Uuid;

use crate::db::{BoxFuture, Db, Dialect, NewEvent, Tx, params, statements};
use crate::{Error, Rights, Store};

/// Longest text in an event, in characters.
const TOLD_CHARS: usize = 1_000;

/// How long the first answer of a keyed request is kept.
const KEPT_US: i64 = 24 * 60 * 60 * 1_000_000;

/// Who changes something, from which request, and when.
#[derive(Clone, Debug)]
pub struct Change {
    /// Whose data.
    pub tenant_id: TenantId,
    /// Who; none for the server itself.
    pub actor_id: Option<PrincipalId>,
    /// What the actor may do, for rules that hang on a locked row.
    pub rights: Rights,
    /// When.
    pub now: Timestamp,
    /// The request.
    pub request_id: Option<String>,
    /// The undertaking.
    pub correlation_id: Option<String>,
    /// The key under which a repeat gets the first answer.
    pub idempotency: Option<Idempotency>,
    /// The versions of which the resource must have one.
    pub if_match: Option<Vec<i64>>,
    /// Where people find this server, for the links that are kept.
    pub base_url: Option<Arc<str>>,
}

/// An idempotency key and what it was used for.
#[derive(Clone, Debug)]
pub struct Idempotency {
    /// The client's key.
    pub key: String,
    /// Method, path, query and body of the request, hashed.
    pub fingerprint: [u8; 32],
}

/// What a change gave: its own result, or the stored answer of its first run.
#[derive(Clone, Debug, PartialEq)]
pub enum Changed<T> {
    /// It happened now.
    Now(T),
    /// It had happened before; the JSON of that answer.
    Before(String),
}

/// A result that can be stored for replay.
pub trait Replayable: Serialize {
    /// The JSON to keep: the result without secrets that are shown once.
    fn keepable(&self) -> Result<String, Error> {
        to_json(self)
    }
}

pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|e| Error::Corrupt(e.to_string()))
}

impl Replayable for () {}
impl Replayable for courant_api::access::PrincipalView {}
impl Replayable for courant_api::access::WorkspaceView {}
impl Replayable for courant_api::access::GrantView {}
impl Replayable for courant_api::access::AuthzChecked {}
impl Replayable for courant_api::access::IdentityBindingView {}
impl Replayable for courant_api::access::RoleView {}
impl Replayable for courant_api::access::RoleAssignmentView {}
impl Replayable for courant_api::catalog::EventTypeView {}
impl Replayable for courant_api::approvals::ApprovalView {}
impl Replayable for courant_api::resources::ArtifactView {}
impl Replayable for courant_api::resources::GoalView {}
impl Replayable for courant_api::resources::ProjectView {}
impl Replayable for courant_api::resources::RuleView {}
impl Replayable for courant_api::resources::SkillInvocationView {}
impl Replayable for courant_api::work::RunView {}
impl Replayable for courant_api::work::TaskView {}
impl Replayable for courant_api::work::VerificationView {}
impl Replayable for courant_api::work::ClaimView {}
impl Replayable for courant_api::work::CommentView {}
impl Replayable for courant_api::deployments::StackView {}
impl Replayable for courant_api::deployments::DeploymentView {}
impl Replayable for courant_api::deployments::DeploymentRunView {}
impl Replayable for courant_api::notify::RetryResult {}
impl Replayable for courant_api::notify::DeliveriesRetried {}
impl Replayable for courant_api::operations::JournalPruned {}

impl Replayable for courant_api::access::TenantBootstrapped {
    fn keepable(&self) -> Result<String, Error> {
        to_json(&Self { api_key: None, ..self.clone() })
    }
}

impl Replayable for courant_api::approvals::DecisionToken {
    fn keepable(&self) -> Result<String, Error> {
        to_json(&Self { token: None, ..self.clone() })
    }
}

impl Replayable for courant_api::access::ApiKeyView {
    fn keepable(&self) -> Result<String, Error> {
        to_json(&Self { api_key: None, ..self.clone() })
    }
}

impl Replayable for courant_api::notify::IntegrationView {
    fn keepable(&self) -> Result<String, Error> {
        to_json(&Self { generated_secret: None, ..self.clone() })
    }
}

impl Change {
    /// A change that the server makes by itself.
    pub fn by_server(tenant_id: TenantId, now: Timestamp) -> Self {
        Self {
            tenant_id,
            actor_id: None,
            rights: Rights::none(),
            now,
            request_id: None,
            correlation_id: None,
            idempotency: None,
            if_match: None,
            base_url: None,
        }
    }

    /// Who makes it: what somebody does is never done by the server itself.
    pub(crate) fn actor(&self) -> Result<PrincipalId, Error> {
        self.actor_id.ok_or_else(|| Error::Corrupt("a change of somebody's without anybody".into()))
    }

    /// An event of this change, in the workspace where its entity lies.
    pub(crate) fn event<P: Payload>(
        &self,
        kind: &EventType<P>,
        entity_id: impl std::fmt::Display,
        lies: Lies,
        payload: &P,
    ) -> Result<NewEvent, Error> {
        Ok(NewEvent {
            tenant_id: self.tenant_id,
            id: fresh_id().into(),
            event_type: kind.name.to_owned(),
            schema_version: kind.version,
            entity_type: kind.entity_type.to_owned(),
            entity_id: entity_id.to_string(),
            workspace_id: workspace_of(kind.entity_type, lies),
            actor_id: self.actor_id,
            session_id: None,
            correlation_id: self.correlation_id.clone(),
            causation_id: None,
            request_id: self.request_id.clone(),
            payload: to_json(payload)?,
            occurred_at: self.now,
        })
    }

    /// Tells the readers of the workspace that an entity has left, if it was in one and is not there any more.
    pub(crate) fn tell_left(
        &self,
        tx: &mut Tx,
        entity_type: &str,
        entity_id: impl std::fmt::Display,
        from: Option<WorkspaceId>,
        to: Option<WorkspaceId>,
    ) -> Result<(), Error> {
        let Some(left) = from.filter(|left| Some(*left) != to) else { return Ok(()) };
        let payload = EntityLeft {
            left_entity_type: entity_type.into(),
            left_entity_id: entity_id.to_string(),
            to_workspace_id: to,
        };
        tx.append(self.event(&WORKSPACE_ENTITY_LEFT, left, Lies::own(left), &payload)?);
        Ok(())
    }

    /// Refuses a version that `If-Match` does not name.
    pub(crate) fn check_version(&self, current: i64) -> Result<(), Error> {
        match &self.if_match {
            Some(wanted) if !wanted.contains(&current) => Err(Error::VersionConflict { current }),
            _ => Ok(()),
        }
    }
}

/// A text as an event may tell it: without whatever looks like a secret, and cut.
pub(crate) fn told(text: &str) -> String {
    redact_and_cut(text, TOLD_CHARS)
}

/// Sets a field to what a patch says, and notes its name when that is something else.
pub(crate) fn note<T: PartialEq + Clone>(field: &mut T, new: Option<&T>, name: &str, changes: &mut Vec<String>) {
    if let Some(new) = new.filter(|new| **new != *field) {
        field.clone_from(new);
        changes.push(name.to_owned());
    }
}

/// A new time-ordered UUID.
#[expect(clippy::disallowed_methods, reason = "the store's home of fresh ids")]
pub(crate) fn fresh_id() -> Uuid {
    Uuid::now_v7()
}

statements! { "change":
    IDEMPOTENCY_LOCK only Postgres = "SELECT pg_try_advisory_xact_lock($1)";
    IDEMPOTENCY_FIND = "SELECT principal_id, fingerprint, body FROM idempotency
        WHERE tenant_id = $1 AND key = $2 AND created_at > $3";
    IDEMPOTENCY_KEEP = "INSERT INTO idempotency (tenant_id, key, principal_id, fingerprint, body, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (tenant_id, key) DO UPDATE SET principal_id = excluded.principal_id,
            fingerprint = excluded.fingerprint, body = excluded.body, created_at = excluded.created_at";
    IDEMPOTENCY_PRUNE = "DELETE FROM idempotency WHERE created_at <= $1";
}

impl Db {
    /// Runs a change under its idempotency key, if it has one: the answer is kept in the change's own transaction.
    pub(crate) async fn change<I, T, F>(&self, change: Change, input: I, unit: F) -> Result<Changed<T>, Error>
    where
        I: Send + Sync + 'static,
        T: Replayable + Send + Sync + 'static,
        F: for<'a> Fn(&'a mut Tx, &'a (Change, I)) -> BoxFuture<'a, Result<T, Error>> + Send + Sync + 'static,
    {
        let unit = Arc::new(unit);
        let work = ((change, input), unit);
        let committed = self.write(work, |tx, (input, unit)| {
            Box::pin(async move {
                let change = &input.0;
                let Some(idempotency) = &change.idempotency else { return Ok(Changed::Now(unit(tx, input).await?)) };
                if let Some(body) = replay(tx, change, idempotency).await? {
                    return Ok(Changed::Before(body));
                }
                let value = unit(tx, input).await?;
                keep(tx, change, &value).await?;
                Ok(Changed::Now(value))
            })
        });
        Ok(committed.await?.value)
    }
}

/// Keeps an answer under the change's idempotency key, if it has one, in place of an earlier one.
pub(crate) async fn keep<T: Replayable>(tx: &mut Tx, change: &Change, value: &T) -> Result<(), Error> {
    let Some(idempotency) = &change.idempotency else { return Ok(()) };
    let kept = params![
        change.tenant_id,
        &idempotency.key,
        change.actor_id,
        idempotency.fingerprint.as_slice(),
        value.keepable()?,
        change.now
    ];
    tx.execute(&IDEMPOTENCY_KEEP, kept).await.map(|_| ())
}

async fn replay(tx: &mut Tx, change: &Change, idempotency: &Idempotency) -> Result<Option<String>, Error> {
    if tx.dialect() == Dialect::Postgres {
        // Held until this unit ends: who cannot have it meets a first request that still runs.
        let locked: bool =
            tx.query_one(&IDEMPOTENCY_LOCK, params![lock_key(change, &idempotency.key)]).await?.get(0)?;
        if !locked {
            return Err(Error::IdempotencyInFlight);
        }
    }
    let since = change.now.plus_micros(-KEPT_US);
    let found = tx.query_opt(&IDEMPOTENCY_FIND, params![change.tenant_id, &idempotency.key, since]).await?;
    let Some(row) = found else { return Ok(None) };
    let same = row.get::<Option<PrincipalId>>(0)? == change.actor_id
        && row.get::<Vec<u8>>(1)? == idempotency.fingerprint.as_slice();
    if same { row.get(2).map(Some) } else { Err(Error::IdempotencyConflict) }
}

/// A lock key for (tenant, key). It keeps clear of the journal's: their upper 16 bits are a tag.
fn lock_key(change: &Change, key: &str) -> i64 {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::new().chain_update(change.tenant_id.uuid().as_bytes()).chain_update(key.as_bytes()).finalize();
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&digest[..6]);
    i64::from_be_bytes(bytes)
}

impl Store {
    /// Deletes answers that are kept no longer; how many.
    pub async fn idempotency_prune(&self, now: Timestamp) -> Result<u64, Error> {
        let done = self.db.write(now, |tx, now| {
            Box::pin(async move { tx.execute(&IDEMPOTENCY_PRUNE, params![now.plus_micros(-KEPT_US)]).await })
        });
        Ok(done.await?.value)
    }
}
