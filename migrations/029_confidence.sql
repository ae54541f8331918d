-- +goose Up
-- What the eviction observer alone reports is asserted: whoever reaches its address can send it (docs/audit.md).
COMMENT ON COLUMN evictrail_v1.eviction_requests.confidence IS 'How it is known: observed (an audit event has it), asserted (a field names the requester, or the eviction observer alone reports it), inferred.';
COMMENT ON COLUMN evictrail_v1.evacuations.confidence IS 'How the requester or trigger is known: observed (an audit event has the request), asserted (a field says so, or the eviction observer alone), inferred, unknown.';
COMMENT ON COLUMN evictrail_v1.migrations.trigger_confidence IS 'How the trigger is known: observed (an audit event has the request), asserted (a field says so, or the eviction observer alone), inferred, unknown.';

-- +goose Down
COMMENT ON COLUMN evictrail_v1.eviction_requests.confidence IS 'How it is known: observed (the request was seen), asserted (a field names the requester), inferred.';
COMMENT ON COLUMN evictrail_v1.evacuations.confidence IS 'How the requester or trigger is known: observed (the request was seen), asserted (a field says so), inferred, unknown.';
COMMENT ON COLUMN evictrail_v1.migrations.trigger_confidence IS 'How the trigger is known: observed, asserted (a field says so), inferred, unknown.';
