-- Open evacuations say whether they can succeed as things are, and what would help (../schema/evacuations.sql). Rows that are there get it
-- when their VM is derived the next time. The view evacuations has the columns at its end.
ALTER TABLE evictrail.evacuations
    ADD COLUMN outlook text CHECK (outlook IN ('never', 'not_until', 'transient')),
    ADD COLUMN outlook_because text,
    ADD COLUMN outlook_change text;
