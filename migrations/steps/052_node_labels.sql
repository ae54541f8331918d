-- Where nodes are, by their labels, is a fact of kind node_labels: view node_labels. View migrations has zone and pool of both ends at
-- its end; view weekly_objectives is new.
CREATE INDEX events_of_node_labels ON evictrail.events (cluster, subject, occurred_at)
    WHERE kind IN ('node_labels', 'node_gone');
COMMENT ON INDEX evictrail.events_of_node_labels IS 'Which zone and pool a node was of: views node_labels, migrations and weekly_objectives.';
