package played_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"
)

// fires says on which recordings which alerts fire, and on what. All others stay silent on all of them. The recordings are
// shorter than an hour, so what has to last for longer is only pending.
var fires = map[string][]string{
	"a-descheduler-eviction-success": nil,
	"b-dual-retry-loop":              {"EvictrailDualRetryLoop warning worker-1"},
	"b-dual-retry-loop-v1.8":         {"EvictrailDualRetryLoop warning worker-1"},
	"b2-dual-retry-same-vm":          {"EvictrailDualRetryLoop warning worker-1"},
	"c-node-drain":                   {"EvictrailGuestLost warning"}, // ifposs-1 and batch-1
	"d-external-strategy":            nil,
	"e-user-migrations":              nil,
	"g-churn-cooldown": {
		"EvictrailNodesOscillate warning worker-1", // churner and small-2 exchange their nodes
		"EvictrailVMChurnHigh info demo/churner", "EvictrailVMPingPong warning demo/churner", "EvictrailVMPingPong warning demo/small-2",
	},
	"k-blocked-slot":                  nil,
	"m-dual-retry-loop-with-cooldown": {"EvictrailDualRetryLoop warning worker-1"},
	"p-dual-retry-loop-v1.9":          {"EvictrailDualRetryLoop warning worker-1"},
}

// step is the time between two evaluations, as the metrics are sampled.
const step = 15 * time.Second

// TestAlertsOnRecordings evaluates the rules on the metrics of every recording, in the recording's own time, and prints which
// alert did what. "evictrail alerts backtest" has to have the same firings.
func TestAlertsOnRecordings(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	table := map[string]map[string]string{}
	t.Cleanup(func() {
		t.Logf("recordings and alerts (how many evaluations each was firing, or pending):\n%s", renderTable(table))
	})
	for _, name := range listRecordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := playRecording(t, name)
			fired, pending := evaluateAlerts(t, i, generatedRules)
			require.Equal(t, fires[name], slices.Sorted(maps.Keys(fired)))
			requireBacktestAgrees(t, i, fired)
			mu.Lock()
			defer mu.Unlock()
			table[name] = map[string]string{}
			for alert, n := range pending {
				table[name][alert] = fmt.Sprintf("pending %d", n)
			}
			for alert, n := range fired {
				table[name][alert] = fmt.Sprintf("FIRING %d", n)
			}
		})
	}
}

// TestAlertsWithoutAudit wants the loops to be noticed where no audit log can be had: all but the one in which the descheduler
// asks for the same VM again and again, which only the audit log shows.
func TestAlertsWithoutAudit(t *testing.T) {
	t.Parallel()
	for name, want := range fires {
		if !strings.HasPrefix(name, "b") {
			continue
		}
		if name == "b2-dual-retry-same-vm" {
			want = nil
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fired, _ := evaluateAlerts(t, playRecording(t, name, "--no-audit"), generatedRules)
			require.Equal(t, want, slices.Sorted(maps.Keys(fired)))
		})
	}
}

func renderTable(table map[string]map[string]string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(table)) {
		_, _ = fmt.Fprintf(&out, "%s\n", name)
		for _, alert := range slices.Sorted(maps.Keys(table[name])) {
			_, _ = fmt.Fprintf(&out, "    %-60s %s\n", alert, table[name][alert])
		}
	}
	return out.String()
}

// evaluateAlerts evaluates the generated rules over the metrics of an incident, and counts at how many evaluations each alert was
// firing and pending: by its name, severity and what it is about. What the rules recorded goes to the metrics.
func evaluateAlerts(t *testing.T, i incident, file string) (fired, pending map[string]int) {
	t.Helper()
	scraped := openData(t, i.blocks)
	defer func() { require.NoError(t, scraped.Close()) }()
	r := loadRules(t, scraped, file)
	fired, pending = map[string]int{}, map[string]int{}
	for at := i.from; !at.After(i.to); at = at.Add(step) {
		for _, a := range r.evaluateAt(t, at) {
			if a.State == rules.StateFiring {
				fired[describeAlert(a)]++
			} else {
				pending[describeAlert(a)]++
			}
		}
	}
	require.NoError(t, r.recorded.Snapshot(i.blocks, true))
	return fired, pending
}
