package cluster_test

import (
	"flag"
	"testing"
	"time"

	"github.com/evictrail/evictrail/store/storetest"
)

// idle is how long nothing may happen in a recording that is written. What is longer is shortened to it.
var idle = flag.Duration("cluster.idle", 6*time.Second, "shorten times of recordings in which nothing happens to this; 0: take them as long as they were")

func TestMain(m *testing.M) { storetest.Main(m) }
