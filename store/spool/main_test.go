package spool

import (
	"os"
	"testing"

	"github.com/evictrail/evictrail/leaktest"
)

// TestMain runs the tests, or what one of them wants done on a small disk.
func TestMain(m *testing.M) {
	if os.Getenv(onSmallDisk) != "" {
		os.Exit(smallDisk())
	}
	leaktest.Main(m)
}
