package trail

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Account says of what class the requests of an account are: of a service account, or of a user.
type Account struct {
	Pattern string         `json:"pattern"` // NAMESPACE:NAME of a service account, or user:NAME; each * stands for any characters within its part
	Class   RequesterClass `json:"class"`
}

// Accounts are those that an installation states, the first that matches counts; they go before the known ones. Those that are in use are not changed.
type Accounts []Account

// knownAccounts are the service accounts under which the projects are installed by what they ship. Each names its namespace: an account of any name
// can be made by anyone who may edit one namespace. No namespace begins with a *, as some users make namespaces, too. The first that matches counts.
var knownAccounts = Accounts{
	// descheduler kubernetes/base/rbac.yaml, and the chart charts/descheduler, whose account is named after the release; OpenShift:
	// cluster-kube-descheduler-operator bindata/assets/kube-descheduler, with the operator and the soft tainter.
	{"kube-system:*descheduler*", RequesterDescheduler}, {"descheduler:*descheduler*", RequesterDescheduler},
	{"openshift-kube-descheduler-operator:*", RequesterDescheduler},
	// autoscaler cluster-autoscaler/cloudprovider/*/examples, and the chart charts/cluster-autoscaler; OpenShift: cluster-autoscaler-operator.
	{"kube-system:*cluster-autoscaler*", RequesterClusterAutoscaler}, {"cluster-autoscaler:*cluster-autoscaler*", RequesterClusterAutoscaler},
	{"openshift-machine-api:cluster-autoscaler*", RequesterClusterAutoscaler},
	// karpenter-provider-aws charts/karpenter; karpenter.sh "Getting started" has installed it in either namespace.
	{"kube-system:karpenter", RequesterKarpenter}, {"karpenter:karpenter", RequesterKarpenter},
	// machine-config-operator manifests/machineconfigcontroller and manifests/machineconfigdaemon.
	{"openshift-machine-config-operator:machine-config-*", RequesterMachineConfig},
	// cluster-api config/default/kustomization.yaml and cluster-api-provider-kubevirt config/default/kustomization.yaml: prefix and namespace of config/manager.
	{"capi-system:capi-manager", RequesterClusterAPI}, {"capk-system:capk-manager", RequesterClusterAPI},
	{"openshift-cluster-api:*", RequesterClusterAPI},
	// node-maintenance-operator config/default/kustomization.yaml; OLM installs it where operators are, and before it was of medik8s it came with KubeVirt's.
	{"node-maintenance-operator-system:node-maintenance-*", RequesterNodeMaintenance},
	{"openshift-workload-availability:node-maintenance-*", RequesterNodeMaintenance},
	{"openshift-operators:node-maintenance-*", RequesterNodeMaintenance}, {"operators:node-maintenance-*", RequesterNodeMaintenance},
	{"node-maintenance-operator:node-maintenance-*", RequesterNodeMaintenance}, {"node-maintenance:node-maintenance-*", RequesterNodeMaintenance},
	// kured kured-rbac.yaml and the chart kubereboot/charts charts/kured.
	{"kube-system:kured*", RequesterKured}, {"kured:kured*", RequesterKured},
	// kubevirt pkg/virt-operator/resource/generate/components/serviceaccountnames.go: the workload updater is one of virt-controller's. The namespaces
	// are those of KubeVirt's own manifests, of OpenShift Virtualization, of hyperconverged-cluster-operator and of Harvester.
	{"kubevirt:kubevirt-*", RequesterKubeVirt}, {"openshift-cnv:kubevirt-*", RequesterKubeVirt},
	{"kubevirt-hyperconverged:kubevirt-*", RequesterKubeVirt}, {"harvester-system:kubevirt-*", RequesterKubeVirt},
	// forklift operator/roles/forkliftcontroller (controller_service_name), in the namespaces of the Migration Toolkit for Virtualization and of its upstream.
	{"openshift-mtv:forklift-*", RequesterForklift}, {"konveyor-forklift:forklift-*", RequesterForklift},
	// harvester deploy/charts/harvester/templates/serviceaccount.yaml; pkg/webhook knows its name and namespace, too.
	{"harvester-system:harvester*", RequesterHarvester},
	// console-operator manifests; who uses the console asks under a name of their own, with a browser.
	{"openshift-console:console", RequesterConsole},
	// argo-cd manifests/namespace-install; OpenShift GitOps: gitops-operator, the instance openshift-gitops.
	{"argocd:argocd-*", RequesterArgoCD}, {"openshift-gitops:openshift-gitops-argocd-*", RequesterArgoCD},
	// flux2 manifests/bases: kustomize-controller, helm-controller and the others.
	{"flux-system:*-controller", RequesterFlux},
}

const serviceAccount = "system:serviceaccount:"

// userPattern begins the pattern of a user that is no service account.
const userPattern = "user:"

// classOf returns the class of an account; false where nothing matches.
func (a Accounts) classOf(user string) (RequesterClass, bool) {
	for _, rule := range a {
		if rule.matchesUser(user) {
			return rule.Class, true
		}
	}
	return "", false
}

func (a Account) matchesUser(user string) bool {
	if name, isUser := strings.CutPrefix(a.Pattern, userPattern); isUser {
		return !strings.HasPrefix(user, serviceAccount) && matchesPattern(name, user)
	}
	account, is := strings.CutPrefix(user, serviceAccount)
	namespace, name, _ := strings.Cut(account, ":")
	ofNamespace, ofName, _ := strings.Cut(a.Pattern, ":")
	return is && matchesPattern(ofNamespace, namespace) && matchesPattern(ofName, name)
}

// matchesPattern reports whether a text is what a pattern describes; each * in it stands for any characters, or none.
func matchesPattern(pattern, text string) bool {
	if !strings.Contains(pattern, "*") {
		return text == pattern
	}
	parts := strings.Split(pattern, "*")
	text, begins := strings.CutPrefix(text, parts[0])
	if !begins {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return strings.HasSuffix(text, last)
}

// KnownAccount reports whether a user is a service account under which a known project is installed by what it ships.
func KnownAccount(user string) bool {
	_, known := knownAccounts.classOf(user)
	return known
}

// IsKubeVirt reports whether a user is a service account of KubeVirt's, in a namespace in which it is installed by what is shipped.
func IsKubeVirt(user string) bool {
	class, _ := knownAccounts.classOf(user)
	return class == RequesterKubeVirt
}

// ParseAccounts reads accounts as they are stated: PATTERN = CLASS on each line, as in
//
//	# the descheduler of the team that runs the platform
//	infra:descheduler-* = descheduler
//	clusters-*:capi-provider = cluster_api
//	user:oidc:jenkins = argo_cd
//
// Empty lines and those that begin with a # say nothing. The error names each line that cannot be read, and what was expected.
func ParseAccounts(text string) (Accounts, error) {
	var accounts Accounts
	var wrong []error
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rule, err := parseAccount(line)
		if err == nil && slices.ContainsFunc(accounts, func(a Account) bool { return a.Pattern == rule.Pattern }) {
			err = fmt.Errorf("%s has a class already", rule.Pattern)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", i+1, err))
			continue
		}
		accounts = append(accounts, rule)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return accounts, nil
}

func parseAccount(line string) (Account, error) {
	at := strings.LastIndexByte(line, '=') // names of users may have one
	if at < 0 {
		return Account{}, fmt.Errorf("%q: expected PATTERN = CLASS", ClipText(line, 80))
	}
	pattern, class := strings.TrimSpace(line[:at]), RequesterClass(strings.TrimSpace(line[at+1:]))
	pattern = strings.TrimPrefix(pattern, serviceAccount)
	if !slices.Contains(statedClasses(), class) {
		return Account{}, fmt.Errorf("class %q: expected one of %s", ClipText(string(class), 80), classNames(statedClasses()))
	}
	if name, isUser := strings.CutPrefix(pattern, userPattern); isUser {
		if strings.Trim(name, "*") == "" {
			return Account{}, fmt.Errorf("pattern %q: expected the name of a user after %s", pattern, userPattern)
		}
		return Account{pattern, class}, nil
	}
	namespace, name, pair := strings.Cut(pattern, ":")
	switch {
	case !pair || name == "" || strings.Contains(name, ":") || strings.ContainsAny(pattern, " \t"):
		return Account{}, fmt.Errorf("pattern %q: expected NAMESPACE:NAME of a service account, or %sNAME", ClipText(pattern, 80), userPattern)
	case strings.Trim(namespace, "*") == "":
		return Account{}, fmt.Errorf("pattern %q: expected a namespace before the colon: "+
			"anybody can make an account of that name in a namespace of theirs", ClipText(pattern, 80))
	}
	return Account{pattern, class}, nil
}

// statedClasses are the classes that may be stated of an account: all but the one of requests that were not seen.
func statedClasses() []RequesterClass {
	return slices.DeleteFunc(Requesters(), func(c RequesterClass) bool { return c == RequesterUnknown })
}
