-- Roles: grants with a name, for those they are assigned to.
CREATE TABLE role (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    workspace_id BLOB,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, key),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
) STRICT;

CREATE TABLE role_assignment (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    role_id BLOB NOT NULL,
    principal_id BLOB NOT NULL,
    -- In whose subtree it counts; null: the tenant.
    workspace_id BLOB,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, role_id) REFERENCES role (tenant_id, id),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX role_assignment_on_workspace ON role_assignment (tenant_id, role_id, principal_id, workspace_id);
CREATE UNIQUE INDEX role_assignment_on_tenant ON role_assignment (tenant_id, role_id, principal_id) WHERE workspace_id IS NULL;
CREATE INDEX role_assignment_by_principal ON role_assignment (tenant_id, principal_id);

-- A grant is a principal's or a role's. A column cannot lose its NOT NULL here, so the table is made anew.
ALTER TABLE access_grant RENAME TO access_grant_before;
CREATE TABLE access_grant (
    id BLOB PRIMARY KEY,
    tenant_id BLOB NOT NULL,
    principal_id BLOB,
    role_id BLOB,
    permission TEXT NOT NULL,
    resource TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant_id, principal_id, permission, resource),
    CHECK ((principal_id IS NULL) <> (role_id IS NULL)),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id),
    FOREIGN KEY (tenant_id, role_id) REFERENCES role (tenant_id, id)
) STRICT;
INSERT INTO access_grant (id, tenant_id, principal_id, permission, resource, created_at)
SELECT id, tenant_id, principal_id, permission, resource, created_at FROM access_grant_before;
DROP TABLE access_grant_before;
CREATE UNIQUE INDEX access_grant_of_role ON access_grant (tenant_id, role_id, permission, resource) WHERE role_id IS NOT NULL;
