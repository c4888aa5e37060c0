-- Whether an integration works: one row each, changed with the marks of its deliveries.
CREATE TABLE integration_health (
    integration_id BLOB PRIMARY KEY,
    last_success_at INTEGER,
    last_error_at INTEGER,
    last_error TEXT,
    consecutive_failures INTEGER NOT NULL
) STRICT;

-- What was tried, apart from the outbox, whose rows go when they are sent. Bounded by age and by number.
CREATE TABLE delivery_attempt (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    integration_id BLOB NOT NULL,
    delivery_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    event_type TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('sent', 'failed', 'dead')),
    error TEXT,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX delivery_attempt_by_age ON delivery_attempt (at);
CREATE INDEX delivery_attempt_by_tenant ON delivery_attempt (tenant_id, id);
CREATE INDEX delivery_attempt_by_integration ON delivery_attempt (integration_id, id);
CREATE INDEX delivery_attempt_by_event ON delivery_attempt (tenant_id, event_id, id);

CREATE INDEX delivery_dead ON delivery (tenant_id, integration_id, id) WHERE status = 'dead';
