package nodesim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// change is what changes in a VMI, null for what goes, and the Event that goes with it.
type change struct {
	Metadata map[string]any `json:"metadata,omitempty"`
	Status   map[string]any `json:"status,omitempty"`
	event    *vmiEvent
}

// handleStage returns what a virt-handler changes at the end of a stage.
//
// Source: the recordings, which have it field by field; pkg/virt-handler of KubeVirt writes the same fields in the same order.
func handleStage(s stage, v *vmi, script Script, m Migration, now time.Time) change {
	switch s {
	case stageBoot:
		return bootGuest(v, script.NotMigratable, now)
	case stageShutdown:
		return change{Status: endedAs(v, phaseSucceeded, now)}
	default:
		return advanceMigration(s, v, m, now)
	}
}

// bootGuest is the start of a guest with an agent. The reason says why it cannot migrate, if so.
func bootGuest(v *vmi, reason string, now time.Time) change {
	migratable, storage := newCondition("LiveMigratable", "True"), newCondition("StorageLiveMigratable", "True")
	if reason != "" {
		migratable, storage = newCondition("LiveMigratable", "False"), newCondition("StorageLiveMigratable", "False")
		migratable["reason"], migratable["message"] = reason, "cannot migrate VMI: "+reason
		storage["reason"], storage["message"] = "NotMigratable", "cannot migrate VMI: "+reason
	}
	agent := newCondition("AgentConnected", "True")
	agent["lastProbeTime"] = toAPITime(now)
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
	status["conditions"] = v.withConditions(migratable, storage, agent)
	return change{Status: status}
}

// endedAs is a new phase of a VMI.
func endedAs(v *vmi, phase string, now time.Time) map[string]any {
	return map[string]any{"phase": phase, "phaseTransitionTimestamps": v.withPhase(phase, now)}
}

// toAPITime is a time as the API has it: UTC, of a second.
func toAPITime(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }

// changeVMI makes the change as the virt-handlers do: they update the whole object. Somebody else's newer change is a conflict.
func (s *Simulator) changeVMI(ctx context.Context, v *vmi, c change) error {
	raw, err := json.Marshal(c) // the fields of a decoded object are maps, lists, texts and numbers alone
	if err != nil {
		return err
	}
	var patch map[string]any
	if err := json.Unmarshal(raw, &patch); err != nil {
		return err
	}
	o := v.object.DeepCopy()
	mergePatch(o.Object, patch)
	if _, err := s.handler.Resource(vmiResource).Namespace(v.Namespace).Update(ctx, o, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update vmi %s/%s: %w", v.Namespace, v.Name, err)
	}
	return nil
}

// mergePatch merges a patch into an object: RFC 7386, but that null in a list stays. virt-controller tests conditions with their nulls.
func mergePatch(object, patch map[string]any) {
	for key, value := range patch {
		fields, is := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case is:
			inner, ok := object[key].(map[string]any)
			if !ok {
				inner = map[string]any{}
			}
			mergePatch(inner, fields)
			object[key] = inner
		default:
			object[key] = value
		}
	}
}
