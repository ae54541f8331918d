package read_test

import (
	"testing"

	"github.com/evictrail/evictrail/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.ShortHistories()
	storetest.Main(m)
}

// start is when incidents begin.
var start = storetest.Start
