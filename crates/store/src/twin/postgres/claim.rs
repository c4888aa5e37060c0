//! Differs because several servers claim at once, and because the planner must not be left to join: written as
//! UPDATE … FROM (… LIMIT $n) a generic plan scans the whole table.

use crate::db::{Dialect, Statement};

/// Takes due deliveries for server $2 at time $1, at most $3, skipping those that another server is taking. None of the
/// integrations in $4, one of each in $5, at most $6 of any other: so that no target takes all the places.
pub(crate) static CLAIM: Statement = Statement::only(
    "claim.postgres",
    Dialect::Postgres,
    "UPDATE delivery SET status = 'processing', attempt_count = attempt_count + 1, claim_token = claim_token + 1,
        claimed_by = $2, last_attempted_at = $1
    WHERE id = ANY(ARRAY(
        SELECT d.id FROM delivery d
        WHERE d.status IN ('pending', 'failed') AND d.id = ANY(ARRAY(
            SELECT r.id FROM (
                SELECT w.id, w.run_at, w.integration_id,
                    row_number() OVER (PARTITION BY w.integration_id ORDER BY w.run_at, w.id) AS place
                FROM (
                    SELECT o.id, o.run_at, o.integration_id FROM delivery o
                    WHERE o.status IN ('pending', 'failed') AND o.run_at <= $1 AND o.integration_id <> ALL($4::uuid[])
                        AND NOT EXISTS (SELECT 1 FROM integration i WHERE i.id = o.integration_id AND i.paused)
                    ORDER BY o.run_at, o.id LIMIT 1000
                ) w
            ) r
            WHERE r.place <= CASE WHEN r.integration_id = ANY($5::uuid[]) THEN 1 ELSE CAST($6 AS bigint) END
            ORDER BY r.run_at, r.id LIMIT $3))
        FOR UPDATE SKIP LOCKED))
    RETURNING id, tenant_id, integration_id, event_type, cause_type, attempt_count, claim_token, payload, event_id",
);
