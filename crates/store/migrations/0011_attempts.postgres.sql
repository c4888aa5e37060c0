-- Whether an integration works: one row each, changed with the marks of its deliveries.
CREATE TABLE integration_health (
    integration_id uuid PRIMARY KEY,
    last_success_at bigint,
    last_error_at bigint,
    last_error text,
    consecutive_failures bigint NOT NULL
);

-- What was tried, apart from the outbox, whose rows go when they are sent. Bounded by age and by number.
CREATE TABLE delivery_attempt (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    integration_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    attempt bigint NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('sent', 'failed', 'dead')),
    error text,
    at bigint NOT NULL
);
CREATE INDEX delivery_attempt_by_age ON delivery_attempt (at);
CREATE INDEX delivery_attempt_by_tenant ON delivery_attempt (tenant_id, id);
CREATE INDEX delivery_attempt_by_integration ON delivery_attempt (integration_id, id);
CREATE INDEX delivery_attempt_by_event ON delivery_attempt (tenant_id, event_id, id);

CREATE INDEX delivery_dead ON delivery (tenant_id, integration_id, id) WHERE status = 'dead';
