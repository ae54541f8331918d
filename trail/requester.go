package trail

import (
	"cmp"
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
	RequesterClusterAPI        RequesterClass = "cluster_api" // with its provider for KubeVirt
	RequesterNodeMaintenance   RequesterClass = "node_maintenance"
	RequesterKured             RequesterClass = "kured"
	RequesterKubeVirt          RequesterClass = "kubevirt"
	RequesterForklift          RequesterClass = "forklift"
	RequesterHarvester         RequesterClass = "harvester"
	RequesterConsole           RequesterClass = "console" // a web console, or a person with a browser
	RequesterArgoCD            RequesterClass = "argo_cd"
	RequesterFlux              RequesterClass = "flux"
	RequesterEvictionRequest   RequesterClass = "eviction_request" // who made an EvictionRequest of lifecycle.k8s.io
	RequesterServiceAccount    RequesterClass = "service_account"  // one that is not known: a controller, or a program of anybody's
	RequesterOther             RequesterClass = "other"            // a user
	RequesterUnknown           RequesterClass = "unknown"
)

// Requesters lists the classes of requesters.
func Requesters() []RequesterClass { return requesterLabels.values() }

// isController reports whether requests of the class are made by programs of their own accord, with nobody at a keyboard.
func (c RequesterClass) isController() bool {
	switch c {
	case RequesterDescheduler, RequesterClusterAutoscaler, RequesterKarpenter, RequesterMachineConfig, RequesterClusterAPI, RequesterNodeMaintenance,
		RequesterKured, RequesterKubeVirt, RequesterForklift, RequesterHarvester, RequesterArgoCD, RequesterFlux,
		RequesterEvictionRequest, RequesterServiceAccount:
		return true
	case RequesterKubectl, RequesterConsole, RequesterOther, RequesterUnknown, AnyRequester:
	}
	return false
}

// descheduler is what the descheduler writes into the annotation requested-by of its evictions, since v0.34.
//
// Source: descheduler pkg/descheduler/evictions/evictions.go.
const descheduler = "sigs.k8s.io/descheduler"

// kubeVirtNames are the names of the service accounts of KubeVirt's components, in the namespace of its CR.
//
// Source: kubevirt pkg/virt-operator/resource/generate/components/serviceaccountnames.go.
var kubeVirtNames = []string{"kubevirt-controller", "kubevirt-apiserver", "kubevirt-handler", "kubevirt-operator"}

// agentClasses are the classes of user agents, by how they begin or end.
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
	{"Mozilla/", "", RequesterConsole}, // a console hands on the user agent of the browser
}

func agentClass(agent string) RequesterClass {
	if strings.Contains(agent, "cluster.x-k8s.io") {
		return RequesterClusterAPI
	}
	for _, c := range agentClasses {
		if strings.HasPrefix(agent, c.prefix) && strings.HasSuffix(agent, c.suffix) {
			return c.class
		}
	}
	return RequesterOther
}

// classOf returns what sort of program sent a request: by the account that the API server knows, which nobody can choose. Of an impersonation that
// is the account behind it. What clients write themselves, their user agent and the annotation requested-by, distinguishes users who have no account
// of a program's. It makes nobody who is named the descheduler, or KubeVirt: who evicts one VM of theirs can write it, too.
func (e *Env) classOf(d *RequestDetail) RequesterClass {
	sender := cmp.Or(d.Impersonator, d.User)
	if class, known := e.accountClass(sender); known {
		return class
	}
	agent := agentClass(d.Agent)
	switch {
	case sender == "" && strings.EqualFold(d.RequestedBy, descheduler):
		return RequesterDescheduler
	case sender == "" && agent == RequesterOther:
		return RequesterUnknown
	case sender == "" || agent == RequesterKubectl:
		return agent
	case strings.HasPrefix(d.User, serviceAccount):
		return RequesterServiceAccount
	case agent == RequesterDescheduler || agent == RequesterKubeVirt:
		return RequesterOther
	}
	return agent // of a user, who may be behind the account of a proxy
}

// accountClass returns the class of a user whose account is known: stated, or KubeVirt's, or of a project as it is shipped.
func (e *Env) accountClass(user string) (RequesterClass, bool) {
	if class, stated := e.thresholds.Accounts.classOf(user); stated {
		return class, true
	}
	if e.ofKubeVirt(user) {
		return RequesterKubeVirt, true
	}
	return knownAccounts.classOf(user)
}

// ofKubeVirt reports whether a user is an account of KubeVirt's in the namespace of its CR.
func (e *Env) ofKubeVirt(user string) bool {
	for _, seen := range e.kubevirt {
		for _, name := range kubeVirtNames {
			if seen.namespace != "" && user == serviceAccount+seen.namespace+":"+name {
				return true
			}
		}
	}
	return false
}

// saysItIs names, as evidence, whom the sender of a request says to be where its account is not known as that; else empty.
func (d *RequestDetail) saysItIs(class RequesterClass) string {
	if class == RequesterDescheduler || !strings.EqualFold(d.RequestedBy, descheduler) {
		return ""
	}
	return "; says that it is the descheduler, whose account it does not have"
}

// formatRequester names who sent a request as people say it.
func (e *Env) formatRequester(d *RequestDetail) string {
	return formatRequester(d.User, d.Impersonator, e.classOf(d))
}

// formatRequester returns the user, with the class where it says more and who acted as that user. The descheduler goes by that name as long as it has a service
// account: a person who writes its annotation is named.
func formatRequester(user, impersonator string, class RequesterClass) string {
	switch {
	case class == RequesterDescheduler && impersonator == "" && (user == "" || strings.HasPrefix(user, serviceAccount)):
		return "the descheduler"
	case user == "":
		return "an unknown requester"
	}
	var more []string
	if class != RequesterOther && class != RequesterUnknown {
		more = append(more, class.Label().Short)
	}
	if impersonator != "" {
		more = append(more, "impersonated by "+impersonator)
	}
	if len(more) == 0 {
		return user
	}
	return user + " (" + strings.Join(more, "; ") + ")"
}

// ShortRequester returns the user as a column of a table has it: of a service account whose class is known its name alone, of another one namespace/name, since
// anybody may name an account of theirs descheduler.
func ShortRequester(user string, class RequesterClass) string {
	account, is := strings.CutPrefix(user, serviceAccount)
	namespace, name, two := strings.Cut(account, ":")
	switch {
	case !is || !two:
		return user
	case class == "" || class == RequesterServiceAccount || class == RequesterOther || class == RequesterUnknown:
		return namespace + "/" + name
	}
	return name
}
