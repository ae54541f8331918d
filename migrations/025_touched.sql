-- +goose Up
-- Nodes, and the cluster as a whole, are derived a little after the VMs that touch them: until then they are noted with since when things changed there.
ALTER TABLE evictrail.subjects ADD COLUMN touched_since timestamptz;
CREATE INDEX subjects_touched ON evictrail.subjects (cluster, subject) WHERE touched_since IS NOT NULL;
COMMENT ON INDEX evictrail.subjects_touched IS 'Which nodes are still to be derived of the VMs that touched them.';

-- Of a node that many people patch, those facts are found that say what became of it.
CREATE INDEX events_about_nodes ON evictrail.events (cluster, subject, occurred_at) WHERE subject LIKE 'node:%' AND kind <> 'action_requested';
COMMENT ON INDEX evictrail.events_about_nodes IS 'What became of a node, without what was asked of it: derive the node and its VMs.';

-- +goose Down
DROP INDEX evictrail.events_about_nodes;
DROP INDEX evictrail.subjects_touched;
ALTER TABLE evictrail.subjects DROP COLUMN touched_since;
