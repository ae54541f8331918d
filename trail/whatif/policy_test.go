package whatif_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

func TestPoliciesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]whatif.Policy{
		"recorded":     {},
		"cooldown=off": {Cooldown: &whatif.Cooldown{Off: true}},
		"cooldown=on":  {Cooldown: &whatif.Cooldown{}},
		"base=5m cap=1h window=26h30m keep-mark": {
			Cooldown: &whatif.Cooldown{Base: trail.Span(5 * time.Minute), Cap: trail.Span(time.Hour), Window: trail.Span(26*time.Hour + 30*time.Minute)}, KeepMark: true,
		},
		"node-limit=2 total-limit=5 try-once give-up-after=3": {NodeLimit: 2, TotalLimit: 5, TryOnce: true, GiveUpAfter: 3},
	} {
		got, err := whatif.ParsePolicy(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, got.String())
	}
	got, err := whatif.ParsePolicy("cap=1h,base=300s")
	require.NoError(t, err)
	require.Equal(t, "base=5m cap=1h", got.String())
}

func TestPoliciesThatAreNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     `policy "": expected words such as recorded, keep-mark`,
		"faster":               `policy "faster": "faster": expected one of recorded`,
		"base=soon":            `base=soon: expected a duration of a second or more, such as 5m`,
		"base=-5m":             `base=-5m: expected a duration of a second or more`,
		"node-limit=0":         `node-limit=0: expected a whole number from 1 on`,
		"give-up-after":        `give-up-after=: expected a whole number from 1 on`,
		"try-once=2":           `try-once: takes no value`,
		"cooldown=5m":          `cooldown=5m: expected on or off`,
		"cooldown=off base=5m": `a cooldown that is off has no base, cap or window`,
		"base=2h cap=1h":       `maxMigrationCooldown (1h0m0s) must be >= migrationCooldown (2h0m0s)`,
	} {
		_, err := whatif.ParsePolicy(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestSweeps(t *testing.T) {
	t.Parallel()
	s, err := whatif.ParseSweep("base=5m..60m", whatif.Policy{KeepMark: true, Cooldown: &whatif.Cooldown{Cap: trail.Span(2 * time.Hour)}})
	require.NoError(t, err)
	require.Equal(t, "base=5m cap=2h keep-mark, base=10m cap=2h keep-mark, base=15m cap=2h keep-mark, base=30m cap=2h keep-mark, base=1h cap=2h keep-mark", whatif.Names(s.Policies))
	require.InDelta(t, 600, s.Policies[1].Value("base"), 0)
	s, err = whatif.ParseSweep("base=45s..7m", whatif.Policy{})
	require.NoError(t, err)
	require.Equal(t, "base=45s, base=1m, base=2m, base=5m, base=7m", whatif.Names(s.Policies), "both ends, and round steps between them")
	for _, text := range whatif.UsualSweeps() {
		_, err := whatif.ParseSweep(text, whatif.Policy{})
		require.NoError(t, err, text)
	}
	s, err = whatif.ParseSweep("give-up-after=1..5/2", whatif.Policy{})
	require.NoError(t, err)
	require.Equal(t, []whatif.Policy{{GiveUpAfter: 1}, {GiveUpAfter: 3}, {GiveUpAfter: 5}}, s.Policies)
	for text, want := range map[string]string{
		"":                     "expected SETTING=FROM..TO",
		"try-once=1..2":        "expected SETTING=FROM..TO",
		"base=5m":              "expected SETTING=FROM..TO",
		"base=60m..5m":         "expected two values at least, and at most 32, in ascending order",
		"base=1s..10h/1s":      "expected two values at least, and at most 32",
		"node-limit=0..3":      "node-limit=0: expected a whole number from 1 on",
		"node-limit=1..3/0":    "expected two values at least",
		"window=12h..72h/soon": "expected two values at least",
	} {
		_, err := whatif.ParseSweep(text, whatif.Policy{})
		require.ErrorContains(t, err, want, text)
	}
	_, err = whatif.ParseSweep("base=5m..2h", whatif.Policy{Cooldown: &whatif.Cooldown{Cap: trail.Span(time.Hour)}})
	require.ErrorContains(t, err, "must be >= migrationCooldown")
}

func TestQuestionsThatAskTooMuch(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	q := whatif.Question{Since: now.AddDate(0, 0, -91)}
	require.NoError(t, q.Validate())
	require.ErrorContains(t, q.Bound(now), "at most 90 days")
	q = whatif.Question{Since: now, Until: now}
	require.ErrorContains(t, q.Bound(now), "must be before until")
	q = whatif.Question{Policies: make([]whatif.Policy, 33)}
	require.ErrorContains(t, q.Validate(), "33 policies: at most 32")
	q = whatif.Question{}
	require.Equal(t, whatif.Proposals(), q.All())
}
