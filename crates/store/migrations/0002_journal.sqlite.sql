-- The journal. Its one row holds its identity and the greatest position that retention has deleted.
CREATE TABLE journal (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    id BLOB NOT NULL,
    incarnation INTEGER NOT NULL,
    floor_seq INTEGER NOT NULL
) STRICT;
INSERT INTO journal VALUES (1, randomblob(16), 1, 0);

-- seq is the order: there is one writer, so it is the order of commits. AUTOINCREMENT never hands one out again.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id BLOB NOT NULL,
    id BLOB NOT NULL,
    type TEXT NOT NULL,
    schema_version INTEGER NOT NULL,
    entity_type TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    workspace_id BLOB,
    actor_id BLOB,
    session_id TEXT,
    correlation_id TEXT,
    causation_id TEXT,
    request_id TEXT,
    payload TEXT NOT NULL,
    occurred_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_by_id ON event (tenant_id, id);
CREATE INDEX event_by_seq ON event (tenant_id, seq);
CREATE INDEX event_by_type ON event (tenant_id, type, seq);
CREATE INDEX event_by_workspace ON event (tenant_id, workspace_id, seq);
CREATE INDEX event_by_entity ON event (tenant_id, entity_type, entity_id, seq);

-- Only retention deletes, and it raises the floor first, in the same transaction.
CREATE TRIGGER event_no_update BEFORE UPDATE ON event BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only');
END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event WHEN OLD.seq > (SELECT floor_seq FROM journal) BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only');
END;

-- INSERT OR REPLACE would delete without firing the trigger above.
CREATE TRIGGER event_no_replace BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE seq = NEW.seq)
    OR EXISTS (SELECT 1 FROM event WHERE tenant_id = NEW.tenant_id AND id = NEW.id) BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only');
END;

-- Positions of the server's own consumers.
CREATE TABLE consumer_position (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO consumer_position VALUES ('announcer', 0, 0);

-- Custom event types; the core's are in the binary.
CREATE TABLE event_type (
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    name TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    description TEXT NOT NULL,
    current_version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
) STRICT;

CREATE TABLE event_type_version (
    tenant_id BLOB NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    schema_text TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name, version),
    FOREIGN KEY (tenant_id, name) REFERENCES event_type (tenant_id, name)
) STRICT;
