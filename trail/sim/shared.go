package sim

import (
	"fmt"
	"time"
)

// Shared plays three hours of a cluster that many tenants share: 240 VMIs on 12 nodes, in so many namespaces, tenant-1 and so on, with
// loops of every kind.
func Shared(seed uint64, tenants int) Run {
	o := options{
		nodes: 12, vms: 240, hours: 3 * time.Hour, natural: true, flaky: 0.03, policySeen: true, auditDelay: 300 * time.Millisecond,
		loops: 6, misses: 3, userEvery: 10 * time.Minute, restartEvery: 40 * time.Minute,
	}
	for i := range tenants {
		o.namespaces = append(o.namespaces, fmt.Sprintf("tenant-%d", i+1))
	}
	return assembleCluster(newDice(seed), o, v190).runToEnd(seed)
}
