-- Retention is each tenant's own. A tenant without a row has lost nothing.
CREATE TABLE tenant_journal (
    tenant_id uuid PRIMARY KEY REFERENCES tenant (id),
    -- The greatest position of the tenant that was deleted.
    floor_seq bigint NOT NULL,
    -- A prune under way deletes up to here, whoever goes on with it.
    prune_through bigint NOT NULL,
    -- Deleted, and not yet told by an event.
    pruned_count bigint NOT NULL
);

-- The greatest position ever deleted, of any tenant.
ALTER TABLE journal RENAME COLUMN floor_seq TO deleted_seq;

CREATE OR REPLACE FUNCTION event_is_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.seq <= (SELECT t.floor_seq FROM tenant_journal t WHERE t.tenant_id = OLD.tenant_id) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the journal is append-only';
END $$;

-- What the journal's positions belong to: a restore or a lossy failover opens another one at the head it finds. The
-- current one's tag is journal.incarnation; cursors carry it.
CREATE TABLE journal_incarnation (
    number bigint PRIMARY KEY,
    tag bigint NOT NULL UNIQUE,
    start_seq bigint NOT NULL,
    -- The database it was opened on; null: not yet seen by a server.
    identity text
);
INSERT INTO journal_incarnation SELECT 1, incarnation, 0, NULL FROM journal;

-- Consumers that retention waits for until their lease ends. Reading never looks here.
CREATE TABLE consumer_lease (
    tenant_id uuid NOT NULL REFERENCES tenant (id),
    name text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    expires_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
