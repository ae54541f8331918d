-- Placements say since when the virt-launcher of their guest is outdated, of which view upgrade_waves is made
-- (../schema/placements.sql). Rows that are there get it when their VM is derived the next time.
ALTER TABLE evictrail.placements
    ADD COLUMN outdated_since timestamptz;
CREATE INDEX placements_outdated ON evictrail.placements (cluster, outdated_since)
    WHERE outdated_since IS NOT NULL;
COMMENT ON INDEX evictrail.placements_outdated IS 'Guests in outdated virt-launchers: view upgrade_waves.';
CREATE INDEX migrations_of_updates ON evictrail.migrations (cluster, created_at)
    WHERE trigger = 'workload_update' OR requester_class = 'kubevirt' AND evacuation_id IS NOT NULL;
COMMENT ON INDEX evictrail.migrations_of_updates IS 'What KubeVirt did to bring VMs to its new version: view upgrade_waves.';
