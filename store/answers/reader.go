package answers

import (
	"context"
	"time"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/store/read"
)

// Reader answers everything that callers ask. It is safe for concurrent use.
type Reader struct{ *read.Reader }

// Backtest says what would have come of alerts in a period. Errors are those of backtest.Question.Ask. For a caller who
// may not see all of the cluster there is nothing (trail.ErrNotFound).
func (r Reader) Backtest(ctx context.Context, q backtest.Question) (backtest.Answer, error) {
	return q.Ask(ctx, r.Reader, time.Now())
}
