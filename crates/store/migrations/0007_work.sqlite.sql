-- Work: tasks and what is done to them, approvals, and the plain resources around them.

-- The last number given to a task of the tenant.
CREATE TABLE task_number (
    tenant_id BLOB PRIMARY KEY REFERENCES tenant (id),
    last INTEGER NOT NULL
) STRICT;

CREATE TABLE goal (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    workspace_id BLOB,
    title TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
) STRICT;

CREATE TABLE rule (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    workspace_id BLOB,
    key TEXT NOT NULL,
    definition TEXT NOT NULL,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, key),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
) STRICT;

CREATE TABLE project (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    workspace_id BLOB,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, key),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
) STRICT;

CREATE TABLE task (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    workspace_id BLOB,
    number INTEGER NOT NULL,
    title TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    priority TEXT NOT NULL,
    assignee_id BLOB,
    due_date INTEGER,
    goal_id BLOB,
    -- JSON of its creator's own; never in an event.
    custom_fields TEXT NOT NULL,
    fencing_token INTEGER NOT NULL,
    -- Attempts so far, of runs and of verifications.
    runs INTEGER NOT NULL,
    verifications INTEGER NOT NULL,
    consecutive_failures INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created_by BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, number),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id),
    FOREIGN KEY (tenant_id, assignee_id) REFERENCES principal (tenant_id, id),
    FOREIGN KEY (tenant_id, goal_id) REFERENCES goal (tenant_id, id)
) STRICT;
CREATE INDEX task_by_workspace ON task (tenant_id, workspace_id);

CREATE TABLE task_comment (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    task_id BLOB NOT NULL,
    author_id BLOB NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id)
) STRICT;
CREATE INDEX task_comment_by_task ON task_comment (tenant_id, task_id, id);

CREATE TABLE claim (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    task_id BLOB NOT NULL,
    holder_id BLOB NOT NULL,
    fencing_token INTEGER NOT NULL,
    status TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX claim_active ON claim (tenant_id, task_id) WHERE status = 'active';
CREATE INDEX claim_due ON claim (expires_at) WHERE status = 'active';

CREATE TABLE run (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    task_id BLOB NOT NULL,
    claim_id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    fencing_token INTEGER NOT NULL,
    status TEXT NOT NULL,
    agent_revision_id TEXT,
    reason TEXT,
    waiting_for_approval_id BLOB,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id),
    FOREIGN KEY (tenant_id, claim_id) REFERENCES claim (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX run_running ON run (tenant_id, claim_id) WHERE status = 'running';
CREATE INDEX run_by_task ON run (tenant_id, task_id, id);

CREATE TABLE verification (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    task_id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    status TEXT NOT NULL,
    trigger_name TEXT NOT NULL,
    checks TEXT NOT NULL,
    results TEXT NOT NULL,
    failed_check TEXT,
    reason TEXT,
    artifact_id BLOB,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX verification_running ON verification (tenant_id, task_id) WHERE status = 'running';
CREATE INDEX verification_by_task ON verification (tenant_id, task_id, id);

CREATE TABLE artifact (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    workspace_id BLOB,
    task_id BLOB,
    run_id BLOB,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    uri TEXT,
    supersedes_artifact_id BLOB,
    created_by BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES run (tenant_id, id),
    FOREIGN KEY (tenant_id, supersedes_artifact_id) REFERENCES artifact (tenant_id, id)
) STRICT;
CREATE INDEX artifact_by_task ON artifact (tenant_id, task_id, id);

CREATE TABLE skill_invocation (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    task_id BLOB NOT NULL,
    skill TEXT NOT NULL,
    skill_version TEXT NOT NULL,
    status TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    claimed_by BLOB,
    error_code TEXT,
    available_at INTEGER NOT NULL,
    requested_by BLOB NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id)
) STRICT;
CREATE INDEX skill_invocation_by_task ON skill_invocation (tenant_id, task_id, id);

CREATE TABLE approval (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    -- That of its task or artifact when it was requested; it never changes.
    workspace_id BLOB,
    task_id BLOB,
    artifact_id BLOB,
    required_role_id BLOB,
    assigned_principal_id BLOB,
    gate INTEGER NOT NULL,
    requested_by BLOB NOT NULL,
    require_other INTEGER NOT NULL,
    comment TEXT,
    status TEXT NOT NULL,
    decision_by BLOB,
    decision_comment TEXT,
    channel TEXT,
    expires_at INTEGER,
    decided_at INTEGER,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    CHECK ((task_id IS NULL) <> (artifact_id IS NULL)),
    CHECK ((required_role_id IS NULL) <> (assigned_principal_id IS NULL)),
    FOREIGN KEY (tenant_id, task_id) REFERENCES task (tenant_id, id),
    FOREIGN KEY (tenant_id, artifact_id) REFERENCES artifact (tenant_id, id),
    FOREIGN KEY (tenant_id, required_role_id) REFERENCES role (tenant_id, id),
    FOREIGN KEY (tenant_id, assigned_principal_id) REFERENCES principal (tenant_id, id)
) STRICT;
CREATE INDEX approval_gates ON approval (tenant_id, task_id) WHERE status = 'pending' AND gate;
CREATE INDEX approval_pending ON approval (tenant_id, id) WHERE status = 'pending';
CREATE INDEX approval_due ON approval (expires_at) WHERE status = 'pending' AND expires_at IS NOT NULL;

-- Tokens for one decision: only their hashes.
CREATE TABLE decision_token (
    hash BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    approval_id BLOB NOT NULL,
    principal_id BLOB NOT NULL,
    channel TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    FOREIGN KEY (tenant_id, approval_id) REFERENCES approval (tenant_id, id),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id)
) STRICT;
CREATE INDEX decision_token_due ON decision_token (expires_at);
