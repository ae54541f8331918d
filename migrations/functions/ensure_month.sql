-- ensure_month makes the partition of facts of the month, in UTC, that a time is in. It runs as the owner, who alone
-- may attach partitions, so that the writer needs no right to change tables.
CREATE OR REPLACE FUNCTION evictrail.ensure_month(month timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    first timestamp := date_trunc('month', month AT TIME ZONE 'UTC');
BEGIN
    EXECUTE format(
        'CREATE TABLE IF NOT EXISTS evictrail.events_%s PARTITION OF evictrail.events FOR VALUES FROM (%L) TO (%L)',
        to_char(first, 'YYYY_MM'), first AT TIME ZONE 'UTC', (first + interval '1 month') AT TIME ZONE 'UTC');
END
$$;
REVOKE ALL ON FUNCTION evictrail.ensure_month(timestamptz) FROM PUBLIC;
