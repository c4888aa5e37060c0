-- Where notifications go. auth_sealed is encrypted and bound to (tenant_id, id).
CREATE TABLE integration (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    name text NOT NULL,
    provider text NOT NULL,
    enabled boolean NOT NULL,
    paused boolean NOT NULL,
    disabled_reason text,
    journal_types text NOT NULL,
    workspace_id uuid,
    provider_config text NOT NULL,
    auth_sealed bytea,
    saved_by uuid NOT NULL,
    created_event_id uuid NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, name),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
);

-- The outbox: one row per (integration, event), deleted once sent. What is announced is checked by the code alone:
-- a second list here would go stale and fail enqueues.
CREATE TABLE delivery (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    integration_id uuid NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    cause_type text NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'processing', 'failed', 'dead')),
    run_at bigint NOT NULL,
    attempt_count bigint NOT NULL,
    claim_token bigint NOT NULL,
    claimed_by uuid,
    last_error text,
    last_attempted_at bigint,
    payload text NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (integration_id, event_id),
    FOREIGN KEY (tenant_id, integration_id) REFERENCES integration (tenant_id, id)
);
CREATE INDEX delivery_due ON delivery (run_at, id) WHERE status IN ('pending', 'failed');
CREATE INDEX delivery_in_hand ON delivery (last_attempted_at) WHERE status = 'processing';
CREATE INDEX delivery_by_age ON delivery (tenant_id, created_at, id);
ALTER TABLE delivery SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
