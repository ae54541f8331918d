package notify_test

import (
	"testing"

	"github.com/evictrail/evictrail/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
