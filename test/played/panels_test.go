package played_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/dashboards"
	"github.com/evictrail/evictrail/dashboards/dashboardstest"
)

// chosen is what the variables of the dashboards choose on a recording.
var chosen = map[string]dashboardstest.Values{
	"b-dual-retry-loop-v1.8": {"cluster": {"b-dual-retry-loop-v1.8"}, "node": {"worker-1"}, "namespace": {"demo"}, "vmi": {"vm-d"}},
	"c-node-drain":           {"cluster": {"c-node-drain"}, "node": {"worker-2"}, "namespace": {"demo"}, "vmi": {"db-local"}},
	"g-churn-cooldown":       {"cluster": {"g-churn-cooldown"}, "node": {"worker-1", "worker-2", "worker-3"}, "namespace": {"demo"}, "vmi": {"churner"}},
	"k-blocked-slot":         {"cluster": {"k-blocked-slot"}, "node": {"worker-1"}, "namespace": {"demo"}, "vmi": {"nbr-2"}},
}

// dataOf says which recordings have data for an expression. Those that are not named have it on all.
var dataOf = map[string][]string{
	"evictrail-overview/Firing alerts/A":                         {"b-dual-retry-loop-v1.8", "c-node-drain", "g-churn-cooldown"},
	"evictrail-loop/Slots in use and limits/A":                   {"b-dual-retry-loop-v1.8", "c-node-drain", "k-blocked-slot"}, // g chooses several nodes
	"evictrail-drain/Drain progress/C":                           {"c-node-drain"},
	"evictrail-drain/Drain progress/D":                           {"c-node-drain"},
	"evictrail-drain/Remaining VMs by blocker/A":                 {"c-node-drain"},
	"evictrail-migrations/Age of the oldest waiting migration/A": {"b-dual-retry-loop-v1.8", "c-node-drain", "k-blocked-slot"},
	"evictrail-cooldown/Cooldown lengths, per cooldown/A":        {"g-churn-cooldown"},
	"evictrail-cooldown/Block rate of the descheduler/A":         {"g-churn-cooldown"},
	"evictrail-vm/Time left/A":                                   {"g-churn-cooldown"},
	"evictrail-vm/Time left/B":                                   {"b-dual-retry-loop-v1.8", "k-blocked-slot"},
	"evictrail-vm/Time left/C":                                   {"b-dual-retry-loop-v1.8", "g-churn-cooldown", "k-blocked-slot"},
	"evictrail-vm/Time left/D":                                   {"b-dual-retry-loop-v1.8", "g-churn-cooldown", "k-blocked-slot"},
}

// emptyPanels are the expressions without data on any recording, each with the reason.
var emptyPanels = map[string]string{
	"evictrail-overview/Pressure and usage of nodes/A":                         ofOthers,
	"evictrail-overview/Pressure and usage of nodes/B":                         ofOthers,
	"evictrail-loop/Pressure and usage of this node/A":                         ofOthers,
	"evictrail-loop/Pressure and usage of this node/B":                         ofOthers,
	"evictrail-migrations/Dirty rate and transfer rate/A":                      ofOthers,
	"evictrail-migrations/Dirty rate and transfer rate/B":                      ofOthers,
	"evictrail-migrations/Remaining data/A":                                    ofOthers,
	"evictrail-cooldown/Cooldown lengths, per evaluation by the descheduler/A": ofOthers,
	"evictrail-collector/Spool runway/A":                                       "the spool does not fill",
	"evictrail-collector/Lost facts by cause/A":                                "nothing was lost",
	"evictrail-collector/Lost facts by cause/B":                                "nothing was lost",
}

const ofOthers = "the metrics are others' and are not in a recording's file"

// TestPanelsOnPrometheus runs every expression of every panel on a real Prometheus that has the metrics of a recording, and
// what the rules made of them.
func TestPanelsOnPrometheus(t *testing.T) { //nolint:tparallel // the group ends when those in it, which are parallel, have
	t.Parallel()
	all, err := dashboards.Queries()
	require.NoError(t, err)
	all = slices.DeleteFunc(all, func(q dashboards.Query) bool { return q.Language != dashboards.PromQL })
	require.NotEmpty(t, all)
	var mu sync.Mutex
	filled := map[string][]string{}
	t.Run("recordings", func(t *testing.T) {
		for name, vars := range chosen {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				i := playRecording(t, name, "--evacuation-objective=any=2m")
				evaluateAlerts(t, i, generatedRules)
				s := startPrometheus(t, i.blocks, "global: {}\n")
				for _, q := range all {
					expr, err := dashboardstest.PromQL(q.Text, time.Minute, i.to.Sub(i.from), vars)
					require.NoError(t, err, q.Name())
					r, err := s.queryRange(t, expr, i)
					require.NoError(t, err, "%s: %s", q.Name(), expr)
					if len(r.Result) > 0 {
						mu.Lock()
						filled[q.Name()] = append(filled[q.Name()], name)
						mu.Unlock()
					}
				}
			})
		}
	})
	for _, q := range all {
		switch why := emptyPanels[q.Name()]; {
		case why != "":
			require.Empty(t, filled[q.Name()], "%s has series now, although %s", q.Name(), why)
		case dataOf[q.Name()] != nil:
			require.ElementsMatch(t, dataOf[q.Name()], filled[q.Name()], q.Name())
		default:
			require.Len(t, filled[q.Name()], len(chosen), "%s: only on %s", q.Name(), filled[q.Name()])
		}
	}
}
