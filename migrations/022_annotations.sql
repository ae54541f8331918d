-- +goose Up
-- When the annotations of a VM's pods came and went is found without reading all that happened to it: while an evacuation fails for days that is thousands of facts.
CREATE INDEX events_by_annotation ON evictrail.events (cluster, namespace, vmi, occurred_at) WHERE kind IN ('annotation_set', 'annotation_cleared');
COMMENT ON INDEX evictrail.events_by_annotation IS 'When the annotations of one VM came and went: dashboards, by view events.';

-- +goose Down
DROP INDEX evictrail.events_by_annotation;
