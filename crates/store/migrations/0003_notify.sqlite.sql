-- Where notifications go. auth_sealed is encrypted and bound to (tenant_id, id).
CREATE TABLE integration (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    disabled_reason TEXT,
    journal_types TEXT NOT NULL,
    workspace_id BLOB,
    provider_config TEXT NOT NULL,
    auth_sealed BLOB,
    saved_by BLOB NOT NULL,
    created_event_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, name),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
) STRICT;

-- The outbox: one row per (integration, event), deleted once sent. What is announced is checked by the code alone:
-- a second list here would go stale and fail enqueues.
CREATE TABLE delivery (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    integration_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    event_type TEXT NOT NULL,
    cause_type TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'failed', 'dead')),
    run_at INTEGER NOT NULL,
    attempt_count INTEGER NOT NULL,
    claim_token INTEGER NOT NULL,
    claimed_by BLOB,
    last_error TEXT,
    last_attempted_at INTEGER,
    payload TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (integration_id, event_id),
    FOREIGN KEY (tenant_id, integration_id) REFERENCES integration (tenant_id, id)
) STRICT;
CREATE INDEX delivery_due ON delivery (run_at, id) WHERE status IN ('pending', 'failed');
CREATE INDEX delivery_in_hand ON delivery (last_attempted_at) WHERE status = 'processing';
CREATE INDEX delivery_by_age ON delivery (tenant_id, created_at, id);
