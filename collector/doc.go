// Package collector sees a cluster: the Kubernetes API goes in (list and watch), facts go out to a Sink.
//
// Each watched resource has a client-go Reflector over slim types of our own: a few fields are decoded straight into
// a trail.Observation, the rest of the object is never kept. The Reflector's store is not a cache but the collector
// itself, so every notification is taken in order and a relist is seen as what it is. What must be remembered of an
// object the trail.Tracker remembers, in a few words.
//
//	Reflector goroutines --queue--> owner goroutine (Tracker) --batches--> writer goroutine (Sink)
//
// One goroutine owns the Tracker. Both queues are bounded and nothing is dropped: when the Sink stands still the
// watches stand still, and what a watch loses by that becomes a gap. Run starts everything and returns when its
// context ends and what was taken is stored.
//
// Read watch.go for list and watch, slim.go for decoding, then one file per noun: vmi.go, pod.go, migration.go, node.go,
// kubevirt.go, kubeevent.go.
package collector
