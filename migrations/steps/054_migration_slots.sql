-- View migration_slots is new (../views/migration_slots.sql). View migration_queue has the limits that are stated, not always the
-- defaults.
SELECT 1;
