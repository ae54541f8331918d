package trail

import (
	"slices"
	"strings"
)

// RequesterClass says what sort of program asked.
type RequesterClass string

// The classes of requesters (reference: descheduler-signals §3, §5).
const (
	RequesterDescheduler       RequesterClass = "descheduler"
	RequesterKubectl           RequesterClass = "kubectl"
	RequesterClusterAutoscaler RequesterClass = "cluster_autoscaler"
	RequesterKarpenter         RequesterClass = "karpenter"
	RequesterMachineConfig     RequesterClass = "machine_config"
	RequesterClusterAPI        RequesterClass = "cluster_api"
	RequesterNodeMaintenance   RequesterClass = "node_maintenance"
	RequesterKured             RequesterClass = "kured"
	RequesterKubeVirt          RequesterClass = "kubevirt"
	RequesterOther             RequesterClass = "other"
	RequesterUnknown           RequesterClass = "unknown"
)

// Requesters lists the classes of requesters.
func Requesters() []RequesterClass {
	return []RequesterClass{
		RequesterDescheduler, RequesterKubectl, RequesterClusterAutoscaler, RequesterKarpenter, RequesterMachineConfig, RequesterClusterAPI,
		RequesterNodeMaintenance, RequesterKured, RequesterKubeVirt, RequesterOther, RequesterUnknown,
	}
}

// descheduler is what the descheduler writes into the annotation requested-by of its evictions, since v0.34.
//
// Source: descheduler pkg/descheduler/evictions/evictions.go.
const descheduler = "sigs.k8s.io/descheduler"

// accountClasses tells the class of a service account by a part of its name or of its namespace. Names depend on the
// installation; these are the ones that the projects ship. The first that matches counts.
var accountClasses = []struct {
	part  string
	class RequesterClass
}{
	{"descheduler", RequesterDescheduler},
	{"cluster-autoscaler", RequesterClusterAutoscaler},
	{"karpenter", RequesterKarpenter},
	{"machine-config", RequesterMachineConfig},
	{"node-maintenance", RequesterNodeMaintenance},
	{"kured", RequesterKured},
	{":capi-", RequesterClusterAPI},
}

// kubeVirtAccounts are the service accounts of KubeVirt's components, in whatever namespace it was installed.
//
// Source: kubevirt pkg/virt-operator/resource/generate/components/serviceaccountnames.go.
var kubeVirtAccounts = []string{
	":kubevirt-controller", ":kubevirt-apiserver", ":kubevirt-handler", ":kubevirt-operator",
}

// agentClasses tells the class of a user agent by how it begins or ends. Clients choose their user agent: it counts
// after the name of a service account, which they cannot choose.
var agentClasses = []struct {
	prefix, suffix string
	class          RequesterClass
}{
	{"descheduler/", "", RequesterDescheduler},
	{"", "/descheduler", RequesterDescheduler},
	{"cluster-autoscaler/", "", RequesterClusterAutoscaler},
	{"karpenter/", "", RequesterKarpenter},
	{"", "/node-update-controller", RequesterMachineConfig},
	{"machine-config", "", RequesterMachineConfig},
	{"node-maintenance", "", RequesterNodeMaintenance},
	{"kured/", "", RequesterKured},
	{"virt-controller/", "", RequesterKubeVirt},
	{"virt-api/", "", RequesterKubeVirt},
	{"kubectl", "", RequesterKubectl},
	{"oc/", "", RequesterKubectl},
}

const serviceAccount = "system:serviceaccount:"

// KnownAccounts lists the parts of names of service accounts that tell what sort of program asks. A part that begins with a colon is the
// beginning of a name, or all of it.
func KnownAccounts() []string {
	parts := slices.Clone(kubeVirtAccounts)
	for _, c := range accountClasses {
		parts = append(parts, c.part)
	}
	return parts
}

// requesterClass tells what sort of program asked: by the annotation of the Eviction, then by the name of its service
// account, then by its user agent.
func (d *RequestDetail) requesterClass() RequesterClass {
	if strings.EqualFold(d.RequestedBy, descheduler) {
		return RequesterDescheduler
	}
	if account, ok := strings.CutPrefix(d.User, serviceAccount); ok {
		for _, suffix := range kubeVirtAccounts {
			if strings.HasSuffix(account, suffix) {
				return RequesterKubeVirt
			}
		}
		for _, c := range accountClasses {
			if strings.Contains(account, c.part) {
				return c.class
			}
		}
	}
	if strings.Contains(d.Agent, "cluster.x-k8s.io") {
		return RequesterClusterAPI
	}
	for _, c := range agentClasses {
		if strings.HasPrefix(d.Agent, c.prefix) && strings.HasSuffix(d.Agent, c.suffix) {
			return c.class
		}
	}
	if d.User == "" {
		return RequesterUnknown
	}
	return RequesterOther
}

// actor names who asked as people say it.
func (d *RequestDetail) actor() string { return actor(d.User, d.requesterClass()) }

// actor gives the user, and the class where it says more. The descheduler goes by that name as long as it has a service
// account: a person who writes its annotation is named.
func actor(user string, class RequesterClass) string {
	switch {
	case class == RequesterDescheduler && (user == "" || strings.HasPrefix(user, serviceAccount)):
		return "the descheduler"
	case user == "":
		return "an unknown requester"
	case class == RequesterOther || class == RequesterUnknown:
		return user
	}
	return user + " (" + string(class) + ")"
}
