-- What is announced to an integration, and its report of findings. edited_at: when a person last changed it.
ALTER TABLE integration ADD COLUMN events TEXT NOT NULL DEFAULT '[]';
ALTER TABLE integration ADD COLUMN stack_labels TEXT NOT NULL DEFAULT '{}';
ALTER TABLE integration ADD COLUMN changes_only INTEGER NOT NULL DEFAULT 0;
ALTER TABLE integration ADD COLUMN digest_schedule TEXT;
ALTER TABLE integration ADD COLUMN edited_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE integration ADD COLUMN digest_sent_at INTEGER;
ALTER TABLE integration ADD COLUMN digest_counts TEXT;
UPDATE integration SET edited_at = updated_at;
CREATE INDEX integration_by_digest ON integration (id) WHERE digest_schedule IS NOT NULL;
