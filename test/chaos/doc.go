// Package chaos holds evictrail to its promises while what it depends on fails: the built program watches a simulated cluster and stores
// into a real Postgres through a proxy that fails as networks and servers do. Tests bear the numbers of the test matrix (docs/chaos.md).
//
//   - proxy_test.go: what stands between evictrail and Postgres, and knows enough of the protocol to fail at a certain statement or reply;
//     fault_test.go has the faults
//   - trace_test.go: migrations made up from a seed, as an API server sends them and as they were; cluster_test.go serves them
//   - evictrail_test.go: the program; rows_test.go: what it stored
//   - the rest are the tests, a file for each
//
// By default it is a short form of some minutes, fewer of each thing; `make chaos` runs all.
package chaos
