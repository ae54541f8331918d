package cluster

// DefaultAuditPolicy logs what evictrail reads, and who changes migrations and nodes: evictions with bodies, the rest as metadata.
const DefaultAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [create]
  resources: [{group: "", resources: [pods/eviction]}]
- level: Metadata
  verbs: [delete, deletecollection]
  resources: [{group: "", resources: [pods]}]
- level: Metadata
  verbs: [create, delete, patch, update]
  resources: [{group: kubevirt.io, resources: [virtualmachineinstancemigrations]}]
- level: Metadata
  resources: [{group: subresources.kubevirt.io}]
- level: Metadata
  userGroups: [system:masters]
  verbs: [patch, update]
  resources: [{group: "", resources: [nodes]}]
- level: None
`
