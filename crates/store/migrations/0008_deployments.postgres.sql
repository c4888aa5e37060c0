-- Stacks, their deployments and the runs of these.

CREATE TABLE stack (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    workspace_id uuid,
    name text NOT NULL,
    -- JSON: keys and values.
    labels text NOT NULL,
    repository text,
    path text,
    pr_plan_mode text NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    -- A deleted stack stays for its deployments and for those that depend on it.
    deleted_at bigint,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
);
CREATE INDEX stack_live ON stack (tenant_id, id) WHERE deleted_at IS NULL;
CREATE INDEX stack_by_place ON stack (tenant_id, repository, path) WHERE deleted_at IS NULL;

CREATE TABLE stack_dependency (
    tenant_id uuid NOT NULL,
    stack_id uuid NOT NULL,
    depends_on_id uuid NOT NULL,
    triggers boolean NOT NULL,
    PRIMARY KEY (tenant_id, stack_id, depends_on_id),
    FOREIGN KEY (tenant_id, stack_id) REFERENCES stack (tenant_id, id),
    FOREIGN KEY (tenant_id, depends_on_id) REFERENCES stack (tenant_id, id)
);
CREATE INDEX stack_dependents ON stack_dependency (tenant_id, depends_on_id) WHERE triggers;

CREATE TABLE deployment (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    stack_id uuid NOT NULL,
    mode text NOT NULL,
    status text NOT NULL,
    -- The kind of its next run, or of the one under way.
    stage text NOT NULL,
    read_only boolean NOT NULL,
    promoted boolean NOT NULL,
    commit_sha text,
    commit_message text,
    -- JSON.
    origin text NOT NULL,
    pull_request bigint,
    url text,
    skipped_reason text,
    error text,
    -- The plan that it applies, or else its latest that succeeded.
    plan_run_id uuid,
    confirmed_by uuid,
    -- The stacks whose applies have led to it, its own last.
    chain text NOT NULL,
    -- Since when it waits for its next run.
    pending_since bigint NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    finished_at bigint,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, stack_id) REFERENCES stack (tenant_id, id)
);
CREATE INDEX deployment_by_stack ON deployment (tenant_id, stack_id, id);
CREATE INDEX deployment_active ON deployment (tenant_id, stack_id)
    WHERE status IN ('pending', 'running', 'awaiting_confirmation');
CREATE INDEX deployment_pending ON deployment (pending_since) WHERE status = 'pending';

CREATE TABLE deployment_run (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    deployment_id uuid NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    plan_run_id uuid,
    -- Of a command only how long it is.
    command_bytes bigint,
    -- JSON.
    plan_summary text,
    error text,
    started_at bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    finished_at bigint,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, deployment_id) REFERENCES deployment (tenant_id, id)
);
CREATE UNIQUE INDEX deployment_run_running ON deployment_run (tenant_id, deployment_id) WHERE status = 'running';
CREATE INDEX deployment_run_by_deployment ON deployment_run (tenant_id, deployment_id, id);
CREATE INDEX deployment_run_silent ON deployment_run (heartbeat_at) WHERE status = 'running';
