-- The end of a deployment is told once, by whoever sets this first. Ends from before were not meant to be told.
ALTER TABLE deployment ADD COLUMN end_told_at bigint;
UPDATE deployment SET end_told_at = coalesce(finished_at, created_at)
    WHERE status IN ('finished', 'failed', 'cancelled', 'skipped');
CREATE INDEX deployment_end_untold ON deployment (tenant_id, id)
    WHERE end_told_at IS NULL AND status IN ('finished', 'failed', 'cancelled', 'skipped');
