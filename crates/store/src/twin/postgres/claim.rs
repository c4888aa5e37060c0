//! Differs because several servers claim at once, and because the planner must not be left to join: written as
//! UPDATE … FROM (… LIMIT $n) a generic plan scans the whole table.

use crate::db::{Dialect, Statement};

/// Takes due deliveries for server $2 at time $1, at most $3, skipping those that another server is taking.
pub(crate) static CLAIM: Statement = Statement::only(
    "claim.postgres",
    Dialect::Postgres,
    "UPDATE delivery SET status = 'processing', attempt_count = attempt_count + 1, claim_token = claim_token + 1,
        claimed_by = $2, last_attempted_at = $1
    WHERE id = ANY(ARRAY(
        SELECT d.id FROM delivery d
        WHERE d.status IN ('pending', 'failed') AND d.run_at <= $1
            AND NOT EXISTS (SELECT 1 FROM integration i WHERE i.id = d.integration_id AND i.paused)
        ORDER BY d.run_at, d.id LIMIT $3 FOR UPDATE OF d SKIP LOCKED))
    RETURNING id, tenant_id, integration_id, event_type, cause_type, attempt_count, claim_token, payload",
);
