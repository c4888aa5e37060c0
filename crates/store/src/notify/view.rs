//! What operators see of the outbox, and the retry.

use courant_api::notify::{DeliveryStatus, DeliveryView, RetryOutcome, RetryResult, Subject};
use courant_api::{DeliveryId, DeploymentId, Permission, Resource, StackId};
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
        ORDER BY d.id DESC LIMIT $5";
    LOCK = "SELECT d.status, i.name FROM delivery d JOIN integration i ON i.tenant_id = d.tenant_id AND i.id = d.integration_id
        WHERE d.tenant_id = $1 AND d.id = $2 {for update of d}";
    REQUEUE = "UPDATE delivery SET status = 'pending', run_at = $3, attempt_count = 0, last_error = NULL
        WHERE tenant_id = $1 AND id = $2";
}

const ABSENT: Error = Error::NotFound("notification delivery");

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
            Some(of) => (Some(of.deployment_id.to_string()), Some(of.stack_id.to_string()), Some(of.stack_name.clone())),
            None if self.subject.kind == "stack" => (None, Some(self.subject.id.clone()), Some(self.subject.name.clone())),
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
    /// Stored deliveries whose integration the caller may read, newest first; no statuses stand for all.
    pub async fn delivery_list(
        &self,
        caller: &Caller,
        statuses: Vec<DeliveryStatus>,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<DeliveryView>, Error> {
        self.db
            .read((caller.clone(), statuses, key, limit), |tx, (caller, statuses, key, limit)| {
                Box::pin(async move {
                    let mut items: Vec<DeliveryView> = Vec::new();
                    let mut before = key.unwrap_or(Uuid::max());
                    let wanted: Vec<String> = statuses.iter().map(|s| s.as_str().to_owned()).collect();
                    loop {
                        let values = params![caller.tenant_id, before, !wanted.is_empty(), wanted.clone(), *limit + 1];
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
}
