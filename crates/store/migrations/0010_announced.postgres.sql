-- What is announced to an integration, and its report of findings. edited_at: when a person last changed it.
ALTER TABLE integration ADD COLUMN events text NOT NULL DEFAULT '[]';
ALTER TABLE integration ADD COLUMN stack_labels text NOT NULL DEFAULT '{}';
ALTER TABLE integration ADD COLUMN changes_only boolean NOT NULL DEFAULT false;
ALTER TABLE integration ADD COLUMN digest_schedule text;
ALTER TABLE integration ADD COLUMN edited_at bigint NOT NULL DEFAULT 0;
ALTER TABLE integration ADD COLUMN digest_sent_at bigint;
ALTER TABLE integration ADD COLUMN digest_counts text;
UPDATE integration SET edited_at = updated_at;
CREATE INDEX integration_by_digest ON integration (id) WHERE digest_schedule IS NOT NULL;
