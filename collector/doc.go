// Package collector sees a cluster: the Kubernetes API (list and watch), audit events, admission reviews and the metrics of
// the descheduler go in, facts go out to a Sink.
//
//	c, err := collector.New(collector.Config{REST: config, Tracker: tracker.New("prod"), Sink: sink, Log: log, Metrics: metrics.New(registry), Clock: utcNow})
//	err = c.Run(ctx) // sink.Append gets the facts, until ctx ends
//
// Each watched resource has a client-go Reflector over slim types of our own: a few fields are decoded straight into
// a tracker.Observation, the rest of the object is never kept. The Reflector's store is not a cache but the collector
// itself, so every notification is taken in order and a relist is seen as what it is. What must be remembered of an
// object the tracker.Tracker remembers, in a few words.
//
//	Reflector goroutines --queue--> owner goroutine (Tracker) --batches--> writer goroutine --> Spool --> Storing.Drain (Sink)
//	Audit, Follow, Reviewed, Scraper -->
//
// One goroutine owns the Tracker. Both queues are bounded and nothing is dropped: when the Spool stands still the
// watches stand still, and what a watch loses by that becomes a gap. Run starts everything but Drain, which outlives it, and returns when
// its context ends and what was taken is kept. Without a Spool the writer stores by itself, in the same way (storing.go).
//
// Read watch.go for list and watch, listing.go for how a list is taken, slim.go for decoding, then one file per noun: vmi.go, pod.go, migration.go, node.go,
// kubevirt.go, policy.go, kubeevent.go. What others send instead of being watched: auditreader.go (a stream of audit events), audit.go
// (one of them), admission.go (one review), request.go (how they reach the owner), follow.go (a log file). What we ask for: scrape.go.
//
// A Recorder (record.go, tape.go) sees the same and writes it down: of each object what is read of it (keep.go), with names hidden where that is asked
// for (redact.go). A Probe (probe.go) asks single questions, and knows which rights the others need.
package collector
