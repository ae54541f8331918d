// Package metrics holds every metric of evictrail: its names and labels as constants (names.go), its instruments as
// fields of one struct (metrics.go). Alerts and dashboards use the constants, so a renamed metric cannot be half
// renamed. Nothing registers by itself: New takes the registry. stability.go says which others may rely on.
//
//	m := metrics.New(registry)
//	m.Count(news, now)                                 // what a store reported as new
//	m.Answered("/api/v1/vms", "GET", 200, elapsed)     // a request that the API answered
package metrics
