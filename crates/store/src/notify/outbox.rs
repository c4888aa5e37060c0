//! The outbox: claim, mark, recover, requeue, prune.
//!
//! A claim raises the row's token, which is never reset, and every mark names the token of its claim: a worker whose
//! claim was taken over marks nothing. A sent row is deleted, so what is stored is under way or has failed.

use std::collections::HashMap;
use std::sync::Arc;

use courant_api::events::notify::{DELIVERY_DEAD, DeliveryDead, INTEGRATION_DISABLED, IntegrationChange};
use courant_api::{DeliveryId, IntegrationId, TenantId, Timestamp};
use courant_core::announce::may_journal_death;
use courant_core::delivery::Failure;
use courant_core::place::Lies;
use uuid::Uuid;

use super::history;
use super::integrations::{self, Integration};
use crate::change::Change;
use crate::db::{Dialect, Tx, Value, params, statements};
use crate::servers::GONE_AFTER_US;
use crate::{Error, Store, twin};

statements! { "outbox":
    NEXT_DUE = "SELECT min(d.run_at) FROM delivery d WHERE d.status IN ('pending', 'failed')
        AND NOT EXISTS (SELECT 1 FROM integration i WHERE i.id = d.integration_id AND i.paused)";
    SENT = "DELETE FROM delivery WHERE id = $1 AND status = 'processing' AND claim_token = $2";
    RETRY = "UPDATE delivery SET status = 'failed', run_at = $3, last_error = $4, claimed_by = NULL
        WHERE id = $1 AND status = 'processing' AND claim_token = $2";
    DEAD = "UPDATE delivery SET status = 'dead', last_error = $3, claimed_by = NULL
        WHERE id = $1 AND status = 'processing' AND claim_token = $2";
    DISABLE_LOCK = "SELECT tenant_id FROM integration WHERE tenant_id = $1 AND id = $2 AND enabled {for update}";
    STALE = "SELECT d.id, d.tenant_id, d.integration_id, i.name, d.event_type, d.cause_type, d.attempt_count, d.claim_token,
            d.event_id
        FROM delivery d JOIN integration i ON i.id = d.integration_id
        WHERE d.status = 'processing' AND (d.last_attempted_at < $1 OR NOT EXISTS (
            SELECT 1 FROM server s WHERE s.id = d.claimed_by AND s.heartbeat_at >= $2))
        ORDER BY d.id LIMIT 500 {for update of d skip locked}";
    RECOVER = "UPDATE delivery SET status = 'pending', run_at = $3, claimed_by = NULL
        WHERE id = $1 AND status = 'processing' AND claim_token = $2";
    PRUNE = "DELETE FROM delivery WHERE status = 'dead' AND coalesce(last_attempted_at, created_at) < $1";
    BACKLOG = "SELECT status, count(*) FROM delivery GROUP BY status";
}

/// Deliveries that one server has claimed, and when the next one is due.
#[derive(Debug)]
pub struct Claim {
    /// To be sent now.
    pub deliveries: Vec<Claimed>,
    /// When the earliest of the others is due.
    pub next_due: Option<Timestamp>,
}

/// How much of a claim each integration may take, so that a slow target does not take it all.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// Takes nothing now.
    pub closed: Vec<IntegrationId>,
    /// Takes one.
    pub slow: Vec<IntegrationId>,
    /// What any other takes.
    pub most: i64,
}

impl Default for Lanes {
    /// No bounds.
    fn default() -> Self {
        Self { closed: Vec::new(), slow: Vec::new(), most: i64::MAX }
    }
}

/// One attempt at a delivery: what is said of it wherever it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The delivery, whose id the receiver sees in every attempt.
    pub id: DeliveryId,
    /// Whose.
    pub tenant_id: TenantId,
    /// Where it goes.
    pub integration_id: IntegrationId,
    /// That integration's name.
    pub integration_name: String,
    /// The journal event behind it, or the occurrence of a report.
    pub event_id: Uuid,
    /// What it announces.
    pub event_type: String,
    /// The type of the journal event behind it.
    pub cause_type: String,
    /// Attempts, this one included.
    pub attempt_count: i64,
    /// What a mark must name.
    pub claim_token: i64,
}

/// One claimed delivery.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The attempt that it was claimed for.
    pub attempt: Attempt,
    /// The notification, as JSON.
    pub payload: String,
    /// Where it goes.
    pub integration: Arc<Integration>,
}

/// The end of one attempt.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Which attempt.
    pub attempt: Attempt,
    /// How it ended.
    pub outcome: Outcome,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It arrived: the row goes.
    Sent,
    /// Another attempt is due.
    Retry {
        /// When.
        run_at: Timestamp,
        /// Why.
        error: Failure,
    },
    /// Given up.
    Dead {
        /// Why.
        error: Failure,
        /// Whether its target is gone for good.
        disable_integration: bool,
    },
}

impl Store {
    /// Claims due deliveries for `server`, at most `limit`, and of each integration no more than its lane takes.
    pub async fn delivery_claim(&self, server: Uuid, now: Timestamp, limit: i64, lanes: Lanes) -> Result<Claim, Error> {
        let done = self.db.write((server, now, limit, lanes), |tx, (server, now, limit, lanes)| {
            Box::pin(claim(tx, *server, *now, *limit, lanes))
        });
        Ok(done.await?.value)
    }

    /// Marks attempts, in one transaction; which marks landed. One that did not belongs to another claim by now.
    pub async fn delivery_finish(&self, marks: Vec<Mark>, now: Timestamp) -> Result<Vec<bool>, Error> {
        let input = (marks, self.keeps_attempts, now);
        let done = self.db.write(input, |tx, (marks, keep, now)| Box::pin(finish(tx, marks, *keep, *now)));
        Ok(done.await?.value)
    }

    /// Returns deliveries that nobody works on any more: those in hand for longer than `stale_us`, and those of
    /// servers that are gone. Those over their budget die. How many.
    pub async fn delivery_recover(&self, now: Timestamp, stale_us: i64, max_attempts: u32) -> Result<usize, Error> {
        let input = (now, stale_us, max_attempts, self.keeps_attempts);
        let done = self.db.write(input, |tx, (now, stale_us, max_attempts, keep)| {
            Box::pin(recover(tx, *now, *stale_us, *max_attempts, *keep))
        });
        Ok(done.await?.value)
    }

    /// Deletes dead deliveries whose last attempt was before `before`; how many.
    pub async fn delivery_prune(&self, before: Timestamp) -> Result<u64, Error> {
        let done =
            self.db.write(before, |tx, before| Box::pin(async move { tx.execute(&PRUNE, params![*before]).await }));
        Ok(done.await?.value)
    }

    /// How many deliveries are stored in each status.
    pub async fn delivery_backlog(&self) -> Result<Vec<(String, i64)>, Error> {
        self.db
            .read((), |tx, ()| {
                Box::pin(async move {
                    let rows = tx.query(&BACKLOG, params![]).await?;
                    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
                })
            })
            .await
    }
}

async fn claim(tx: &mut Tx, server: Uuid, now: Timestamp, limit: i64, lanes: &Lanes) -> Result<Claim, Error> {
    let statement = match tx.dialect() {
        Dialect::Postgres => &twin::postgres::claim::CLAIM,
        Dialect::Sqlite => &twin::sqlite::claim::CLAIM,
    };
    let uuids = |ids: &[IntegrationId]| ids.iter().map(|id| id.uuid()).collect::<Vec<_>>();
    let values = params![now, server, limit, uuids(&lanes.closed), uuids(&lanes.slow), lanes.most];
    let rows = tx.query(statement, values).await?;
    let mut wanted = rows.iter().map(|row| row.get(2)).collect::<Result<Vec<Uuid>, _>>()?;
    wanted.sort_unstable();
    wanted.dedup();
    let mut integrations: HashMap<IntegrationId, Arc<Integration>> = HashMap::new();
    if !wanted.is_empty() {
        for row in tx.query(&integrations::BY_IDS, params![wanted]).await? {
            let integration = Integration::read(&row)?;
            integrations.insert(integration.id, Arc::new(integration));
        }
    }
    let mut deliveries = Vec::with_capacity(rows.len());
    for row in &rows {
        let integration =
            integrations.get(&row.get(2)?).ok_or_else(|| Error::Corrupt("delivery.integration_id".into()))?;
        let attempt = Attempt {
            id: row.get(0)?,
            tenant_id: row.get(1)?,
            integration_id: integration.id,
            integration_name: integration.name.clone(),
            event_id: row.get(8)?,
            event_type: row.get(3)?,
            cause_type: row.get(4)?,
            attempt_count: row.get(5)?,
            claim_token: row.get(6)?,
        };
        deliveries.push(Claimed { attempt, payload: row.get(7)?, integration: Arc::clone(integration) });
    }
    let next_due = tx.query_one(&NEXT_DUE, params![]).await?.get(0)?;
    Ok(Claim { deliveries, next_due })
}

async fn finish(tx: &mut Tx, marks: &[Mark], keep: bool, now: Timestamp) -> Result<Vec<bool>, Error> {
    let mut landed = vec![false; marks.len()];
    let (mut sent, mut retry, mut dead) = (Vec::new(), Vec::new(), Vec::new());
    for (at, mark) in marks.iter().enumerate() {
        let key = [Value::from(mark.attempt.id), mark.attempt.claim_token.into()];
        match &mark.outcome {
            Outcome::Sent => sent.push((at, key.to_vec())),
            Outcome::Retry { run_at, error } => {
                retry.push((at, [&key[..], &[Value::from(*run_at), error.text.as_str().into()]].concat()));
            }
            Outcome::Dead { error, .. } => dead.push((at, [&key[..], &[Value::from(error.text.as_str())]].concat())),
        }
    }
    for (statement, batch) in [(&SENT, sent), (&RETRY, retry), (&DEAD, dead)] {
        let (places, rows): (Vec<usize>, Vec<Vec<Value>>) = batch.into_iter().unzip();
        if !rows.is_empty() {
            for (at, touched) in places.into_iter().zip(tx.execute_each(statement, &rows).await?) {
                landed[at] = touched == 1;
            }
        }
    }
    let ended: Vec<&Mark> = marks.iter().zip(&landed).filter(|(_, landed)| **landed).map(|(mark, _)| mark).collect();
    for mark in &ended {
        if let Outcome::Dead { error, disable_integration } = &mark.outcome {
            bury(tx, &mark.attempt, error, *disable_integration, now).await?;
        }
    }
    history::note(tx, &ended, keep, now).await?;
    Ok(landed)
}

/// Journals a death, unless that could go round in circles, and disables an integration whose target is gone.
async fn bury(tx: &mut Tx, dead: &Attempt, error: &Failure, disable: bool, now: Timestamp) -> Result<(), Error> {
    let change = Change::by_server(dead.tenant_id, now);
    if may_journal_death(&dead.cause_type) {
        let payload = DeliveryDead {
            integration_id: dead.integration_id,
            integration_name: dead.integration_name.clone(),
            event_type: dead.event_type.clone(),
            attempt_count: dead.attempt_count,
            error_class: error.class.as_str().to_owned(),
        };
        tx.append(change.event(&DELIVERY_DEAD, dead.id, Lies::NOWHERE, &payload)?);
    }
    if disable {
        let (tenant, integration) = (dead.tenant_id, dead.integration_id);
        if tx.query_opt(&DISABLE_LOCK, params![tenant, integration]).await?.is_some() {
            let row = tx.query_one(&integrations::GET, params![tenant, integration]).await?;
            let mut i = Integration::read(&row)?;
            i.enabled = false;
            i.disabled_reason = Some(error.text.clone());
            i.version += 1;
            i.updated_at = now;
            integrations::save(tx, tenant, &i).await?;
            let payload = IntegrationChange { name: i.name, provider: i.provider, changes: vec!["enabled".into()] };
            tx.append(change.event(&INTEGRATION_DISABLED, integration, Lies::NOWHERE, &payload)?);
        }
    }
    Ok(())
}

async fn recover(tx: &mut Tx, now: Timestamp, stale_us: i64, max_attempts: u32, keep: bool) -> Result<usize, Error> {
    use courant_core::delivery::{Recovery, RetryPolicy, recover};
    let policy = RetryPolicy { max_attempts, ..RetryPolicy::default() };
    let bounds = params![now.plus_micros(-stale_us), now.plus_micros(-GONE_AFTER_US)];
    let rows = tx.query(&STALE, bounds).await?;
    let (mut back, mut dead) = (Vec::new(), Vec::new());
    for row in &rows {
        let attempt = Attempt {
            id: row.get(0)?,
            tenant_id: row.get(1)?,
            integration_id: row.get(2)?,
            integration_name: row.get(3)?,
            event_id: row.get(8)?,
            event_type: row.get(4)?,
            cause_type: row.get(5)?,
            attempt_count: row.get(6)?,
            claim_token: row.get(7)?,
        };
        match recover(&policy, attempt.attempt_count) {
            Recovery::Pending => back.push(params![attempt.id, attempt.claim_token, now].to_vec()),
            Recovery::Dead(error) => {
                dead.push(Mark { attempt, outcome: Outcome::Dead { error, disable_integration: false } });
            }
        }
    }
    if !back.is_empty() {
        tx.execute_each(&RECOVER, &back).await?;
    }
    finish(tx, &dead, keep, now).await?;
    Ok(rows.len())
}
