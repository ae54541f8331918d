package storetest

import (
	"flag"
	"testing"
)

// long is set where a test may take its time: make chaos-elsewhere.
var long = flag.Bool("long", false, "run the long form of tests that have one: all seeds, all kills")

// Count returns how often a test does something: so often in its short form, so often in its long one.
func Count(short, all int) int {
	if *long {
		return all
	}
	return short
}

// Sample returns all of what a test is run on; with go test -short, as `make test` has it, every third.
func Sample[T any](all []T) []T {
	if !testing.Short() {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += 3 {
		some = append(some, all[i])
	}
	return some
}

// Some returns the first of a list in the short form of a test, all of it in the long one.
func Some[T any](all []T, short int) []T { return all[:Count(min(short, len(all)), len(all))] }

// SkipInShort leaves a test to `make check` when go test -short runs, as `make test` has it: it kills and starts whole
// processes, waits for timeouts, fills months of history or asks much of several recordings, and quicker tests of the
// same part are left.
func SkipInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
}
