package truth

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOutline wants the same of two runs that differ in times and names alone, and something else where a fact is missing.
func TestOutline(t *testing.T) {
	t.Parallel()
	first := Outline(newHistory())
	require.Equal(t, []string{
		"backoff of shop/db-1 of 20s",
		"mark of shop/db-1 on n1, over: true",
		"migration of shop/db-1 from n1 to n2: Failed Pending Scheduling it broke",
		"migration of shop/db-1 from n1 to n2: Pending Scheduling Succeeded ",
		"request of shop/db-1 by admin, answered 429",
		"request of shop/db-1 by admin, answered 429",
		"stay of shop/db-1 on n1, over: true",
		"stay of shop/db-1 on n2, over: false",
	}, first)

	again := newHistory()
	for i := range again.Migrations {
		m := &again.Migrations[i]
		m.UID += "-again"
		for phase, at := range m.Phases {
			m.Phases[phase] = at.Add(time.Hour)
		}
	}
	for i := range again.Requests {
		again.Requests[i].Pod, again.Requests[i].At = "virt-launcher-db-1-y", again.Requests[i].At.Add(time.Hour)
	}
	require.Equal(t, first, Outline(again))
	again.Requests = again.Requests[1:]
	require.NotEqual(t, first, Outline(again))
}
