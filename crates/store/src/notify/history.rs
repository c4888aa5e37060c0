//! What was tried and whether an integration works: apart from the outbox, whose rows go when they are sent.
//!
//! Both are written with the marks of attempts, in their transaction. The history is bounded by age and by number, and an
//! operator may do without it.

use std::collections::BTreeMap;

use courant_api::notify::{AttemptOutcome, AttemptView, IntegrationHealth};
use courant_api::{DeliveryId, EventId, IntegrationId, Permission, Timestamp};
use uuid::Uuid;

use super::outbox::{Mark, Outcome};
use crate::access::allows_names;
use crate::change::fresh_id;
use crate::db::{Row, Tx, Value, params, statements};
use crate::{Caller, Error, Page, PageKey, Store, count};

statements! { "history":
    KEEP = "INSERT INTO delivery_attempt (id, tenant_id, integration_id, delivery_id, event_id, event_type, attempt, outcome,
            error, at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    WORKS = "INSERT INTO integration_health (integration_id, last_success_at, consecutive_failures) VALUES ($1, $2, 0)
        ON CONFLICT (integration_id) DO UPDATE SET last_success_at = excluded.last_success_at, consecutive_failures = 0";
    FAILS = "INSERT INTO integration_health (integration_id, last_error_at, last_error, consecutive_failures)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (integration_id) DO UPDATE SET last_error_at = excluded.last_error_at, last_error = excluded.last_error,
            consecutive_failures = integration_health.consecutive_failures + excluded.consecutive_failures";
    HEALTH = "SELECT h.last_success_at, h.last_error_at, h.last_error, h.consecutive_failures FROM integration_health h
        WHERE h.integration_id = $1";
    FORGET_HEALTH = "DELETE FROM integration_health WHERE integration_id = $1";
    FORGET_ATTEMPTS = "DELETE FROM delivery_attempt WHERE integration_id = $1";
    LIST = "SELECT a.id, a.integration_id, i.name, a.delivery_id, a.event_id, a.event_type, a.attempt, a.outcome, a.error, a.at
        FROM delivery_attempt a JOIN integration i ON i.tenant_id = a.tenant_id AND i.id = a.integration_id
        WHERE a.tenant_id = $1 AND a.id < $2 AND (NOT $3 OR a.integration_id = $4) AND (NOT $5 OR a.delivery_id = $6)
            AND (NOT $7 OR a.event_id = $8)
        ORDER BY a.id DESC LIMIT $9";
    PRUNE = "DELETE FROM delivery_attempt WHERE at < $1";
    PRUNE_TO = "DELETE FROM delivery_attempt
        WHERE at < (SELECT a.at FROM delivery_attempt a ORDER BY a.at DESC LIMIT 1 OFFSET $1)";
}

/// Which attempts a list has; filters that are given all hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttemptQuery {
    /// Only those to this integration.
    pub integration_id: Option<IntegrationId>,
    /// Only those of this delivery.
    pub delivery_id: Option<DeliveryId>,
    /// Only those that told of this event.
    pub event_id: Option<EventId>,
}

/// Notes what attempts say of their integrations and, where that is wanted, keeps what became of them.
pub(super) async fn note(tx: &mut Tx, marks: &[&Mark], keep: bool, now: Timestamp) -> Result<(), Error> {
    if marks.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<Vec<Value>> = Vec::with_capacity(marks.len());
    // By integration, in one order, so that two servers that mark at once do not wait for one another in a circle.
    let mut by_integration: BTreeMap<IntegrationId, (bool, i64, Option<&str>)> = BTreeMap::new();
    for mark in marks {
        let attempt = &mark.attempt;
        let (outcome, error) = match &mark.outcome {
            Outcome::Sent => (AttemptOutcome::Sent, None),
            Outcome::Retry { error, .. } => (AttemptOutcome::Failed, Some(error.text.as_str())),
            Outcome::Dead { error, .. } => (AttemptOutcome::Dead, Some(error.text.as_str())),
        };
        let (worked, failures, last) = by_integration.entry(attempt.integration_id).or_default();
        match error {
            None => (*worked, *failures) = (true, 0),
            Some(error) => (*failures, *last) = (*failures + 1, Some(error)),
        }
        rows.push(
            params![
                fresh_id(),
                attempt.tenant_id,
                attempt.integration_id,
                attempt.id,
                attempt.event_id,
                &attempt.event_type,
                attempt.attempt_count,
                outcome.as_str(),
                error,
                now
            ]
            .to_vec(),
        );
    }
    let (mut works, mut fails): (Vec<Vec<Value>>, Vec<Vec<Value>>) = (Vec::new(), Vec::new());
    for (id, (worked, failures, error)) in by_integration {
        if worked {
            works.push(params![id, now].to_vec());
        }
        if error.is_some() {
            fails.push(params![id, now, error, failures].to_vec());
        }
    }
    if !keep {
        rows.clear();
    }
    for (statement, rows) in [(&KEEP, rows), (&WORKS, works), (&FAILS, fails)] {
        if !rows.is_empty() {
            tx.execute_each(statement, &rows).await?;
        }
    }
    Ok(())
}

/// Forgets an integration that is deleted.
pub(super) async fn forget(tx: &mut Tx, id: IntegrationId) -> Result<(), Error> {
    tx.execute(&FORGET_HEALTH, params![id]).await?;
    tx.execute(&FORGET_ATTEMPTS, params![id]).await.map(|_| ())
}

/// Whether an integration works.
pub(super) async fn health_of(tx: &mut Tx, id: IntegrationId) -> Result<IntegrationHealth, Error> {
    let row = tx.query_opt(&HEALTH, params![id]).await?;
    row.map_or_else(|| Ok(IntegrationHealth::default()), |row| health(&row, 0))
}

/// What a row says of an integration's health, from this column on.
pub(super) fn health(row: &Row, column: usize) -> Result<IntegrationHealth, Error> {
    Ok(IntegrationHealth {
        last_success_at: row.get(column)?,
        last_error_at: row.get(column + 1)?,
        last_error: row.get(column + 2)?,
        consecutive_failures: row.get::<Option<i64>>(column + 3)?.unwrap_or(0),
    })
}

fn view(row: &Row) -> Result<AttemptView, Error> {
    Ok(AttemptView {
        id: row.get(0)?,
        integration_id: row.get(1)?,
        integration_name: row.get(2)?,
        delivery_id: row.get(3)?,
        event_id: row.get(4)?,
        event_type: row.get(5)?,
        attempt: row.get(6)?,
        outcome: row.get::<String>(7)?.parse().map_err(|()| Error::Corrupt("delivery_attempt.outcome".into()))?,
        error: row.get(8)?,
        at: row.get(9)?,
    })
}

impl Store {
    /// Attempts at integrations that the caller may read, newest first.
    pub async fn attempt_list(
        &self,
        caller: &Caller,
        query: AttemptQuery,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<AttemptView>, Error> {
        self.db
            .read((caller.clone(), query, key, limit), |tx, (caller, query, key, limit)| {
                Box::pin(async move {
                    let mut items: Vec<AttemptView> = Vec::new();
                    let mut before = key.unwrap_or(Uuid::max());
                    loop {
                        let (integration, delivery, event) = (query.integration_id, query.delivery_id, query.event_id);
                        let values = params![
                            caller.tenant_id,
                            before,
                            integration.is_some(),
                            integration.map_or(Uuid::nil(), IntegrationId::uuid),
                            delivery.is_some(),
                            delivery.map_or(Uuid::nil(), DeliveryId::uuid),
                            event.is_some(),
                            event.map_or(Uuid::nil(), EventId::uuid),
                            *limit + 1
                        ];
                        let rows = tx.query(&LIST, values).await?;
                        let read = Permission::NotificationIntegrationRead;
                        let shown = allows_names(&caller.rights, read, rows.iter().map(|row| row.get(2)))?;
                        for (row, shown) in rows.iter().zip(shown) {
                            before = row.get(0)?;
                            if shown {
                                if count(&items) == *limit {
                                    let next = items.last().map(|attempt| attempt.id);
                                    return Ok(Page { items, next });
                                }
                                items.push(view(row)?);
                            }
                        }
                        if count(&rows) <= *limit {
                            return Ok(Page { items, next: None });
                        }
                    }
                })
            })
            .await
    }

    /// Forgets attempts from before `before`, and the oldest of what is more than `most`.
    pub async fn attempts_prune(&self, before: Timestamp, most: i64) -> Result<u64, Error> {
        let done = self.db.write((before, most), |tx, (before, most)| {
            Box::pin(async move {
                let old = tx.execute(&PRUNE, params![*before]).await?;
                Ok(old + tx.execute(&PRUNE_TO, params![*most]).await?)
            })
        });
        Ok(done.await?.value)
    }
}
