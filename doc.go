// Package evictrail embeds the recordings of real incidents that "evictrail demo" plays and the tests compare against.
// Everything else lives in the packages below: start at docs/architecture.md.
//
//	recordings := evictrail.Recordings() // one folder for each incident
//	truth, err := fs.ReadFile(recordings, "b-dual-retry-loop/expected.json")
package evictrail
