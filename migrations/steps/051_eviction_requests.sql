-- Who made an EvictionRequest (lifecycle.k8s.io) is a class of requesters (../schema/requests.sql, ../schema/migrations.sql).
ALTER TABLE evictrail.eviction_requests
    DROP CONSTRAINT eviction_requests_requester_class_check,
    ADD CONSTRAINT eviction_requests_requester_class_check CHECK (requester_class IN (
        'descheduler', 'kubectl', 'cluster_autoscaler', 'karpenter', 'machine_config', 'cluster_api', 'node_maintenance', 'kured', 'kubevirt',
        'forklift', 'harvester', 'console', 'argo_cd', 'flux', 'eviction_request', 'service_account', 'other', 'unknown'
    ));
ALTER TABLE evictrail.migrations
    DROP CONSTRAINT migrations_requester_class_check,
    ADD CONSTRAINT migrations_requester_class_check CHECK (requester_class IN (
        'descheduler', 'kubectl', 'cluster_autoscaler', 'karpenter', 'machine_config', 'cluster_api', 'node_maintenance', 'kured', 'kubevirt',
        'forklift', 'harvester', 'console', 'argo_cd', 'flux', 'eviction_request', 'service_account', 'other', 'unknown'
    ));
