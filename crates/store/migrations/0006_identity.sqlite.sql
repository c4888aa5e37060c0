-- Logins of issuers, and the principals that they stand for. A login stands for one principal, whatever the tenant.
CREATE TABLE identity_binding (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    principal_id BLOB NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (issuer, subject),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id)
) STRICT;
