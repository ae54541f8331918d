package trail

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Labels of nodes that say where a node is and of what kind.
//
// Source: kubernetes staging/src/k8s.io/api/core/v1/well_known_labels.go; documentation of Karpenter, GKE, EKS and AKS.
const (
	labelZone       = "topology.kubernetes.io/zone"
	labelRegion     = "topology.kubernetes.io/region"
	labelType       = "node.kubernetes.io/instance-type"
	labelRolePrefix = "node-role.kubernetes.io/"
)

// poolLabels name the pool of a node, in the order in which they count.
var poolLabels = []string{
	"karpenter.sh/nodepool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool",
}

// commonRoles say nothing of a pool where a node has another role, too: OpenShift's custom pools of machines are workers as well.
var commonRoles = []string{"worker", "control-plane", "master"}

// LabelsDetail is what the labels of a node say of its place and kind.
type LabelsDetail struct {
	Zone         string            `json:"zone,omitempty"`
	Region       string            `json:"region,omitempty"`
	InstanceType string            `json:"instance_type,omitempty"`
	Pool         string            `json:"pool,omitempty"` // by the label of a pool, else by its role
	Labels       map[string]string `json:"labels,omitempty"`
}

func (*LabelsDetail) isDetail() {}

// IsRecordedLabel reports whether the label of a node is recorded: KubeVirt alone sets hundreds of others, about features of its CPU.
func IsRecordedLabel(key string) bool {
	return strings.HasPrefix(key, labelRolePrefix) || key == labelZone || key == labelRegion || key == labelType || slices.Contains(poolLabels, key)
}

// ReadNodeLabels reads the labels of a node, of which it gets those that are recorded.
func ReadNodeLabels(labels map[string]string) *LabelsDetail {
	d := &LabelsDetail{Zone: labels[labelZone], Region: labels[labelRegion], InstanceType: labels[labelType], Labels: labels}
	var roles []string
	for key := range labels {
		if role, is := strings.CutPrefix(key, labelRolePrefix); is {
			roles = append(roles, role)
		}
	}
	for _, key := range poolLabels {
		d.Pool = cmp.Or(d.Pool, labels[key])
	}
	d.Pool = cmp.Or(d.Pool, poolOfRoles(roles))
	return d
}

// poolOfRoles names a pool by the roles of its nodes: those that are not common, else the common ones.
func poolOfRoles(roles []string) string {
	slices.Sort(roles)
	own := slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return slices.Contains(commonRoles, role) })
	if len(own) == 0 {
		own = roles
	}
	return strings.Join(own, ",")
}

// String writes the labels in the order of their keys.
func (d *LabelsDetail) String() string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		out = append(out, key+"="+d.Labels[key])
	}
	return strings.Join(out, ",")
}

// labelsSentence says where a node is.
func labelsSentence(f Fact) string {
	d, ok := f.Detail.(*LabelsDetail)
	if !ok {
		return ""
	}
	var said []string
	for _, part := range []struct{ what, value string }{{"zone", d.Zone}, {"pool", d.Pool}, {"type", d.InstanceType}} {
		if part.value != "" {
			said = append(said, part.what+" "+part.value)
		}
	}
	if len(said) == 0 {
		return fmt.Sprintf("The labels of node %s name no zone, pool or type any more.", f.Node)
	}
	return fmt.Sprintf("Node %s is of %s, by its labels.", f.Node, strings.Join(said, ", "))
}

// findLabels returns what the labels of a node said at a time; nothing where none were seen. Before they were first seen
// they count as they were found.
func (e *Env) findLabels(node string, at time.Time) LabelsDetail {
	var found *LabelsDetail
	for _, f := range e.nodes[node] {
		d, ok := f.Detail.(*LabelsDetail)
		if ok && (found == nil || !f.OccurredAt.After(at.Add(envSlack))) {
			found = d
		}
	}
	if found == nil {
		return LabelsDetail{}
	}
	return *found
}

// LastNodes returns the nodes of the last two stays of a VM, of which an answer says where they are.
func (d Derived) LastNodes() []string {
	var out []string
	for i := max(len(d.Placements)-2, 0); i < len(d.Placements); i++ {
		out = append(out, d.Placements[i].Node)
	}
	return out
}

// describeNewPlace says to which zone and pool the last move took the guest, where it was made since a time and these are
// others than before; else nothing.
func (c *Cluster) describeNewPlace(stays []Placement, since time.Time) string {
	n := len(stays) - 1
	if n < 1 || stays[n].ArrivedBy == ArrivedStart || stays[n].VMIUID != stays[n-1].VMIUID || stays[n].FromAt.Before(since) {
		return ""
	}
	before, after := c.env.findLabels(stays[n-1].Node, stays[n].FromAt), c.env.findLabels(stays[n].Node, stays[n].FromAt)
	var said []string
	for _, part := range []struct{ what, before, after string }{
		{"zone", before.Zone, after.Zone}, {"pool", before.Pool, after.Pool},
	} {
		if part.before != part.after && part.before != "" && part.after != "" {
			said = append(said, fmt.Sprintf("another %s (%s, before: %s)", part.what, part.after, part.before))
		}
	}
	if len(said) == 0 {
		return ""
	}
	return fmt.Sprintf("That is in %s.", strings.Join(said, " and "))
}
