-- Tenants, who acts in them, and what they may do.
CREATE TABLE tenant (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE principal (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    kind text NOT NULL CHECK (kind IN ('human', 'service', 'agent')),
    display_name text NOT NULL,
    status text NOT NULL CHECK (status IN ('active', 'disabled')),
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id)
);

CREATE TABLE api_key (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    hash bytea NOT NULL UNIQUE,
    prefix text NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id)
);

CREATE TABLE workspace (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    parent_id uuid,
    name text NOT NULL,
    archived_at bigint,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, parent_id) REFERENCES workspace (tenant_id, id)
);
CREATE INDEX workspace_by_parent ON workspace (tenant_id, parent_id);

-- Called access_grant because GRANT is a word of SQL.
CREATE TABLE access_grant (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    permission text NOT NULL,
    resource text NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, principal_id, permission, resource),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id)
);

-- First answers of keyed requests, kept for a day; written in the change's own transaction.
CREATE TABLE idempotency (
    tenant_id uuid NOT NULL,
    key text NOT NULL,
    principal_id uuid,
    fingerprint bytea NOT NULL,
    body text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- Servers that run on this database; one whose heartbeat is old is gone, and its work is taken over.
CREATE TABLE server (
    id uuid PRIMARY KEY,
    started_at bigint NOT NULL,
    heartbeat_at bigint NOT NULL
);

-- Which encryption keys this database needs, and a value that proves a key is the right one.
CREATE TABLE encryption_key (
    id text PRIMARY KEY,
    check_value bytea NOT NULL
);
