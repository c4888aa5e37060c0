-- Work: tasks and what is done to them, approvals, and the plain resources around them.

-- The last number given to a task of the tenant.
CREATE TABLE task_number (
    tenant_id uuid PRIMARY KEY REFERENCES tenant (id),
    last bigint NOT NULL
);

CREATE TABLE goal (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    workspace_id uuid,
    title text NOT NULL,
    description text,
    status text NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
);

CREATE TABLE rule (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    workspace_id uuid,
    key text NOT NULL,
    definition text NOT NULL,
    status text NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, key),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
);

CREATE TABLE project (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    workspace_id uuid,
    key text NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, key),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
);

CREATE TABLE task (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    workspace_id uuid,
    number bigint NOT NULL,
    title text NOT NULL,
    description text,
    status text NOT NULL,
    priority text NOT NULL,
    assignee_id uuid,
    due_date bigint,
    goal_id uuid,
    -- JSON of its creator's own; never in an event.
    custom_fields text NOT NULL,
    fencing_token bigint NOT NULL,
    -- Attempts so far, of runs and of verifications.
    runs bigint NOT NULL,
    verifications bigint NOT NULL,
    consecutive_failures bigint NOT NULL,
    version bigint NOT NULL,
    created_by uuid NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, number),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id),
    FOREIGN KEY (tenant_id, assignee_id) REFERENCES principal (tenant_id, id),
    FOREIGN KEY (tenant_id, goal_id) REFERENCES goal (tenant_id, id)
);
CREATE INDEX task_by_workspace ON task (tenant_id, workspace_id);

CREATE TABLE task_comment (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    task_id uuid NOT NULL,
    author_id uuid NOT NULL,
    body text NOT NULL,
    created_at bigint NOT NULL,
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id)
);
CREATE INDEX task_comment_by_task ON task_comment (tenant_id, task_id, id);

CREATE TABLE claim (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    task_id uuid NOT NULL,
    holder_id uuid NOT NULL,
    fencing_token bigint NOT NULL,
    status text NOT NULL,
    expires_at bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id)
);
CREATE UNIQUE INDEX claim_active ON claim (tenant_id, task_id) WHERE status = 'active';
CREATE INDEX claim_due ON claim (expires_at) WHERE status = 'active';

CREATE TABLE run (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    task_id uuid NOT NULL,
    claim_id uuid NOT NULL,
    attempt bigint NOT NULL,
    fencing_token bigint NOT NULL,
    status text NOT NULL,
    agent_revision_id text,
    reason text,
    waiting_for_approval_id uuid,
    started_at bigint NOT NULL,
    finished_at bigint,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id),
    FOREIGN KEY (tenant_id, claim_id) REFERENCES claim (tenant_id, id)
);
CREATE UNIQUE INDEX run_running ON run (tenant_id, claim_id) WHERE status = 'running';
CREATE INDEX run_by_task ON run (tenant_id, task_id, id);

CREATE TABLE verification (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    task_id uuid NOT NULL,
    attempt bigint NOT NULL,
    status text NOT NULL,
    trigger_name text NOT NULL,
    checks text NOT NULL,
    results text NOT NULL,
    failed_check text,
    reason text,
    artifact_id uuid,
    started_at bigint NOT NULL,
    finished_at bigint,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id)
);
CREATE UNIQUE INDEX verification_running ON verification (tenant_id, task_id) WHERE status = 'running';
CREATE INDEX verification_by_task ON verification (tenant_id, task_id, id);

CREATE TABLE artifact (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    workspace_id uuid,
    task_id uuid,
    run_id uuid,
    kind text NOT NULL,
    name text NOT NULL,
    uri text,
    supersedes_artifact_id uuid,
    created_by uuid NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES run (tenant_id, id),
    FOREIGN KEY (tenant_id, supersedes_artifact_id) REFERENCES artifact (tenant_id, id)
);
CREATE INDEX artifact_by_task ON artifact (tenant_id, task_id, id);

CREATE TABLE skill_invocation (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    task_id uuid NOT NULL,
    skill text NOT NULL,
    skill_version text NOT NULL,
    status text NOT NULL,
    attempt bigint NOT NULL,
    max_attempts bigint NOT NULL,
    claimed_by uuid,
    error_code text,
    available_at bigint NOT NULL,
    requested_by uuid NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id)
);
CREATE INDEX skill_invocation_by_task ON skill_invocation (tenant_id, task_id, id);

CREATE TABLE approval (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    -- That of its task or artifact when it was requested; it never changes.
    workspace_id uuid,
    task_id uuid,
    artifact_id uuid,
    required_role_id uuid,
    assigned_principal_id uuid,
    gate boolean NOT NULL,
    requested_by uuid NOT NULL,
    require_other boolean NOT NULL,
    comment text,
    status text NOT NULL,
    decision_by uuid,
    decision_comment text,
    channel text,
    expires_at bigint,
    decided_at bigint,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    CHECK ((task_id IS NULL) <> (artifact_id IS NULL)),
    CHECK ((required_role_id IS NULL) <> (assigned_principal_id IS NULL)),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id),
    FOREIGN KEY (tenant_id, artifact_id) REFERENCES artifact (tenant_id, id),
    FOREIGN KEY (tenant_id, required_role_id) REFERENCES role (tenant_id, id),
    FOREIGN KEY (tenant_id, assigned_principal_id) REFERENCES principal (tenant_id, id)
);
CREATE INDEX approval_gates ON approval (tenant_id, task_id) WHERE status = 'pending' AND gate;
CREATE INDEX approval_pending ON approval (tenant_id, id) WHERE status = 'pending';
CREATE INDEX approval_due ON approval (expires_at) WHERE status = 'pending' AND expires_at IS NOT NULL;

-- Tokens for one decision: only their hashes.
CREATE TABLE decision_token (
    hash bytea PRIMARY KEY,
    tenant_id uuid NOT NULL,
    approval_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    channel text NOT NULL,
    expires_at bigint NOT NULL,
    FOREIGN KEY (tenant_id, approval_id) REFERENCES approval (tenant_id, id),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id)
);
CREATE INDEX decision_token_due ON decision_token (expires_at);
