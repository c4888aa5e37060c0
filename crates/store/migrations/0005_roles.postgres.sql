-- Roles: grants with a name, for those they are assigned to.
CREATE TABLE role (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    workspace_id uuid,
    key text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, key),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
);

CREATE TABLE role_assignment (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL,
    role_id uuid NOT NULL,
    principal_id uuid NOT NULL,
    -- In whose subtree it counts; null: the tenant.
    workspace_id uuid,
    created_at bigint NOT NULL,
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, role_id) REFERENCES role (tenant_id, id),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principal (tenant_id, id),
    FOREIGN KEY (tenant_id, workspace_id) REFERENCES workspace (tenant_id, id)
);
CREATE UNIQUE INDEX role_assignment_on_workspace ON role_assignment (tenant_id, role_id, principal_id, workspace_id);
CREATE UNIQUE INDEX role_assignment_on_tenant ON role_assignment (tenant_id, role_id, principal_id) WHERE workspace_id IS NULL;
CREATE INDEX role_assignment_by_principal ON role_assignment (tenant_id, principal_id);

-- A grant is a principal's or a role's.
ALTER TABLE access_grant ALTER COLUMN principal_id DROP NOT NULL;
ALTER TABLE access_grant ADD COLUMN role_id uuid;
ALTER TABLE access_grant ADD CHECK ((principal_id IS NULL) <> (role_id IS NULL));
ALTER TABLE access_grant ADD FOREIGN KEY (tenant_id, role_id) REFERENCES role (tenant_id, id);
CREATE UNIQUE INDEX access_grant_of_role ON access_grant (tenant_id, role_id, permission, resource) WHERE role_id IS NOT NULL;
