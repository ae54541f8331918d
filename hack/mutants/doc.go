//go:build linux

// Command mutants breaks evictrail in known ways, one at a time, and runs the test that must notice. A test that passes all the same cannot fail.
//
//	go run ./hack/mutants                     # all of list/
//	go run ./hack/mutants T3-nosync T1-ack    # some
//
// A mutant is a file of list/: what it breaks, the test, and a snippet with what takes its place (mutant.go). The tree stays as it is: `go test -overlay`
// puts the changed file in the place of the other, also in the program that test/chaos builds (run.go). A mutant counts as noticed when the test fails
// with it and passes without it. One that does not build, whose snippet is not there exactly once, whose test does not exist, runs out of time, or takes
// too much memory (limit.go) does not count.
package main
