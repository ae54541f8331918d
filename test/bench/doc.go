// Package bench measures evictrail against what could be in its place, in one run each, and prints one table: watches against a dynamic
// informer, all of it against an archive of whole objects and kube-state-metrics, writing against COPY and single INSERTs. `make bench` runs it, with the questions of test/load; among the other tests it runs
// small, so that it stays true. Machines differ and are shared: the two sides of a row take turns, and their ratio is what counts. See
// docs/benchmarks.md.
package bench
