// Command lab runs a whole KubeVirt cluster on this machine, with evictrail beside it, and plays scenarios in it: docs/lab.md.
//
//	go run ./lab -scenario dual-retry-loop          # plays it, and keeps everything running until it is interrupted
//	go run ./lab -kubevirt v1.6.0 -test retry       # plays it, compares, and ends with the exit code 1 where something differs
//	go run ./lab -list
//
// Its packages and files:
//
//   - cluster: the control plane of Kubernetes and KubeVirt, out of their own sources; nodesim: the nodes, simulated; build: the programs, from source, once
//   - recorder: evictrail, with its Postgres
//   - scenario: what happens; stage.go plays it here, advice.go what is advised
//   - truth: what the components say; verify.go compares evictrail with it; record.go keeps it beside a recording, of which testdata has some
//   - main.go: flags and the order of things; rights.go: what evictrail may do in the cluster; output.go: lines of scenarios that are played at once
package main
