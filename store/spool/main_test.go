package spool

import (
	"fmt"
	"os"
	"testing"

	"github.com/evictrail/evictrail/leaktest"
)

// TestMain runs the tests, or what one of them wants done on a small disk, until the power is cut, or until it is killed.
func TestMain(m *testing.M) {
	if os.Getenv(onSmallDisk) != "" {
		os.Exit(smallDisk())
	}
	if what := os.Getenv(onTracedDisk); what != "" {
		var seed uint64
		var dir string
		if _, err := fmt.Sscan(what, &seed, &dir); err != nil {
			panic(err)
		}
		if err := fillForPowerCut(dir, seed); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if what := os.Getenv(killed); what != "" {
		if err := useUntilKilled(what); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	leaktest.Main(m)
}
