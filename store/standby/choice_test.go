package standby

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestChoice goes through what both servers say, one second after the other.
func TestChoice(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	const most = 3 * time.Second
	for _, c := range []struct {
		name    string
		primary []int64 // where it is at each second; 0: it does not answer
		standby []replayed
		used    bool
		cause   trail.StandbyCause
		asOf    time.Time
	}{
		{"it has everything", []int64{10, 20}, []replayed{{recovering: true, lsn: 10}, {recovering: true, lsn: 25}}, true, "", second(1)},
		{"a little behind", []int64{10, 20}, []replayed{{recovering: true, lsn: 10}, {recovering: true, lsn: 19}}, true, "", second(0)},
		{"it replays nothing", []int64{10, 20, 30, 40, 50}, []replayed{{recovering: true, lsn: 10}, {recovering: true, lsn: 10}, {recovering: true, lsn: 10}, {recovering: true, lsn: 10}, {recovering: true, lsn: 10}}, false, trail.StandbyLags, second(0)},
		{"nothing is written", []int64{10, 10, 10, 10, 10, 10}, []replayed{5: {recovering: true, lsn: 10, committed: second(-100)}}, true, "", second(5)},
		{"it began behind", []int64{10, 20}, []replayed{1: {recovering: true, lsn: 5, committed: second(-1)}}, true, "", second(-1)},
		{"it began far behind", []int64{10, 20}, []replayed{1: {recovering: true, lsn: 5, committed: second(-9)}}, false, trail.StandbyLags, second(-9)},
		{"it never replayed", []int64{10, 20}, []replayed{1: {recovering: true}}, false, trail.StandbyLags, time.Time{}},
		{"a clock is ahead", []int64{0, 0}, []replayed{1: {recovering: true, lsn: 5, committed: second(9)}}, false, trail.StandbyLags, time.Time{}},
		{"it is away", []int64{10, 20}, []replayed{1: {err: errors.New("gone")}}, false, trail.StandbyAway, time.Time{}},
		{"it takes writes", []int64{10, 20}, []replayed{1: {lsn: 20}}, false, trail.StandbyPrimary, second(1)},
		{"the primary is away", []int64{10, 0, 0}, []replayed{{recovering: true, lsn: 10}, {recovering: true, lsn: 10}, {recovering: true, lsn: 15, committed: second(1)}}, true, "", second(1)},
		{"the primary is away for long", []int64{10, 0, 0, 0, 0}, []replayed{{recovering: true, lsn: 10}, 4: {recovering: true, lsn: 10}}, true, trail.StandbyLags, second(0)},
		{"another primary is before the former", []int64{90, 20, 30}, []replayed{{recovering: true, lsn: 10}, {recovering: true, lsn: 20}, {recovering: true, lsn: 30}}, true, "", second(2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var n noted
			var s trail.StandbySigns
			for i, lsn := range c.primary {
				var primary *written
				if lsn > 0 {
					primary = &written{second(i), lsn}
				}
				standby := replayed{err: errors.New("not asked")}
				if i < len(c.standby) && c.standby[i] != (replayed{}) {
					standby = c.standby[i]
				}
				n.note(second(i), primary, lsn, standby)
				s = n.chooseServer(second(i), most)
			}
			require.Equal(t, c.used, s.Used, s.Why)
			require.Equal(t, c.cause, s.Cause, s.Why)
			require.Equal(t, c.asOf, s.AsOf)
			require.Equal(t, s.Cause != "", s.Why != "")
		})
	}
}

// TestHistoryIsBounded has a standby replay nothing for hours.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	var h history
	for i := range int64(10_000) {
		h.add(written{start.Add(time.Duration(i) * time.Second), 100 + i})
		require.LessOrEqual(t, len(h.all), historyMost)
	}
	require.Zero(t, h.coveredBy(1))
	for position := int64(100); position < 10_100; position++ {
		has := start.Add(time.Duration(position-100) * time.Second)
		at := h.coveredBy(position)
		require.False(t, at.After(has), "no later than what it has")
		require.Less(t, has.Sub(at), time.Minute)
	}
	require.Equal(t, history{all: []written{{start.Add(9_999 * time.Second), 10_099}}}, h)
}

// TestWhatIsAwaited holds the standby back until it has what was written.
func TestWhatIsAwaited(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := noted{awaited: unknownPosition}
	n.note(now, nil, 0, replayed{recovering: true, lsn: 99})
	require.Equal(t, int64(unknownPosition), n.awaited, "where the primary was is not known")
	n.note(now, &written{now, 100}, 120, replayed{recovering: true, lsn: 110})
	require.Equal(t, int64(120), n.awaited, "also what was not sent yet")
	n.note(now, &written{now, 130}, 130, replayed{recovering: true, lsn: 120})
	require.Zero(t, n.awaited)
}
