//! Differs because SQLite has neither row locks to skip nor arrays.

use crate::db::{Dialect, Statement};

/// Takes due deliveries for server $2 at time $1, at most $3.
pub(crate) static CLAIM: Statement = Statement::only(
    "claim.sqlite",
    Dialect::Sqlite,
    "UPDATE delivery SET status = 'processing', attempt_count = attempt_count + 1, claim_token = claim_token + 1,
        claimed_by = $2, last_attempted_at = $1
    WHERE id IN (
        SELECT d.id FROM delivery d
        WHERE d.status IN ('pending', 'failed') AND d.run_at <= $1
            AND NOT EXISTS (SELECT 1 FROM integration i WHERE i.id = d.integration_id AND i.paused)
        ORDER BY d.run_at, d.id LIMIT $3)
    RETURNING id, tenant_id, integration_id, event_type, cause_type, attempt_count, claim_token, payload",
);
