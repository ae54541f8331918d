package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
	"github.com/evictrail/evictrail/trail"
)

// The months that get a partition of their own, before and after the one in which a fact was seen. Times of watched objects are named by who makes these: each
// month that they could name would cost a partition for ever. What is older goes to the default partition. Times further ahead are none (trail.Plausible). Who
// imports audit logs chose their files.
const (
	monthsBack         = 3
	monthsBackImported = 120
	monthsAhead        = 12
)

// EnsureMonths makes the partitions of the month of now and of the one after, also where that was denied before.
func (s *Store) EnsureMonths(ctx context.Context, now time.Time) error {
	months := []time.Time{tables.MonthOf(now), tables.MonthOf(now).AddDate(0, 1, 0)}
	s.mu.Lock()
	for _, month := range months {
		if exists, asked := s.months[month]; asked && !exists {
			delete(s.months, month)
		}
	}
	s.mu.Unlock()
	return errors.Join(s.ensureMonth(ctx, months[0]), s.ensureMonth(ctx, months[1]))
}

// ensureFor makes the partitions that facts need. A month further back from the time at which its facts were seen gets none.
func (s *Store) ensureFor(ctx context.Context, facts []trail.Fact, back int) error {
	for _, f := range facts {
		month, seen := tables.MonthOf(f.OccurredAt), tables.MonthOf(f.ObservedAt)
		if month.Before(seen.AddDate(0, -back, 0)) || month.After(seen.AddDate(0, monthsAhead, 0)) {
			continue
		}
		if err := s.ensureMonth(ctx, month); err != nil {
			return err
		}
	}
	return nil
}

const ensureMonthQuery = `
SELECT evictrail.ensure_month(@month)`

// ensureMonth makes the partition of one month unless it is known to exist, or to be denied until EnsureMonths tries again. Without the right to make one, or with
// rows of that month in the default partition, the default one takes the facts: they are never lost for want of a
// partition.
func (s *Store) ensureMonth(ctx context.Context, month time.Time) error {
	s.mu.Lock()
	_, asked := s.months[month]
	s.mu.Unlock()
	if asked {
		return nil
	}
	_, err := s.DB.Exec(ctx, ensureMonthQuery, pgx.StrictNamedArgs{"month": month})
	if err != nil && !pg.IsPartitionUnneeded(err) {
		return pg.Explain("make partition of "+month.Format("2006-01"), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.months[month] = !pg.IsDenied(err)
	return nil
}
