//! What operators see of the outbox, and the retry.

use courant_api::notify::{
    DeliveriesRetried, DeliveriesRetry, DeliveryStatus, DeliveryView, RetryOutcome, RetryResult, Subject,
};
use courant_api::{DeliveryId, DeploymentId, IntegrationId, Permission, Resource, StackId};
use courant_core::delivery::requeue;
use serde::Deserialize;
use uuid::Uuid;

use crate::access::allows_names;
use crate::change::{Change, Changed};
use crate::db::{Row, params, statements};
use crate::{Caller, Error, Page, PageKey, Store, count};

statements! { "deliveries":
    LIST = "SELECT d.id, d.integration_id, i.name, d.event_type, d.status, d.attempt_count, d.last_error, d.run_at,
            d.created_at, d.payload
        FROM delivery d JOIN integration i ON i.tenant_id = d.tenant_id AND i.id = d.integration_id
        WHERE d.tenant_id = $1 AND d.id < $2 AND (NOT $3 OR d.status IN {texts $4})
            AND (NOT $5 OR d.integration_id = $6) AND (NOT $7 OR d.event_type IN {texts $8})
        ORDER BY d.id DESC LIMIT $9";
    LOCK = "SELECT d.status, i.name FROM delivery d JOIN integration i ON i.tenant_id = d.tenant_id AND i.id = d.integration_id
        WHERE d.tenant_id = $1 AND d.id = $2 {for update of d}";
    NAME_OF = "SELECT i.name FROM delivery d JOIN integration i ON i.tenant_id = d.tenant_id AND i.id = d.integration_id
        WHERE d.tenant_id = $1 AND d.id = $2";
    DEAD_OF = "SELECT d.integration_id, i.name, count(*)
        FROM delivery d JOIN integration i ON i.tenant_id = d.tenant_id AND i.id = d.integration_id
        WHERE d.tenant_id = $1 AND d.status = 'dead' AND (NOT $2 OR d.integration_id = $3)
            AND (NOT $4 OR d.event_type IN {texts $5}) AND (NOT $6 OR d.last_error = $7)
        GROUP BY d.integration_id, i.name";
    DEAD_LOCK = "SELECT d.id FROM delivery d
        WHERE d.tenant_id = $1 AND d.status = 'dead' AND d.integration_id IN {uuids $2}
            AND (NOT $3 OR d.event_type IN {texts $4}) AND (NOT $5 OR d.last_error = $6)
        ORDER BY d.id LIMIT $7 {for update of d skip locked}";
    REQUEUE = "UPDATE delivery SET status = 'pending', run_at = $3, attempt_count = 0, last_error = NULL
        WHERE tenant_id = $1 AND id = $2";
}

/// Most deliveries that a retry of many queues when nothing is asked.
const DEFAULT_RETRIED: i64 = 1000;

const ABSENT: Error = Error::NotFound("notification delivery");

/// Which deliveries a list has; filters that are given all hold.
#[derive(Clone, Debug, Default)]
pub struct DeliveryQuery {
    /// Only those with one of these statuses; empty: whatever their status.
    pub statuses: Vec<DeliveryStatus>,
    /// Only those to this integration.
    pub integration_id: Option<IntegrationId>,
    /// Only those that announce one of these; empty: whatever they announce.
    pub event_types: Vec<String>,
}

/// The parts of a stored notification that a list shows.
#[derive(Deserialize)]
struct Shown {
    subject: Subject,
    #[serde(default)]
    deployment: Option<OfStack>,
    #[serde(default)]
    dependent: Option<OfStack>,
}

/// The deployment and the stack that a detail is about.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfStack {
    deployment_id: DeploymentId,
    stack_id: StackId,
    stack_name: String,
}

impl Shown {
    /// Which deployment, and of which stack by id and name.
    fn of_stack(&self) -> (Option<String>, Option<String>, Option<String>) {
        match self.deployment.as_ref().or(self.dependent.as_ref()) {
            Some(of) => {
                (Some(of.deployment_id.to_string()), Some(of.stack_id.to_string()), Some(of.stack_name.clone()))
            }
            None if self.subject.kind == "stack" => {
                (None, Some(self.subject.id.clone()), Some(self.subject.name.clone()))
            }
            None => (None, None, None),
        }
    }
}

fn view(row: &Row) -> Result<DeliveryView, Error> {
    let corrupt = |what: &str| Error::Corrupt(format!("delivery.{what}"));
    let payload: Shown = serde_json::from_str(&row.get::<String>(9)?).map_err(|_| corrupt("payload"))?;
    let (deployment_id, stack_id, stack_name) = payload.of_stack();
    Ok(DeliveryView {
        id: row.get(0)?,
        integration_id: row.get(1)?,
        integration_name: row.get(2)?,
        event_type: row.get(3)?,
        status: row.get::<String>(4)?.parse().map_err(|()| corrupt("status"))?,
        attempt_count: row.get(5)?,
        last_error: row.get(6)?,
        run_at: row.get(7)?,
        created_at: row.get(8)?,
        deployment_id,
        stack_id,
        stack_name,
        subject: payload.subject,
    })
}

impl Store {
    /// Stored deliveries whose integration the caller may read, newest first.
    pub async fn delivery_list(
        &self,
        caller: &Caller,
        query: DeliveryQuery,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<DeliveryView>, Error> {
        self.db
            .read((caller.clone(), query, key, limit), |tx, (caller, query, key, limit)| {
                Box::pin(async move {
                    let mut items: Vec<DeliveryView> = Vec::new();
                    let mut before = key.unwrap_or(Uuid::max());
                    let wanted: Vec<String> = query.statuses.iter().map(|s| s.as_str().to_owned()).collect();
                    loop {
                        let values = params![
                            caller.tenant_id,
                            before,
                            !wanted.is_empty(),
                            wanted.clone(),
                            query.integration_id.is_some(),
                            query.integration_id.map_or(Uuid::nil(), IntegrationId::uuid),
                            !query.event_types.is_empty(),
                            query.event_types.clone(),
                            *limit + 1
                        ];
                        let rows = tx.query(&LIST, values).await?;
                        let read = Permission::NotificationIntegrationRead;
                        let shown = allows_names(&caller.rights, read, rows.iter().map(|row| row.get(2)))?;
                        for (row, shown) in rows.iter().zip(shown) {
                            before = row.get(0)?;
                            if shown {
                                if count(&items) == *limit {
                                    let next = items.last().map(|d| d.id.uuid());
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

    /// That a delivery is stored whose integration the caller may read.
    pub async fn delivery_seen(&self, caller: &Caller, id: DeliveryId) -> Result<(), Error> {
        let found = self.db.read((caller.tenant_id, id), |tx, (tenant, id)| {
            Box::pin(async move {
                tx.query_opt(&NAME_OF, params![*tenant, *id]).await?.map(|row| row.get::<String>(0)).transpose()
            })
        });
        match found.await? {
            Some(name) => {
                let resource = Resource::NotificationIntegration(name);
                if caller.rights.allows_on(Permission::NotificationIntegrationRead, &resource)? {
                    Ok(())
                } else {
                    Err(ABSENT)
                }
            }
            None => Err(ABSENT),
        }
    }

    /// Queues a dead delivery again, with a fresh budget; one that is queued or in hand is left alone.
    pub async fn delivery_requeue(&self, change: Change, id: DeliveryId) -> Result<Changed<RetryResult>, Error> {
        self.db
            .change(change, id, |tx, (change, id)| {
                Box::pin(async move {
                    let row = tx.query_opt(&LOCK, params![change.tenant_id, *id]).await?.ok_or(ABSENT)?;
                    let name = Resource::NotificationIntegration(row.get(1)?);
                    if !change.rights.allows_on(Permission::NotificationIntegrationUpdate, &name)? {
                        return Err(ABSENT);
                    }
                    let status =
                        row.get::<String>(0)?.parse().map_err(|()| Error::Corrupt("delivery.status".into()))?;
                    let outcome = requeue(status);
                    if outcome == RetryOutcome::Requeued {
                        tx.execute(&REQUEUE, params![change.tenant_id, *id, change.now]).await?;
                    }
                    Ok(RetryResult { outcome })
                })
            })
            .await
    }

    /// Queues dead deliveries again that match, the oldest first, each with a fresh budget; only those whose integration the
    /// actor may update count at all.
    pub async fn deliveries_requeue(
        &self,
        change: Change,
        wish: DeliveriesRetry,
    ) -> Result<Changed<DeliveriesRetried>, Error> {
        self.db
            .change(change, wish, |tx, (change, wish)| {
                Box::pin(async move {
                    let types = (!wish.event_types.is_empty(), wish.event_types.clone());
                    let error = (wish.last_error.is_some(), wish.last_error.clone().unwrap_or_default());
                    let values = params![
                        change.tenant_id,
                        wish.integration_id.is_some(),
                        wish.integration_id.map_or(Uuid::nil(), IntegrationId::uuid),
                        types.0,
                        types.1.clone(),
                        error.0,
                        error.1.clone()
                    ];
                    let rows = tx.query(&DEAD_OF, values).await?;
                    let update = Permission::NotificationIntegrationUpdate;
                    let allowed = allows_names(&change.rights, update, rows.iter().map(|row| row.get(1)))?;
                    let (mut matched, mut integrations) = (0, Vec::new());
                    for (row, allowed) in rows.iter().zip(allowed) {
                        if allowed {
                            matched += row.get::<i64>(2)?;
                            integrations.push(row.get::<Uuid>(0)?);
                        }
                    }
                    let mut requeued = 0;
                    if !wish.dry_run.unwrap_or(false) && matched > 0 {
                        let limit = wish.limit.unwrap_or(DEFAULT_RETRIED);
                        let values = params![change.tenant_id, integrations, types.0, types.1, error.0, error.1, limit];
                        let ids = tx.query(&DEAD_LOCK, values).await?;
                        let row = |row: &Row| Ok(params![change.tenant_id, row.get::<Uuid>(0)?, change.now].to_vec());
                        let rows = ids.iter().map(row).collect::<Result<Vec<_>, Error>>()?;
                        if !rows.is_empty() {
                            tx.execute_each(&REQUEUE, &rows).await?;
                        }
                        requeued = count(&rows);
                    }
                    Ok(DeliveriesRetried { matched, requeued, remaining: matched - requeued })
                })
            })
            .await
    }
}
