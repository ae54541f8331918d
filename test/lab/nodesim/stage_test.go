package nodesim

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// noon is when everything happens.
var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// parseVMI makes a VMI of JSON.
func parseVMI(t *testing.T, text string) *vmi {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(text), &o.Object))
	v, err := decodeVMI(o)
	require.NoError(t, err)
	return v
}

// applyChange returns the VMI with a change.
func applyChange(t *testing.T, v *vmi, c change) *vmi {
	t.Helper()
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	var patch map[string]any
	require.NoError(t, json.Unmarshal(raw, &patch))
	o := v.object.DeepCopy()
	mergePatch(o.Object, patch)
	next, err := decodeVMI(o)
	require.NoError(t, err)
	return next
}

// handedOver is a running VMI whose migration virt-controller has just handed over.
const handedOver = `{"metadata":{"name":"db-1","namespace":"demo","uid":"u1","annotations":{"kubevirt.io/eviction-source":"descheduler"},
"labels":{"kubevirt.io/nodeName":"worker-1","kubevirt.io/migrationTargetNodeName":"worker-2"}},"status":{"phase":"Running","nodeName":"worker-1",
"evacuationNodeName":"worker-1","conditions":[{"type":"Ready","status":"True","lastProbeTime":null}],"migrationState":{"migrationUid":"m1",
"sourceNode":"worker-1","sourcePod":"source","targetNode":"worker-2","targetPod":"target","migrationConfiguration":{"progressTimeout":150}}}}`

// TestMigrationStages plays migrations until virt-handler has nothing to do any more.
func TestMigrationStages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		script Migration
		want   []stage
		node   string
		phase  string
		reason string
	}{
		{
			name: "success", node: "worker-2", phase: phaseRunning,
			want: []stage{stagePrepare, stageBegin, stageDetect, stageTransfer, stageAcknowledge, stageComplete},
		},
		{
			name: "failure", script: Migration{Outcome: OutcomeFail, Reason: "it broke"}, node: "worker-1", phase: phaseRunning, reason: "it broke",
			want: []stage{stagePrepare, stageBegin, stageDetect, stageTransfer, stageForget},
		},
		{
			name: "stall", script: Migration{Outcome: OutcomeStall}, node: "worker-1", phase: phaseRunning,
			reason: "Live migration stuck for 0 seconds and has been aborted",
			want:   []stage{stagePrepare, stageBegin, stageDetect, stageTransfer, stageForget},
		},
		{
			name: "post-copy loses the guest", script: Migration{Outcome: OutcomeLose}, node: "worker-1", phase: phaseFailed, reason: libvirtError,
			want: []stage{stagePrepare, stageBegin, stageDetect, stageTransfer},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := parseVMI(t, handedOver)
			var played []stage
			for s := nextStage(v); s != stageIdle; s = nextStage(v) {
				played = append(played, s)
				v = applyChange(t, v, handleStage(s, v, Script{}, tt.script, noon))
				require.Less(t, len(played), 20, "it ends")
			}
			require.Equal(t, tt.want, played)
			require.Equal(t, tt.node, v.Status.NodeName)
			require.Equal(t, tt.phase, v.Status.Phase)
			reason, _, err := unstructured.NestedString(v.object.Object, "status", "migrationState", "failureReason")
			require.NoError(t, err)
			require.Equal(t, tt.reason, reason)
			require.Equal(t, tt.node == "worker-1", v.Status.EvacuationNodeName != "", "the mark goes with a success alone")
			require.Equal(t, tt.node == "worker-1", v.Annotations[annotationSource] != "")
		})
	}
}

func TestAbort(t *testing.T) {
	t.Parallel()
	v := parseVMI(t, handedOver)
	for _, s := range []stage{stagePrepare, stageBegin} {
		v = applyChange(t, v, handleStage(s, v, Script{}, Migration{}, noon))
	}
	v = applyChange(t, v, change{Status: map[string]any{"migrationState": map[string]any{"abortRequested": true}}})
	require.Equal(t, stageAbort, nextStage(v))

	aborted := applyChange(t, v, handleStage(stageAbort, v, Script{}, Migration{}, noon))
	require.Equal(t, stageAborted, nextStage(aborted))
	aborted = applyChange(t, aborted, handleStage(stageAborted, aborted, Script{}, Migration{}, noon))
	require.True(t, aborted.Status.Migration.Failed)
	require.Equal(t, abortSucceeded, aborted.Status.Migration.AbortStatus)

	ignored := applyChange(t, v, handleStage(stageAbort, v, Script{}, Migration{IgnoreAbort: true}, noon))
	require.Equal(t, abortFailed, ignored.Status.Migration.AbortStatus)
	require.Equal(t, stageDetect, nextStage(ignored), "the transfer goes on")
}

// TestConditionsKeepNull: virt-controller tests for the conditions that it read, null included, before it changes them.
func TestConditionsKeepNull(t *testing.T) {
	t.Parallel()
	v := parseVMI(t, `{"metadata":{"name":"db-1"},"status":{"phase":"Scheduled","nodeName":"worker-1","conditions":[{"type":"Ready","status":"False","lastProbeTime":null}]}}`)
	v = applyChange(t, v, handleStage(stageBoot, v, Script{NotMigratable: "DisksNotLiveMigratable"}, Migration{}, noon))
	require.Equal(t, phaseRunning, v.Status.Phase)
	conditions, _, err := unstructured.NestedSlice(v.object.Object, "status", "conditions")
	require.NoError(t, err)
	require.Contains(t, conditions, map[string]any{"type": "Ready", "status": "False", "lastProbeTime": nil})
	require.Contains(t, conditions, map[string]any{
		"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "cannot migrate VMI: DisksNotLiveMigratable",
		"lastProbeTime": nil, "lastTransitionTime": nil,
	})
}

func TestScript(t *testing.T) {
	t.Parallel()
	s := Script{Migrations: []Migration{{Outcome: OutcomeFail}, {Outcome: OutcomeStall}, {}}}
	require.Equal(t, OutcomeFail, s.migrationAt(0).Outcome)
	require.Equal(t, OutcomeStall, s.migrationAt(1).Outcome)
	require.Equal(t, OutcomeSucceed, s.migrationAt(2).Outcome)
	require.Equal(t, OutcomeSucceed, s.migrationAt(7).Outcome, "the last goes on")
	require.Equal(t, Migration{}, Script{}.migrationAt(3))
}
