package load_test

import (
	"testing"
	"time"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/load"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestWhatMattersIsLoaded compares what is read to derive subjects in part with what storetest.StateBefore says.
func TestWhatMattersIsLoaded(t *testing.T) {
	t.Parallel()
	storetest.CompareStateBefore(t, func(s *store.Store, subjects []trail.Subject, since, _ time.Time) ([]trail.Fact, error) {
		return load.New(s.DB, "c1").FactsThatMatter(t.Context(), subjects, since)
	})
}
