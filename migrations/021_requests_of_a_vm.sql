-- +goose Up
-- The last request about a VM before a moment is found without reading all of them.
DROP INDEX evictrail.eviction_requests_by_vmi;
CREATE INDEX eviction_requests_by_vmi ON evictrail.eviction_requests (cluster, namespace, vmi, requested_at);
COMMENT ON INDEX evictrail.eviction_requests_by_vmi IS 'The requests about one VM, the last one before a moment, or in one namespace: view eviction_requests.';

-- +goose Down
DROP INDEX evictrail.eviction_requests_by_vmi;
CREATE INDEX eviction_requests_by_vmi ON evictrail.eviction_requests (cluster, namespace, vmi);
COMMENT ON INDEX evictrail.eviction_requests_by_vmi IS 'The requests about one VM, or in one namespace: view eviction_requests.';
