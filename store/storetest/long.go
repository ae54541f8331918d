package storetest

import "flag"

// long is set where a test may take its time: make chaos-elsewhere.
var long = flag.Bool("long", false, "run the long form of tests that have one: all seeds, all kills")

// Count returns how often a test does something: so often in its short form, so often in its long one.
func Count(short, all int) int {
	if *long {
		return all
	}
	return short
}

// Some returns the first of a list in the short form of a test, all of it in the long one.
func Some[T any](all []T, short int) []T { return all[:Count(min(short, len(all)), len(all))] }
