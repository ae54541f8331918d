package build

import (
	"context"
	"os"
	"path/filepath"
	"sync"
)

// Evictrail builds evictrail from the work tree, once for a process, and returns its path. The go command knows what has changed.
var Evictrail = sync.OnceValues(func() (string, error) {
	path := filepath.Join(Root(), "bin/test/evictrail")
	evictrail := Program{Name: "evictrail", Module: ".", Source: "./cmd/evictrail"}
	return path, withFileLock(path, func() error { return evictrail.compile(context.Background(), os.Stderr, path) })
})
