package cluster_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock moves the times of a recording into the present. All that is moved by one clock keeps its order and, but for what it
// leaves out, its distances. It moves by whole seconds: what fell into the same second still does.
type clock struct{ shifts []shift } // by their beginning

type shift struct {
	from time.Time // in the recording; the first shift holds before it as well
	by   time.Duration
}

// newClock makes a clock that has the recording begin now, or within a second.
func newClock(begin, now time.Time) *clock {
	return &clock{[]shift{{begin, now.Sub(begin).Truncate(time.Second) + time.Second}}}
}

// leaveOut shortens each time in which nothing happened to idle, by its middle. What happened is in order.
func (c *clock) leaveOut(happened []time.Time, idle time.Duration) {
	by := c.shifts[len(c.shifts)-1].by
	for i := 1; i < len(happened); i++ {
		left := (happened[i].Sub(happened[i-1]) - idle).Truncate(time.Second)
		if left <= 0 {
			continue
		}
		by -= left
		c.shifts = append(c.shifts, shift{happened[i-1].Add(idle/2 + left), by})
	}
}

// delayRest has the rest of the recording, from a time on, come later by whole seconds: a busy machine plays more slowly.
func (c *clock) delayRest(at time.Time, late time.Duration) {
	late = late.Truncate(time.Second)
	i, found := slices.BinarySearchFunc(c.shifts, at, func(s shift, t time.Time) int { return s.from.Compare(t) })
	if !found {
		c.shifts = slices.Insert(c.shifts, i, shift{at, c.shifts[max(i-1, 0)].by})
	}
	for j := range c.shifts[i:] {
		c.shifts[i+j].by += late
	}
}

// toPresent returns the present time for one of the recording. Those that are left out are all the end of what was before them.
func (c *clock) toPresent(recorded time.Time) time.Time {
	i, found := slices.BinarySearchFunc(c.shifts, recorded, func(s shift, t time.Time) int { return s.from.Compare(t) })
	if !found {
		i = max(i-1, 0)
	}
	moved := recorded.Add(c.shifts[i].by)
	if i+1 < len(c.shifts) {
		if most := c.shifts[i+1].from.Add(c.shifts[i+1].by); moved.After(most) {
			return most
		}
	}
	return moved
}

// stamp is a whole JSON string that is a time.
var stamp = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)

// shiftTimes moves the times in a JSON text, each in the precision it has.
func (c *clock) shiftTimes(raw []byte) []byte {
	return stamp.ReplaceAllFunc(raw, func(text []byte) []byte {
		t, err := time.Parse(time.RFC3339Nano, string(text[1:len(text)-1]))
		if err != nil {
			return text
		}
		layout := "2006-01-02T15:04:05Z"
		if digits := len(text) - len(layout) - 2; digits > 0 {
			layout = "2006-01-02T15:04:05." + "000000000"[:digits-1] + "Z"
		}
		return []byte(`"` + c.toPresent(t).UTC().Format(layout) + `"`)
	})
}

func TestClockSlips(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 0, 30, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	c := newClock(begin, begin)
	c.leaveOut([]time.Time{begin, at(3), at(103)}, 10*time.Second)
	began := c.toPresent(begin)
	c.delayRest(at(2), 1500*time.Millisecond)
	c.delayRest(at(103), 2*time.Second)
	for recorded, want := range map[float64]float64{0: 0, 1.5: 1.5, 2: 3, 3: 4, 102.5: 13.5, 103: 16, 110: 23} {
		require.Equal(t, began.Add(time.Duration(want*float64(time.Second))), c.toPresent(at(recorded)), "%v s", recorded)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 0, 30, 0, 500, time.UTC)
	now := time.Date(2027, 3, 1, 12, 0, 0, 900, time.UTC)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	c := newClock(begin, now)
	c.leaveOut([]time.Time{begin, at(3), at(103.5), at(104)}, 10*time.Second)
	for recorded, want := range map[float64]float64{-60: -60, 0: 0, 3: 3, 8: 8, 50: 8, 98: 8, 98.5: 8.5, 103.5: 13.5, 104: 14, 1000: 910} {
		require.Equal(t, c.toPresent(begin).Add(time.Duration(want*float64(time.Second))), c.toPresent(at(recorded)), "%v s", recorded)
	}
	require.WithinRange(t, c.toPresent(begin), now, now.Add(time.Second))
	require.JSONEq(t, `{"a":"2027-03-01T12:00:04Z","b":"2027-03-01T12:00:04.25Z","c":"on 2026-11-21T00:30:03Z"}`,
		string(c.shiftTimes([]byte(`{"a":"2026-11-21T00:30:03Z","b":"2026-11-21T00:30:03.25Z","c":"on 2026-11-21T00:30:03Z"}`))))
}
