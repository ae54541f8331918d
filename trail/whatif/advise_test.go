package whatif_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail/whatif"
)

// weekOf is a week with nine migrations, of which base=2m and base=30m would have saved some, with a wait of a minute
// or of twenty each.
func weekOf(t *testing.T, n, short, long int) whatif.Answer {
	t.Helper()
	since := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * whatif.Week)
	return whatif.Answer{
		Cluster: "c", Since: since, Until: since.Add(whatif.Week), Recorded: whatif.Tally{Migrations: 9},
		Policies: []whatif.Result{resultOf(t, "base=2m", short, short, short, time.Minute),
			resultOf(t, "base=30m", long, long, long, 20*time.Minute)},
	}
}

func TestAdvise(t *testing.T) {
	t.Parallel()
	quiet := whatif.Answer{Cluster: "c", Since: weekOf(t, 3, 0, 0).Since, Until: weekOf(t, 3, 0, 0).Until}
	a := whatif.Advise([]whatif.Answer{
		weekOf(t, 0, 5, 6), // the short one saves nearly as much, and waits less
		weekOf(t, 1, 5, 5),
		weekOf(t, 2, 1, 7), // a week in which only the long one helps
		quiet,
		weekOf(t, 4, 1, 6),
	}, 2)
	require.Equal(t, []string{"base=2m", "base=30m"}, a.Policies)
	require.Len(t, a.Weeks, 3)

	w := a.Weeks[0]
	require.Equal(t, "base=2m", w.Advised.Policy)
	require.Equal(t, "base=30m", w.Best.Policy)
	require.Equal(t, []int{9, 1, 7, 6, 7}, []int{w.Migrations, w.Advised.Saved, w.Best.Saved, w.Regret,
		w.RegretPresent})
	require.Equal(t, time.Minute, w.Advised.WaitMean())
	require.Equal(t, 20*time.Minute, w.Best.WaitMean())

	w = a.Weeks[1] // 5+1 of 18 against 5+7: the long one is advised, and nothing happened
	require.Equal(t, []string{"base=30m", "recorded"}, []string{w.Advised.Policy, w.Best.Policy})
	require.Equal(t, []int{0, 0, 0, 0}, []int{w.Migrations, w.Advised.Saved, w.Regret, w.RegretPresent})

	w = a.Weeks[2]
	require.Equal(t, []string{"base=30m", "base=30m"}, []string{w.Advised.Policy, w.Best.Policy})
	require.Zero(t, w.Regret)
	require.Equal(t, 6, w.RegretPresent)

	require.Equal(t, []int{6, 13, 1}, []int{a.Regret, a.RegretPresent, a.Changes})
	require.Equal(t, "base=30m", a.Now.Policy)
	require.Equal(t, "base=30m saves up to 6 of 9 migrations; it costs a mean wait of 20 min for 6 evictions.", a.Text)
	require.Equal(t, quiet.Since, a.Since, "the last two weeks")
	require.Equal(t, "The advice changed once from week to week. In 3 weeks following it would have cost 6 "+
		"migrations more than the best in hindsight, "+
		"and the settings in force 13 more.", a.Stability())

	// Where too little happened to advise anything the settings stay, and cost what the best would have saved.
	few := weekOf(t, 0, 1, 1)
	few.Recorded.Migrations, few.Policies = 2, nil
	a = whatif.Advise([]whatif.Answer{few, weekOf(t, 1, 5, 5)}, 1)
	require.Equal(t, "recorded", a.Weeks[0].Advised.Policy)
	require.Equal(t, []int{5, 5}, []int{a.Regret, a.RegretPresent})
	require.Equal(t, 1, a.Changes, "today it is another")

	a = whatif.Advise([]whatif.Answer{weekOf(t, 0, 5, 5)}, 4)
	require.Empty(t, a.Weeks)
	require.Equal(t, "base=2m", a.Now.Policy)
	require.Contains(t, a.Stability(), "more history is needed")
}

// TestAdvicePolicies holds that all usual values of settings that can be set are compared, and no others.
func TestAdvicePolicies(t *testing.T) {
	t.Parallel()
	all := whatif.AdvicePolicies()
	require.LessOrEqual(t, len(all), whatif.MostPolicies)
	swept := 0
	for _, text := range whatif.UsualSweeps() {
		s, err := whatif.ParseSweep(text, whatif.Policy{})
		require.NoError(t, err)
		if s.Policies[0].Possible() {
			swept += len(s.Policies)
		}
	}
	require.Len(t, all, swept)
	for _, p := range all {
		require.True(t, p.Possible(), p)
	}
}
