package trail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFingerprintOfMigrationPolicies changes one thing after the other of MigrationPolicies: their fingerprint names the settings and whom they
// are for, in any order, and not what the policies are called or how old they are.
func TestFingerprintOfMigrationPolicies(t *testing.T) {
	t.Parallel()
	yes, seconds, day := true, int64(800), time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	slow := MigrationPolicySettings{Name: "slow", CreatedAt: day, VMIs: map[string]string{"speed": "slow", "tier": "db"}, AllowPostCopy: &yes}
	fast := MigrationPolicySettings{Name: "fast", Bandwidth: "64Mi"}
	was := fingerprintOfPolicies([]MigrationPolicySettings{slow, fast})
	require.Regexp(t, `^[0-9a-f]{6}$`, was)
	require.Equal(t, was, fingerprintOfPolicies([]MigrationPolicySettings{fast, slow}), "another order")
	renamed := slow
	renamed.Name, renamed.CreatedAt = "other", day.Add(time.Hour)
	require.Equal(t, was, fingerprintOfPolicies([]MigrationPolicySettings{renamed, fast}), "another name")
	seen := map[string]string{was: "as it was"}
	for name, change := range map[string]func(*MigrationPolicySettings){
		"other VMs":        func(p *MigrationPolicySettings) { p.VMIs = map[string]string{"speed": "slow"} },
		"other namespaces": func(p *MigrationPolicySettings) { p.Namespaces = map[string]string{"team": "shop"} },
		"converge":         func(p *MigrationPolicySettings) { p.AllowAutoConverge = &yes },
		"post-copy":        func(p *MigrationPolicySettings) { p.AllowPostCopy = nil },
		"disruption":       func(p *MigrationPolicySettings) { p.AllowWorkloadDisruption = &yes },
		"bandwidth":        func(p *MigrationPolicySettings) { p.Bandwidth = "1Gi" },
		"timeout":          func(p *MigrationPolicySettings) { p.CompletionTimeoutPerGiB = &seconds },
	} {
		changed := slow
		change(&changed)
		now := fingerprintOfPolicies([]MigrationPolicySettings{changed, fast})
		require.NotContains(t, seen, now, name)
		seen[now] = name
	}
	require.NotContains(t, seen, fingerprintOfPolicies([]MigrationPolicySettings{slow}), "one is gone")
}

// TestFingerprintOfSettings reads settings from different texts: the fingerprint names what was read. A policy that cannot be read changes
// nothing, as the descheduler refuses it, too.
func TestFingerprintOfSettings(t *testing.T) {
	t.Parallel()
	a := KubeVirtSettings{Version: "v1.8.4", FeatureGates: []string{"A", "B"}}
	b := KubeVirtSettings{Version: "v1.8.4", FeatureGates: []string{"B", "A"}}
	require.Equal(t, a.computeFingerprint(), b.computeFingerprint())
	require.Equal(t, []string{"B", "A"}, b.FeatureGates, "it changes nothing")
	require.NotEqual(t, a.computeFingerprint(), KubeVirtSettings{Version: "v1.8.4"}.computeFingerprint())

	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var facts []Fact
	for i, d := range []ConfigDetail{
		{Policy: "# by alice", Descheduler: &DeschedulerSettings{Model: "4.21"}},
		{Policy: "# by bob", Descheduler: &DeschedulerSettings{Model: "4.21"}},
		{Policy: "broken", Problem: "no policy"},
		{Policy: "again", Descheduler: &DeschedulerSettings{}},
	} {
		facts = append(facts, Fact{
			ID: FactID{byte(i)}, Subject: Subject{SubjectConfig, string(ObjectPolicy)}, OccurredAt: day.Add(time.Duration(i) * time.Minute), Detail: &d,
		})
	}
	history := NewEnv(facts).Settings("test")
	require.Len(t, history, 2)
	require.Equal(t, day.Add(3*time.Minute), history[0].Until)
	require.Equal(t, "4.21", history[0].Descheduler.Model)
	require.True(t, history[0].Matches(history[0].Policy))
	require.True(t, history[0].Matches(fingerprintOf(DeschedulerSettings{Model: "4.21"})))
	require.False(t, history[0].Matches(""))
	require.Equal(t, history[1:], SettingsQuery{}.Select(history))
	require.Equal(t, history[1:], SettingsQuery{At: day.Add(3 * time.Minute)}.Select(history))
	require.Equal(t, history[:1], SettingsQuery{At: day}.Select(history))
	require.Equal(t, history[:1], SettingsQuery{Fingerprint: history[0].Policy}.Select(history))
	require.Empty(t, SettingsQuery{Fingerprint: "nope"}.Select(history))
}

// TestMigrationPolicyInAnswers asks why a VM moved whose migrations a MigrationPolicy was applied to: the answer names it.
func TestMigrationPolicyInAnswers(t *testing.T) {
	t.Parallel()
	require.Empty(t, policiesOf([]Migration{{}, {}}))
	require.Equal(t, "MigrationPolicy applied: slow.", policiesOf([]Migration{{Policy: "slow"}}))
	require.Equal(t, "MigrationPolicy applied: slow (2 of 4 migrations), fast (1 of 4 migrations).",
		policiesOf([]Migration{{Policy: "slow"}, {}, {Policy: "fast"}, {Policy: "slow"}}))
}
