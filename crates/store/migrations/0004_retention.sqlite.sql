-- Retention is each tenant's own. A tenant without a row has lost nothing.
CREATE TABLE tenant_journal (
    tenant_id BLOB PRIMARY KEY REFERENCES tenant (id),
    -- The greatest position of the tenant that was deleted.
    floor_seq INTEGER NOT NULL,
    -- A prune under way deletes up to here, whoever goes on with it.
    prune_through INTEGER NOT NULL,
    -- Deleted, and not yet told by an event.
    pruned_count INTEGER NOT NULL
) STRICT;

-- The greatest position ever deleted, of any tenant.
ALTER TABLE journal RENAME COLUMN floor_seq TO deleted_seq;

DROP TRIGGER event_no_delete;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event
WHEN OLD.seq > coalesce((SELECT t.floor_seq FROM tenant_journal t WHERE t.tenant_id = OLD.tenant_id), 0) BEGIN
    SELECT RAISE(ABORT, 'the journal is append-only');
END;

-- What the journal's positions belong to: each start opens another one at the head it finds, since a file may have been
-- put back from a copy. The current one's tag is journal.incarnation; cursors carry it.
CREATE TABLE journal_incarnation (
    number INTEGER PRIMARY KEY,
    tag INTEGER NOT NULL UNIQUE,
    start_seq INTEGER NOT NULL,
    -- The database it was opened on; null: not yet seen by a server.
    identity TEXT
) STRICT;
INSERT INTO journal_incarnation SELECT 1, incarnation, 0, NULL FROM journal;

-- Consumers that retention waits for until their lease ends. Reading never looks here.
CREATE TABLE consumer_lease (
    tenant_id BLOB NOT NULL REFERENCES tenant (id),
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
) STRICT;
