package nodesim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// change is a merge patch of a VMI, and the Event that goes with it.
type change struct {
	metadata map[string]any
	status   map[string]any
	event    *vmiEvent
}

// handle returns what a virt-handler changes at the end of a stage.
//
// Source: the recordings, which have it field by field; pkg/virt-handler of KubeVirt writes the same fields in the same order.
func handle(s stage, v *vmi, script Script, m Migration, now time.Time) change {
	switch s {
	case stageBoot:
		return boot(v, script.NotMigratable, now)
	case stageShutdown:
		return change{status: endedAs(v, phaseSucceeded, now)}
	default:
		return migrate(s, v, m, now)
	}
}

// boot is the start of a guest with an agent. The reason says why it cannot migrate, if so.
func boot(v *vmi, reason string, now time.Time) change {
	migratable, storage := condition{"type": "LiveMigratable", "status": "True"}, condition{"type": "StorageLiveMigratable", "status": "True"}
	if reason != "" {
		migratable = condition{"type": "LiveMigratable", "status": "False", "reason": reason, "message": "cannot migrate VMI: " + reason}
		storage = condition{"type": "StorageLiveMigratable", "status": "False", "reason": "NotMigratable", "message": "cannot migrate VMI: " + reason}
	}
	interfaces := []map[string]any{}
	for i, n := range v.Spec.Domain.Devices.Interfaces {
		address := fmt.Sprintf("10.0.2.%d", 2+i)
		interfaces = append(interfaces, map[string]any{
			"name": n.Name, "podInterfaceName": fmt.Sprintf("eth%d", i), "interfaceName": fmt.Sprintf("eth%d", i), "infoSource": "domain, guest-agent",
			"ipAddress": address, "ipAddresses": []string{address}, "mac": fmt.Sprintf("02:00:00:00:00:%02x", i), "linkState": "up", "queueCount": 1,
		})
	}
	status := endedAs(v, phaseRunning, now)
	status["interfaces"] = interfaces
	status["machine"] = map[string]any{"type": machineType}
	status["migrationMethod"] = "LiveMigration"
	status["selinuxContext"] = "system_u:object_r:container_file_t:s0:c92,c305"
	status["guestOSInfo"] = map[string]any{"id": "fedora", "name": "Fedora Linux", "prettyName": "Fedora Linux (simulated)"}
	status["conditions"] = v.withConditions(migratable, storage,
		condition{"type": "AgentConnected", "status": "True", "lastProbeTime": stamp(now)})
	return change{status: status}
}

// endedAs is a new phase of a VMI.
func endedAs(v *vmi, phase string, now time.Time) map[string]any {
	return map[string]any{"phase": phase, "phaseTransitionTimestamps": v.withPhase(phase, now)}
}

// stamp is a time as the API has it: UTC, of a second.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }

// patchVMI makes the change as the virt-handlers do. Somebody else's newer change is a conflict.
func (s *Simulator) patchVMI(ctx context.Context, v *vmi, c change) error {
	metadata := map[string]any{"resourceVersion": v.ResourceVersion}
	for k, value := range c.metadata {
		metadata[k] = value
	}
	patch := map[string]any{"metadata": metadata}
	if len(c.status) > 0 {
		patch["status"] = c.status
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if _, err := s.handler.Resource(vmiResource).Namespace(v.Namespace).Patch(ctx, v.Name, types.MergePatchType, raw, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch vmi %s/%s: %w", v.Namespace, v.Name, err)
	}
	return nil
}
