package collector

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// policyText is a policy of one profile in which KubevirtMigrationAware has these arguments.
func policyText(args string) string {
	return `
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: KubevirtMigrationAware, args: ` + args + `}
  plugins:
    filter: {enabled: [DefaultEvictor, KubevirtMigrationAware]}
`
}

func newInt64(n int64) *int64 { return &n }

func newCooldown(base, most, window time.Duration) *trail.CooldownSettings {
	return &trail.CooldownSettings{Base: base, Max: most, Window: window}
}

func TestReadPolicy(t *testing.T) {
	t.Parallel()
	byDefault := newCooldown(trail.DefaultCooldown, trail.DefaultMaxCooldown, trail.DefaultCooldownWindow)
	for _, c := range []struct {
		name string
		text string
		want trail.DeschedulerSettings
	}{
		{"no arguments", policyText("{}"), trail.DeschedulerSettings{Cooldown: byDefault}},
		{"arguments that are null", policyText("null"), trail.DeschedulerSettings{Cooldown: byDefault}},
		{"zero means the default", policyText(`{migrationCooldown: 0s, maxMigrationCooldown: "0", migrationHistoryWindow: 0s}`), trail.DeschedulerSettings{Cooldown: byDefault}},
		{"some of them", policyText(`{migrationCooldown: 1m30s, migrationHistoryWindow: 24h}`),
			trail.DeschedulerSettings{Cooldown: newCooldown(90*time.Second, trail.DefaultMaxCooldown, 24*time.Hour)}},
		{"a base above the cap that is the default", policyText(`{migrationCooldown: 8h}`),
			trail.DeschedulerSettings{Cooldown: newCooldown(8*time.Hour, trail.DefaultMaxCooldown, trail.DefaultCooldownWindow)}},
		{"in the pre-eviction filter alone, in a documentation's case, without arguments",
			strings.ReplaceAll(strings.Replace(policyText("{}"), "filter:", "preEvictionFilter:", 1), "name: KubevirtMigrationAware", "name: Other"),
			trail.DeschedulerSettings{Cooldown: byDefault}},
		{"arguments of a plugin that is not enabled", strings.ReplaceAll(policyText("{migrationCooldown: 1m}"), ", KubevirtMigrationAware]", "]"), trail.DeschedulerSettings{}},
		{"limits", "{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy, maxNoOfPodsToEvictTotal: 5, maxNoOfPodsToEvictPerNode: 0, maxNoOfPodsToEvictPerNamespace: 3}",
			trail.DeschedulerSettings{LimitTotal: newInt64(5), LimitPerNode: newInt64(0), LimitPerNamespace: newInt64(3)}},
		{"the smaller limit of a node", `
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNode: 4
profiles:
- {name: off, pluginConfig: [{name: LowNodeUtilization, args: {evictionLimits: {node: 1}}}]}
- {name: on, pluginConfig: [{name: LowNodeUtilization, args: {evictionLimits: {node: 2}}}], plugins: {balance: {enabled: [LowNodeUtilization]}}}
- {name: bare, plugins: {balance: {enabled: [LowNodeUtilization]}}}
`, trail.DeschedulerSettings{LimitPerNode: newInt64(2)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ReadPolicy([]byte(c.text))
			require.NoError(t, err)
			require.Equal(t, &c.want, got)
		})
	}
}

func TestReadPolicySaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", `apiVersion "", kind "": expected descheduler/v1alpha2, DeschedulerPolicy`},
		{"no YAML", "a: b: c", "yaml: "},
		{"another object", "apiVersion: v1\nkind: ConfigMap", `apiVersion "v1", kind "ConfigMap"`},
		{"an older version", "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy", `apiVersion "descheduler/v1alpha1"`},
		{"negative base", policyText("{migrationCooldown: -1m}"), "profile p: KubevirtMigrationAware: migrationCooldown must be non-negative, got -1m0s"},
		{"negative cap", policyText("{maxMigrationCooldown: -1m}"), "maxMigrationCooldown must be non-negative, got -1m0s"},
		{"negative window", policyText("{migrationHistoryWindow: -1m}"), "migrationHistoryWindow must be non-negative, got -1m0s"},
		{"cap below base", policyText("{migrationCooldown: 2h, maxMigrationCooldown: 1h}"), "maxMigrationCooldown (1h0m0s) must be >= migrationCooldown (2h0m0s)"},
		{"no duration", policyText("{migrationCooldown: soon}"), `invalid duration "soon"`},
		{"a bare number", policyText("{migrationCooldown: 900}"), "KubevirtMigrationAware: "},
		{"negative limit", "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmaxNoOfPodsToEvictTotal: -1", "maxNoOfPodsToEvictTotal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadPolicy([]byte(c.text))
			require.ErrorContains(t, err, c.want)
			o, ok := Policy([]byte(c.text), "4.22")(tracker.Seen{}).(tracker.PolicyObservation)
			require.True(t, ok)
			require.Equal(t, tracker.PolicyObservation{Meta: o.Meta, Text: c.text, Problem: err.Error()}, o, "the text is kept")
		})
	}
}

func TestReadPolicyOfRecordings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/recordings/*/descheduler-policy.yaml")
	require.NoError(t, err)
	require.Len(t, files, 11)
	cooldowns := map[string]*trail.CooldownSettings{
		"g-churn-cooldown":                newCooldown(30*time.Second, 4*time.Minute, time.Hour),
		"m-dual-retry-loop-with-cooldown": newCooldown(time.Minute, 10*time.Minute, 2*time.Hour),
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		got, err := ReadPolicy(text)
		require.NoError(t, err, file)
		name := filepath.Base(filepath.Dir(file))
		require.Equal(t, cooldowns[name], got.Cooldown, name)
		require.Equal(t, newInt64(5), got.LimitTotal, name)
		perNode := int64(1)
		if strings.Contains(string(text), "maxNoOfPodsToEvictPerNode: 2") {
			perNode = 2
		}
		require.Equal(t, &perNode, got.LimitPerNode, name)
		require.Nil(t, got.LimitPerNamespace, name)
	}
}

// configMap is the ConfigMap d/policy at a version.
func configMap(version, text string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"d","name":"policy","uid":"u-1","resourceVersion":%q},"data":{"policy.yaml":%q}}`, version, text)
}

func (s *sink) listPolicies() []trail.ConfigDetail {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []trail.ConfigDetail
	for _, f := range s.facts {
		if d, ok := f.Detail.(*trail.ConfigDetail); ok {
			out = append(out, *d)
		}
	}
	return out
}

// TestCollectorWatchesThePolicy starts without the ConfigMap, which is then created, touched, spoilt and fixed.
func TestCollectorWatchesThePolicy(t *testing.T) {
	t.Parallel()
	a := newAPI()
	stream := make(chan string, 10)
	a.streams["configmaps"] = stream
	var asked lockedBuffer
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "configmaps") {
			_, _ = fmt.Fprintln(&asked, r.URL.Path, r.URL.Query().Get("fieldSelector"))
		}
		a.ServeHTTP(w, r)
	})
	r := startOn(t, serve, a, &sink{}, func(c *Config) { c.Policy = &PolicyMap{Namespace: "d", Name: "policy", Model: "4.21"} })
	require.NoError(t, r.Taken(t.Context(), "configmaps", "100"))
	r.requireEventually(t, "all watches synced", func() bool { return len(r.Unready()) == 0 })
	require.Contains(t, asked.String(), "/api/v1/namespaces/d/configmaps metadata.name=policy\n")
	require.Equal(t, 1, strings.Count(r.log.String(), "configmaps d/policy not found, waiting for it"), r.log)

	good := policyText("{migrationCooldown: 1m}")
	bad := policyText("{migrationCooldown: -1m}")
	stream <- formatNotification("ADDED", configMap("101", good))
	stream <- formatNotification("MODIFIED", configMap("102", good)) // somebody set a label
	stream <- formatNotification("MODIFIED", configMap("103", bad))
	stream <- formatNotification("MODIFIED", configMap("104", bad))
	stream <- formatNotification("MODIFIED", configMap("105", good))
	require.NoError(t, r.Taken(t.Context(), "configmaps", "105"))
	require.NoError(t, r.Flush(t.Context()))
	settings := &trail.DeschedulerSettings{Model: "4.21", Cooldown: newCooldown(time.Minute, trail.DefaultMaxCooldown, trail.DefaultCooldownWindow)}
	const problem = "profile p: KubevirtMigrationAware: migrationCooldown must be non-negative, got -1m0s"
	require.Equal(t, []trail.ConfigDetail{{Policy: good, Descheduler: settings}, {Policy: bad, Problem: problem}, {Policy: good, Descheduler: settings}}, r.sink.listPolicies())
	require.Equal(t, 1, strings.Count(r.log.String(), problem), r.log)
	require.NoError(t, r.stop())
}

func TestCollectorSaysWhichRightThePolicyNeeds(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.setAnswer("configmaps", http.StatusForbidden)
	r := startCollector(t, a, &sink{}, func(c *Config) { c.Policy = &PolicyMap{Namespace: "d", Name: "policy"} })
	r.requireEventually(t, "the right is named", func() bool {
		return strings.Contains(strings.Join(r.Unready(), "\n"), "no right to watch configmaps d/policy: grant list and watch on configmaps d/policy in namespace d")
	})
}

// TestSemanticsAreLogged starts a collector, upgrades KubeVirt and has the descheduler's policy change: which rules are followed is logged at the
// start, and again when others are.
func TestSemanticsAreLogged(t *testing.T) {
	t.Parallel()
	a := newAPI()
	kubevirt := func(rv, version string) string {
		return `{"metadata":{"namespace":"kubevirt","name":"kubevirt","uid":"kv","resourceVersion":"` + rv + `"},"status":{"observedKubeVirtVersion":"` + version + `"}}`
	}
	a.setAnswer("kubevirts", 0, kubevirt("7", "v1.6.0"))
	r := startCollector(t, a, &sink{}, nil)
	r.requireEventually(t, "it is logged", func() bool {
		return strings.Contains(r.log.String(), "KubeVirt v1.6.0: eviction-in-progress is taken off")
	})
	a.streams["kubevirts"] <- `{"type":"MODIFIED","object":` + kubevirt("101", "v1.6.0") + `}`
	a.streams["kubevirts"] <- `{"type":"MODIFIED","object":` + kubevirt("102", "v1.8.4") + `}`
	r.requireEventually(t, "the upgrade is logged", func() bool { return strings.Contains(r.log.String(), "KubeVirt v1.8.4: eviction-in-progress stays") })
	require.Equal(t, 2, strings.Count(r.log.String(), "rules in use"), r.log)
}
