//! The report of findings: who wants it, and its delivery with the stamp that it was sent, in one transaction. A stamp
//! without its delivery would leave a report out, a delivery without its stamp would repeat it.

use courant_api::deployments::FindingCounts;
use courant_api::notify::Notification;
use courant_api::{IntegrationId, TenantId, Timestamp};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::change::to_json;
use crate::db::{params, statements};
use crate::{Error, Store};

statements! { "digest":
    WANTED = "SELECT i.tenant_id, i.id, i.digest_schedule, i.edited_at, i.digest_sent_at, i.digest_counts FROM integration i
        WHERE i.digest_schedule IS NOT NULL AND i.enabled AND i.events LIKE '%\"explore_findings_changed\"%' AND i.id > $1
        ORDER BY i.id LIMIT $2";
    LOCK = "SELECT i.digest_sent_at, i.edited_at FROM integration i WHERE i.tenant_id = $1 AND i.id = $2 AND i.enabled
            AND i.digest_schedule = $3 {for update}";
    ENQUEUE = "INSERT INTO delivery (id, tenant_id, integration_id, event_id, event_type, cause_type, status, run_at,
            attempt_count, claim_token, payload, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, 0, 0, $8, $7)
        ON CONFLICT (integration_id, event_id) DO NOTHING";
    STAMP = "UPDATE integration SET digest_sent_at = $3, digest_counts = $4 WHERE tenant_id = $1 AND id = $2";
}

/// An integration that wants reports.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestWanted {
    /// Whose.
    pub tenant_id: TenantId,
    /// Which integration.
    pub integration_id: IntegrationId,
    /// When, as it was saved.
    pub schedule: String,
    /// From when on an occurrence counts: when the last report was sent, else when a person last changed the integration.
    pub since: Timestamp,
    /// What the last report told.
    pub previous: Option<FindingCounts>,
}

/// A report to be sent.
#[derive(Clone, Debug)]
pub struct Digest {
    /// To whom.
    pub to: DigestWanted,
    /// For which occurrence of the schedule.
    pub occurrence: Timestamp,
    /// What it tells.
    pub counts: FindingCounts,
    /// The same, in words.
    pub notification: Notification,
}

impl Store {
    /// The enabled integrations that want reports, after this one, at most `limit`.
    pub async fn digests_wanted(&self, after: Option<IntegrationId>, limit: i64) -> Result<Vec<DigestWanted>, Error> {
        self.db
            .read((after, limit), |tx, (after, limit)| {
                Box::pin(async move {
                    let after = after.map_or(Uuid::nil(), IntegrationId::uuid);
                    let mut wanted = Vec::new();
                    for row in tx.query(&WANTED, params![after, *limit]).await? {
                        let edited_at: Timestamp = row.get(3)?;
                        let sent_at: Option<Timestamp> = row.get(4)?;
                        wanted.push(DigestWanted {
                            tenant_id: row.get(0)?,
                            integration_id: row.get(1)?,
                            schedule: row.get(2)?,
                            since: sent_at.unwrap_or(edited_at),
                            previous: row.get::<Option<String>>(5)?.as_deref().map(json).transpose()?,
                        });
                    }
                    Ok(wanted)
                })
            })
            .await
    }

    /// Queues a report and stamps it, unless somebody else has sent it or the integration has changed meanwhile; whether it
    /// was queued.
    pub async fn digest_send(&self, digest: Digest, now: Timestamp) -> Result<bool, Error> {
        let done = self.db.write((digest, now), |tx, (digest, now)| {
            Box::pin(async move {
                let DigestWanted { tenant_id, integration_id, schedule, since, .. } = &digest.to;
                let Some(row) = tx.query_opt(&LOCK, params![*tenant_id, *integration_id, schedule.as_str()]).await?
                else {
                    return Ok(false);
                };
                let sent_at: Option<Timestamp> = row.get(0)?;
                if sent_at.unwrap_or(row.get(1)?) != *since {
                    return Ok(false);
                }
                // One delivery an occurrence: its id is made of it, where others have their event's.
                let occurrence = Uuid::from_u128(u128::from(digest.occurrence.micros().unsigned_abs()));
                let notification = &digest.notification;
                let told = notification.event_type.as_str();
                let row = params![
                    notification.id,
                    *tenant_id,
                    *integration_id,
                    occurrence,
                    told,
                    notification.event.as_ref().map_or(told, |event| &event.event_type),
                    *now,
                    to_json(notification)?
                ];
                tx.execute(&ENQUEUE, row).await?;
                let stamp = params![*tenant_id, *integration_id, *now, to_json(&digest.counts)?];
                tx.execute(&STAMP, stamp).await?;
                Ok(true)
            })
        });
        Ok(done.await?.value)
    }
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|_| Error::Corrupt("integration.digest_counts".into()))
}
