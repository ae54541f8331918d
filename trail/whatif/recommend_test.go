package whatif_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// resultOf is a result of a policy under which so many of the nine migrations would not have happened.
func resultOf(t *testing.T, policy string, saved, held, asked int, mean time.Duration) whatif.Result {
	t.Helper()
	p, err := whatif.ParsePolicy(policy)
	require.NoError(t, err)
	return whatif.Result{
		Name: p.String(), Policy: p, Would: whatif.Tally{Migrations: 9 - saved}, MigrationsSaved: saved, HeldBack: held, AskedAgain: asked,
		WaitTotal: trail.Span(mean) * trail.Span(held),
	}
}

func TestRecommend(t *testing.T) {
	t.Parallel()
	nine := whatif.Tally{Migrations: 9}
	gaveUp := resultOf(t, "give-up-after=3", 8, 0, 0, 0)
	gaveUp.GaveUp = 1
	for name, c := range map[string]struct {
		recorded whatif.Tally
		policies []whatif.Result
		want     string
		caveats  []string
	}{
		"the cheapest of those that save nearly as much as the best": {
			nine, []whatif.Result{
				resultOf(t, "base=2m", 1, 1, 1, time.Minute), resultOf(t, "base=6m", 5, 5, 4, 218*time.Second), resultOf(t, "base=30m", 6, 6, 4, 20*time.Minute),
			},
			"base=6m saves up to 5 of 9 migrations; it costs a mean wait of 3 min 38 s for 5 evictions.",
			[]string{"base=30m would save 1 more, at a mean wait of 20 min for 6 evictions.", "1 of 5 evictions held back came from VMs that were not asked for again when they could go: they may only come later."},
		},
		"what can be set today, though a proposal saves more": {
			nine, []whatif.Result{gaveUp, resultOf(t, "node-limit=1", 2, 2, 2, time.Minute)},
			"node-limit=1 saves up to 2 of 9 migrations; it costs a mean wait of 1 min 0 s for 2 evictions.", nil,
		},
		"a proposal where nothing else saves any": {
			nine, []whatif.Result{gaveUp, resultOf(t, "cooldown=off", -15, 0, 0, 0)},
			"give-up-after=3 saves up to 8 of 9 migrations; it costs 1 evacuation given up.", []string{"None of the policies compared here that can be set today saves a migration."},
		},
		"too little happened": {whatif.Tally{Migrations: 4}, []whatif.Result{gaveUp}, "", nil},
		"nothing is saved":    {nine, []whatif.Result{resultOf(t, "base=2m", 0, 0, 0, 0)}, "", nil},
		"hardly anything is saved": {
			whatif.Tally{Migrations: 91}, []whatif.Result{{Name: "base=2m", Would: whatif.Tally{Migrations: 90}}}, "", nil,
		},
		"what was needed": {nine, []whatif.Result{{Name: "base=2m", Would: whatif.Tally{Migrations: 6}, StaysHot: 3}}, "", nil},
	} {
		a := whatif.Answer{Recorded: c.recorded, Policies: c.policies}
		got := a.Recommend()
		if c.want == "" {
			require.Nil(t, got.Result, name)
			require.Contains(t, got.Text, "No recommendation: ", name)
			continue
		}
		require.NotNil(t, got.Result, name)
		require.Equal(t, c.want, got.Text, name)
		require.Equal(t, c.caveats, got.Caveats, name)
	}
}

func TestRowsOfTheSame(t *testing.T) {
	t.Parallel()
	var results []whatif.Result
	for i, text := range []string{"base=1m", "base=2m", "base=5m", "base=10m", "try-once"} {
		results = append(results, resultOf(t, text, min(i, 1), min(i, 1), 0, time.Minute))
		results[i].Swept = text != "try-once"
	}
	var labels []string
	for _, r := range whatif.JoinRows(results) {
		labels = append(labels, r.Label("base"))
	}
	require.Equal(t, []string{"base=1m", "base=2m to 10m", "try-once"}, labels)
}

func TestPatches(t *testing.T) {
	t.Parallel()
	rules := &whatif.Rules{Cooldown: &whatif.Cooldown{Base: trail.Span(30 * time.Second), Cap: trail.Span(4 * time.Minute)}, NodeLimit: 2}
	patches := func(text string) []whatif.Patch {
		p, err := whatif.ParsePolicy(text)
		require.NoError(t, err)
		return p.Patches(rules)
	}
	got := patches("base=6m")
	require.Len(t, got, 2)
	require.Equal(t, `kubectl patch kubedescheduler cluster -n openshift-kube-descheduler-operator --type=merge -p '{"spec":{"profileCustomizations":{"devMaxMigrationCooldown":"6m0s","devMigrationCooldown":"6m0s"}}}'`,
		got[0].Text, "a base above the cap in force needs another cap")
	require.Equal(t, "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n- name: YOUR-PROFILE\n  pluginConfig:\n  - name: KubevirtMigrationAware\n    args:\n      migrationCooldown: 6m0s\n      maxMigrationCooldown: 6m0s", got[1].Text)
	got = patches("node-limit=1 total-limit=3 keep-mark")
	require.Len(t, got, 3)
	require.Contains(t, got[0].Text, `'{"spec":{"evictionLimits":{"node":1,"total":3}}}'`)
	require.Equal(t, "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmaxNoOfPodsToEvictPerNode: 1\nmaxNoOfPodsToEvictTotal: 3", got[1].Text)
	require.Contains(t, got[2].Text, `'{"spec":{"configuration":{"migrations":{"parallelMigrationsPerCluster":3,"parallelOutboundMigrationsPerNode":1}}}}'`)
	require.Contains(t, patches("cooldown=on")[0].Text, `"devMigrationCooldown":"15m0s"`)
	for text, want := range map[string]string{
		"try-once": "cannot be set today", "give-up-after=3": "cannot be set today", "keep-mark": "update KubeVirt", "cooldown=off": "take KubevirtMigrationAware out",
	} {
		p, err := whatif.ParsePolicy(text)
		require.NoError(t, err)
		require.Empty(t, patches(text), text)
		require.Len(t, p.Obstacles(), 1, text)
		require.Contains(t, p.Obstacles()[0], want)
	}
	value, text, known := rules.Setting("base")
	require.True(t, known)
	require.Equal(t, []any{30.0, "30s"}, []any{value, text})
	_, _, known = rules.Setting("give-up-after")
	require.False(t, known)
}

func TestSentencesOfSavedMigrations(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct{ migrations, failed int }{
		"away from worker-1 at 0001-01-01 00:00:00Z.":           {0, 0},
		"00:00:00Z; 1 fewer migration.":                         {1, 0},
		"00:00:00Z; 1 fewer migration, which failed.":           {1, 1},
		"00:00:00Z; 241 fewer migrations, all of which failed.": {241, 241},
		"00:00:00Z; 5 fewer migrations, 4 of which failed.":     {5, 4},
	} {
		require.Contains(t, whatif.SentenceOf(whatif.Change{Kind: whatif.ChangeGaveUp, Namespace: "demo", VMI: "vm-a", Node: "worker-1", Migrations: c.migrations, Failed: c.failed}), want)
	}
}
