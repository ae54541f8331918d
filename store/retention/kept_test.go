package retention_test

import (
	"testing"
	"time"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestWhatMattersIsKept compares what is kept where facts are dropped with what storetest.StateBefore says.
func TestWhatMattersIsKept(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	storetest.CompareStateBefore(t, func(s *store.Store, subjects []trail.Subject, since, boundary time.Time) ([]trail.Fact, error) {
		return retention.Kept(t.Context(), s.DB, "c1", subjects, since, boundary)
	})
}
