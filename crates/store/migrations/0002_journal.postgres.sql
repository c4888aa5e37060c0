-- The journal. Its one row holds its identity and the greatest position that retention has deleted.
CREATE TABLE journal (
    singleton bigint PRIMARY KEY CHECK (singleton = 1),
    id uuid NOT NULL,
    incarnation bigint NOT NULL,
    floor_seq bigint NOT NULL
);
INSERT INTO journal VALUES (1, gen_random_uuid(), 1, 0);

-- seq is the order. Its sequence must not cache: a cached value could lie below a lock taken later.
CREATE TABLE event (
    seq bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    type text COLLATE "C" NOT NULL,
    schema_version bigint NOT NULL,
    entity_type text COLLATE "C" NOT NULL,
    entity_id text COLLATE "C" NOT NULL,
    workspace_id uuid,
    actor_id uuid,
    session_id text,
    correlation_id text,
    causation_id text,
    request_id text,
    payload text NOT NULL,
    occurred_at bigint NOT NULL
);
CREATE UNIQUE INDEX event_by_id ON event (tenant_id, id);
CREATE INDEX event_by_seq ON event (tenant_id, seq);
CREATE INDEX event_by_type ON event (tenant_id, type, seq);
CREATE INDEX event_by_workspace ON event (tenant_id, workspace_id, seq);
CREATE INDEX event_by_entity ON event (tenant_id, entity_type, entity_id, seq);

-- Only retention deletes, and it raises the floor first, in the same transaction.
CREATE FUNCTION event_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.seq <= (SELECT floor_seq FROM journal) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the journal is append-only';
END $$;
CREATE TRIGGER event_no_change BEFORE UPDATE OR DELETE ON event FOR EACH ROW EXECUTE FUNCTION event_is_immutable();
CREATE TRIGGER event_no_truncate BEFORE TRUNCATE ON event FOR EACH STATEMENT EXECUTE FUNCTION event_is_immutable();

-- Positions of the server's own consumers.
CREATE TABLE consumer_position (
    name text PRIMARY KEY,
    seq bigint NOT NULL,
    updated_at bigint NOT NULL
);
INSERT INTO consumer_position VALUES ('announcer', 0, 0);

-- Custom event types; the core's are in the binary.
CREATE TABLE event_type (
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    name text COLLATE "C" NOT NULL,
    entity_type text NOT NULL,
    description text NOT NULL,
    current_version bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

CREATE TABLE event_type_version (
    tenant_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    schema_text text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, name, version),
    FOREIGN KEY (tenant_id, name) REFERENCES event_type (tenant_id, name)
);
