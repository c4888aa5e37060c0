-- Stacks, their deployments and the runs of these.

CREATE TABLE stack (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    workspace_id BLOB,
    name TEXT NOT NULL,
    -- JSON: keys and values.
    labels TEXT NOT NULL,
    repository TEXT,
    path TEXT,
    pr_plan_mode TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- A deleted stack stays for its deployments and for those that depend on it.
    deleted_at INTEGER,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
) STRICT;
CREATE INDEX stack_live ON stack (tenant_id, id) WHERE deleted_at IS NULL;
CREATE INDEX stack_by_place ON stack (tenant_id, repository, path) WHERE deleted_at IS NULL;

CREATE TABLE stack_dependency (
    tenant_id BLOB NOT NULL,
    stack_id BLOB NOT NULL,
    depends_on_id BLOB NOT NULL,
    triggers INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, stack_id, depends_on_id),
    FOREIGN KEY (tenant_id, stack_id) REFERENCES stack (tenant_id, id),
    FOREIGN KEY (tenant_id, depends_on_id) REFERENCES stack (tenant_id, id)
) STRICT;
CREATE INDEX stack_dependents ON stack_dependency (tenant_id, depends_on_id) WHERE triggers;

CREATE TABLE deployment (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    stack_id BLOB NOT NULL,
    mode TEXT NOT NULL,
    status TEXT NOT NULL,
    -- The kind of its next run, or of the one under way.
    stage TEXT NOT NULL,
    read_only INTEGER NOT NULL,
    promoted INTEGER NOT NULL,
    commit_sha TEXT,
    commit_message TEXT,
    -- JSON.
    origin TEXT NOT NULL,
    pull_request INTEGER,
    url TEXT,
    skipped_reason TEXT,
    error TEXT,
    -- The plan that it applies, or else its latest that succeeded.
    plan_run_id BLOB,
    confirmed_by BLOB,
    -- The stacks whose applies have led to it, its own last.
    chain TEXT NOT NULL,
    -- Since when it waits for its next run.
    pending_since INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, stack_id) REFERENCES stack (tenant_id, id)
) STRICT;
CREATE INDEX deployment_by_stack ON deployment (tenant_id, stack_id, id);
CREATE INDEX deployment_active ON deployment (tenant_id, stack_id)
    WHERE status IN ('pending', 'running', 'awaiting_confirmation');
CREATE INDEX deployment_pending ON deployment (pending_since) WHERE status = 'pending';

CREATE TABLE deployment_run (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    deployment_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    plan_run_id BLOB,
    -- Of a command only how long it is.
    command_bytes INTEGER,
    -- JSON.
    plan_summary TEXT,
    error TEXT,
    started_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    finished_at INTEGER,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, deployment_id) REFERENCES deployment (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX deployment_run_running ON deployment_run (tenant_id, deployment_id) WHERE status = 'running';
CREATE INDEX deployment_run_by_deployment ON deployment_run (tenant_id, deployment_id, id);
CREATE INDEX deployment_run_silent ON deployment_run (heartbeat_at) WHERE status = 'running';
