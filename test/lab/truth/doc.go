// Package truth compares what evictrail recorded with what the components of a cluster say themselves.
//
// What the components say comes from their objects and from the audit log of the kube-apiserver alone, read by a client of its own; nothing of evictrail is used. What
// evictrail recorded comes from its views. Both are a History, so one comparison has one definition:
//
//	w, err := truth.Watch(ctx, config) // from the start of a scenario on
//	...
//	seen := w.History()
//	seen.Requests, err = truth.ReadAudit(path)
//	recorded, err := truth.Load(ctx, databaseURL, cluster)
//	report := truth.Compare(seen, recorded)
//
// Its files:
//
//   - history.go: what happened: requests, marks, migrations, stays, backoffs; wave.go: what became of the VMs that an upgrade left outdated
//   - witness.go: reads it from the objects; audit.go from the audit log; rows.go from evictrail's views
//   - compare.go: what differs
package truth
