package trail_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

func TestObjectivesAreStatedByClass(t *testing.T) {
	t.Parallel()
	shop := trail.Objectives{"any": time.Hour, "any@shop": time.Minute, "kured@shop-2": time.Second, "kured@pool/gpu,infra": time.Minute}
	for _, o := range []trail.Objectives{trail.DefaultObjectives(), {}, shop, {string(trail.AnyRequester): time.Hour, string(trail.RequesterKubectl): 90 * time.Second}} {
		var stated []string
		for class, d := range o {
			stated = append(stated, " "+class+" = "+d.String())
		}
		if len(o) == 0 {
			stated = []string{trail.NoObjectives}
		}
		read, err := trail.ParseObjectives(stated)
		require.NoError(t, err)
		require.Equal(t, o, read)
	}
	require.Equal(t, "kubectl=1m30s, any=1h", trail.Objectives{string(trail.AnyRequester): time.Hour, string(trail.RequesterKubectl): 90 * time.Second}.String())
	require.Equal(t, "kured@pool/gpu,infra=1m, kured@shop-2=1s, any=1h, any@shop=1m", shop.String())
	require.Equal(t, "none", trail.Objectives{}.String())
	for _, c := range []struct {
		stated []string
		says   string
	}{
		{[]string{"maintenance=15m"}, "maintenance=15m: expected CLASS=DURATION with one of descheduler, kubectl, cluster_autoscaler, karpenter, machine_config, cluster_api, " +
			"node_maintenance, kured, kubevirt, forklift, harvester, console, argo_cd, flux, eviction_request, service_account, other, unknown, any, or none"},
		{[]string{"15m"}, "15m: expected CLASS=DURATION"},
		{[]string{"kured"}, "kured: expected a positive duration, such as kured=15m"},
		{[]string{"kured=15"}, "expected a positive duration"},
		{[]string{"kured=0s"}, "expected a positive duration"},
		{[]string{"kured=-1m"}, "expected a positive duration"},
		{[]string{"any=1h", "any=2h"}, "any=2h: any has one already, 1h"},
		{[]string{"any=1h", "none"}, "none: stands alone"},
		{[]string{"any@=1h"}, "any@=1h: expected a namespace or a pool after @, such as any@shop=15m or any@pool/gpu=15m"},
		{[]string{"any@Shop=1h"}, "expected a namespace or a pool after @"},
		{[]string{"any@pool/=1h"}, "expected a namespace or a pool after @"},
		{[]string{"shop@any=1h"}, "expected CLASS=DURATION"},
		{nil, ""},
	} {
		_, err := trail.ParseObjectives(c.stated)
		if c.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.says)
		}
	}
}

// TestObjective follows one evacuation at a time: it is marked at minute 1, and has until minute 11.
func TestObjective(t *testing.T) {
	t.Parallel()
	const due = 11 * time.Minute
	ten := trail.Objectives{string(trail.RequesterDescheduler): 10 * time.Minute}
	moved := func(end time.Duration) func(*history) {
		return func(h *history) {
			h.createMigration(2*time.Minute, "m1", "db", nil)
			h.runMigration(3*time.Minute, end, "m1", "n2")
		}
	}
	tests := []struct {
		name       string
		objectives trail.Objectives
		then       func(*history)
		at         time.Duration
		met        *bool
		next       time.Duration // when the VM is derived again; zero: not because of the objective
		says       string        // in the answer to why
	}{
		{"open in time", ten, nil, due - 1, nil, due, ""},
		{"open, and over", ten, nil, due, new(false), 0, "It was to leave within 10m, by 2026-11-21 00:11:00Z."},
		{"moved in time", ten, moved(due - time.Second), due, new(true), 0, ""},
		{"moved at the last moment", ten, moved(due), due, new(true), 0, ""},
		{"moved a second late", ten, moved(due + time.Second), due + time.Minute, new(false), 0, "It was to leave within 10m; it took 10m1s."},
		{"called off in time", ten, func(h *history) { h.unmarkVM(5*time.Minute, "db") }, due, nil, 0, ""},
		{"called off too late", ten, func(h *history) { h.unmarkVM(20*time.Minute, "db") }, 21 * time.Minute, new(false), 0, "It was to leave within 10m, by 2026-11-21 00:11:00Z."},
		{"ended in time", ten, func(h *history) { h.restartVM(5*time.Minute, "db", "db-2") }, due, nil, 0, ""},
		{"ended too late", ten, func(h *history) { h.restartVM(20*time.Minute, "db", "db-2") }, 21 * time.Minute, new(false), 0, "It was to leave within 10m, by"},
		{"none for who asked", trail.Objectives{string(trail.RequesterKubectl): time.Minute}, nil, due, nil, 0, ""},
		{"one for all", trail.Objectives{string(trail.AnyRequester): 10 * time.Minute}, nil, due, new(false), 0, "It was to leave within 10m"},
		{"its own before that for all", trail.Objectives{string(trail.AnyRequester): time.Minute, string(trail.RequesterDescheduler): 10 * time.Minute}, nil, due - 1, nil, due, ""},
		{"one for its namespace", trail.Objectives{"any@shop": 10 * time.Minute, "descheduler": time.Hour, "descheduler@shop-2": time.Minute}, nil, due, new(false), 0, "It was to leave within 10m"},
		{"its own in its namespace", trail.Objectives{"any@shop": time.Minute, "descheduler@shop": 10 * time.Minute}, nil, due, new(false), 0, "It was to leave within 10m"},
		{"one for its pool", trail.Objectives{"any@pool/gpu": 10 * time.Minute, "descheduler": time.Hour, "any@pool/new": time.Minute}, nil, due, new(false), 0, "It was to leave within 10m"},
		{"its namespace before its pool", trail.Objectives{"descheduler@pool/gpu": time.Minute, "any@shop": 10 * time.Minute}, nil, due, new(false), 0, "It was to leave within 10m"},
		{"none at all", trail.Objectives{}, moved(30 * time.Minute), time.Hour, nil, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			h.changeVM(0, "db", nil)
			for i, pool := range []string{"gpu", "new"} { // that of the mark counts
				h.changeNode(time.Duration(2*i)*time.Minute, "n1", func(n *tracker.NodeObservation) {
					n.Labels = map[string]string{"node-role.kubernetes.io/" + pool: ""}
				})
			}
			h.markVM(time.Minute, "db", "descheduler")
			if tt.then != nil {
				tt.then(h)
			}
			thresholds := trail.DefaultThresholds()
			thresholds.Objectives = tt.objectives
			c := trail.DeriveAll(h.facts, thresholds, day.Add(tt.at))
			require.Len(t, c.VM("shop", "db").Evacuations, 1)
			e := c.VM("shop", "db").Evacuations[0]
			require.Equal(t, tt.objectives.Of(trail.RequesterDescheduler, "shop", "gpu"), time.Duration(e.Objective))
			require.Equal(t, tt.met, e.ObjectiveMet)
			switch {
			case e.ObjectiveMet == nil:
				require.Zero(t, e.JudgedAt())
			case *e.ObjectiveMet:
				require.Equal(t, e.EndedAt, e.JudgedAt())
			default:
				require.Equal(t, day.Add(due), e.JudgedAt())
			}
			if tt.next != 0 {
				require.Equal(t, day.Add(tt.next), c.VM("shop", "db").NextAt)
			}
			if said := c.Why("shop", "db").Paragraph; tt.says != "" {
				require.Contains(t, said, tt.says)
			} else {
				require.NotContains(t, said, "It was to leave")
			}
		})
	}
}

// TestDrainReportsWhoIsLate has a drain that an evacuation keeps from its end for longer than it may take.
func TestDrainReportsWhoIsLate(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.changeVM(0, "db", nil)
	h.changeNode(0, "n1", nil)
	h.changeNode(time.Minute, "n1", func(n *tracker.NodeObservation) { n.Unschedulable = true })
	h.markVM(time.Minute+time.Second, "db", "")
	thresholds := trail.DefaultThresholds()
	thresholds.Objectives = trail.Objectives{string(trail.AnyRequester): 15 * time.Minute}
	reason := func(at time.Duration) string {
		left := trail.DeriveAll(h.facts, thresholds, day.Add(at)).Node("n1").Blockers
		require.Len(t, left, 1)
		return left[0].Reason
	}
	const waits = "it is marked, and KubeVirt has made no migration yet"
	require.Equal(t, waits, reason(16*time.Minute))
	require.Equal(t, waits+"; it was to leave within 15m", reason(16*time.Minute+time.Second))
}
