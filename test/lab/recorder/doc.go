// Package recorder runs evictrail beside the cluster of the lab, as it runs in production: the built program, a Postgres of its own, audit events by webhook and
// reviews by the observer.
//
//	r := recorder.Prepare(t, dir, 1)
//	err := r.Start(kubeconfig)
//	answer, err := r.Ask(ctx, "why", "demo/db-1")
//
// Prepare comes before the cluster, as the API server must know where it sends audit events; Start comes after it. evictrail and its Postgres can be killed and started
// again, each by itself.
//
//   - recorder.go: starting and killing; answer.go: what it answers
package recorder
