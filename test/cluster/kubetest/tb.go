package kubetest

import "context"

// TB is what a control plane needs of who started it. testing.TB has it; a program that is no test brings its own.
type TB interface {
	Helper()
	Context() context.Context // ends before the functions of Cleanup run
	TempDir() string          // a new folder
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Fatal(args ...any) // does not return
	Fatalf(format string, args ...any)
}
