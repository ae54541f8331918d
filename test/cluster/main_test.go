package cluster_test

import (
	"flag"
	"testing"
	"time"

	"github.com/evictrail/evictrail/store/storetest"
)

// idle is how long nothing may happen in a recording that is written. What is longer is shortened to it.
var idle = flag.Duration("cluster.idle", 6*time.Second, "shorten times of recordings in which nothing happens to this; 0: take them as long as they were")

// TestMain runs the tests side by side, more of them than there are cores: they mostly wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil { // before the command line is read, which may say otherwise
		panic(err)
	}
	storetest.Main(m)
}
