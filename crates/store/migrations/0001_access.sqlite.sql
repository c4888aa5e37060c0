-- Tenants, who acts in them, and what they may do.
CREATE TABLE tenant (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE principal (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    kind TEXT NOT NULL CHECK (kind IN ('human', 'service', 'agent')),
    display_name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id)
) STRICT;

CREATE TABLE api_key (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    principal_id BLOB NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id)
) STRICT;

CREATE TABLE workspace (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    parent_id BLOB,
    name TEXT NOT NULL,
    archived_at INTEGER,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, parent_id) REFERENCES workspace (tenant_id, id)
) STRICT;
CREATE INDEX workspace_by_parent ON workspace (tenant_id, parent_id);

-- Called access_grant because GRANT is a word of SQL.
CREATE TABLE access_grant (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    principal_id BLOB NOT NULL,
    permission TEXT NOT NULL,
    resource TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, principal_id, permission, resource),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id)
) STRICT;

-- First answers of keyed requests, kept for a day; written in the change's own transaction.
CREATE TABLE idempotency (
    tenant_id BLOB NOT NULL,
    key TEXT NOT NULL,
    principal_id BLOB,
    fingerprint BLOB NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- Servers that run on this database; one whose heartbeat is old is gone, and its work is taken over.
CREATE TABLE server (
    id BLOB PRIMARY KEY,
    started_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL
) STRICT;

-- Which encryption keys this database needs, and a value that proves a key is the right one.
CREATE TABLE encryption_key (
    id TEXT PRIMARY KEY,
    check_value BLOB NOT NULL
) STRICT;
