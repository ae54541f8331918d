package api_test

import (
	"testing"

	"github.com/evictrail/evictrail/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
