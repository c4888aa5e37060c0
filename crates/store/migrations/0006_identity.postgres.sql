-- Logins of issuers, and the principals that they stand for. A login stands for one principal, whatever the tenant.
CREATE TABLE identity_binding (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    issuer text NOT NULL,
    subject text NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (issuer, subject),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id)
);
