package trail

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRequestersAreClassedByTheirAccount classes who asks by what nobody can choose: the account, and of an impersonation the one behind it.
func TestRequestersAreClassedByTheirAccount(t *testing.T) {
	t.Parallel()
	const account, says = "system:serviceaccount:", "sigs.k8s.io/descheduler"
	for _, c := range []struct {
		name               string
		user, impersonator string
		agent, requestedBy string
		want               RequesterClass
	}{
		{"the descheduler as upstream ships it", account + "kube-system:descheduler-sa", "", "", "", RequesterDescheduler},
		{"by Helm, after the release", account + "kube-system:prod-descheduler", "", "", "", RequesterDescheduler},
		{"of OpenShift", account + "openshift-kube-descheduler-operator:openshift-descheduler-operand", "", "", "", RequesterDescheduler},
		{"an account that is only called so", account + "team-a:descheduler", "", "", "", RequesterServiceAccount},
		{"in a namespace that is only called so", account + "my-descheduler:x", "", "", "", RequesterServiceAccount},
		{"and writes all that the descheduler writes", account + "team-a:descheduler", "", "descheduler/v0.34 (linux/amd64) kubernetes/x/descheduler", says, RequesterServiceAccount},
		{"a person who writes it", "alice", "", "descheduler/v0.34", says, RequesterOther},
		{"nobody is named", "", "", "", says, RequesterDescheduler},
		{"nobody is named, nor says anything", "", "", "", "", RequesterUnknown},
		{"KubeVirt's name in a namespace of somebody's", account + "team-a:kubevirt-controller", "", "virt-controller/v1.8", "", RequesterServiceAccount},
		{"virt-controller's workload updater", account + "kubevirt:kubevirt-controller", "", "virt-controller/v1.8", "", RequesterKubeVirt},
		{"KubeVirt's provider for Cluster API", account + "capk-system:capk-manager", "", "manager/v0.1", "", RequesterClusterAPI},
		{"Cluster API from its own cluster", "kubernetes-admin", "", "manager/v1.9 cluster.x-k8s.io/abc", "", RequesterClusterAPI},
		{"the Migration Toolkit for Virtualization", account + "openshift-mtv:forklift-controller", "", "", "", RequesterForklift},
		{"Harvester", account + "harvester-system:harvester", "", "", "", RequesterHarvester},
		{"Argo CD", account + "argocd:argocd-application-controller", "", "", "", RequesterArgoCD},
		{"OpenShift GitOps", account + "openshift-gitops:openshift-gitops-argocd-application-controller", "", "", "", RequesterArgoCD},
		{"Flux", account + "flux-system:kustomize-controller", "", "", "", RequesterFlux},
		{"Flux as a tenant", account + "team-a:reconciler", account + "flux-system:kustomize-controller", "", "", RequesterFlux},
		{"node maintenance", account + "openshift-workload-availability:node-maintenance-operator-controller-manager", "", "", "", RequesterNodeMaintenance},
		{"kured", account + "kube-system:kured", "", "", "", RequesterKured},
		{"the autoscaler of OpenShift", account + "openshift-machine-api:cluster-autoscaler", "", "", "", RequesterClusterAutoscaler},
		{"Karpenter", account + "karpenter:karpenter", "", "", "", RequesterKarpenter},
		{"a person in a web console", "alice", "", "Mozilla/5.0 (X11; Linux x86_64)", "", RequesterConsole},
		{"an account with a browser's agent", account + "team-a:robot", "", "Mozilla/5.0", "", RequesterServiceAccount},
		{"drain by kubectl", "alice", "", "kubectl/v1.35", "", RequesterKubectl},
		{"kubectl of a pipeline", account + "ci:runner", "", "kubectl/v1.35", "", RequesterKubectl},
		{"an account that nothing describes", account + "team-a:robot", "", "python-requests/2", "", RequesterServiceAccount},
		{"a person", "alice", "", "curl/8", "", RequesterOther},
		{"a person who acts as the descheduler", account + "kube-system:descheduler-sa", "alice", "kubectl/v1.35", "", RequesterKubectl},
		{"and hides the client", account + "kube-system:descheduler-sa", "alice", "descheduler/v0.34", says, RequesterServiceAccount},
		{"a person behind a proxy", "alice", account + "cattle-impersonation-system:cattle-impersonation-u-x", "kubectl/v1.35", "", RequesterKubectl},
	} {
		d := RequestDetail{User: c.user, Impersonator: c.impersonator, Agent: c.agent, RequestedBy: c.requestedBy}
		require.Equal(t, c.want, NewEnv(nil).classOf(&d), c.name)
	}
}

// TestRequestersOfKubeVirtsNamespace knows KubeVirt's accounts by the namespace of its CR.
func TestRequestersOfKubeVirtsNamespace(t *testing.T) {
	t.Parallel()
	env := NewEnv([]Fact{{Subject: Subject{Kind: SubjectConfig, Name: string(ObjectKubeVirt)}, Namespace: "virt", Detail: &ConfigDetail{KubeVirt: &KubeVirtSettings{}}}})
	require.Equal(t, RequesterKubeVirt, env.classOf(&RequestDetail{User: "system:serviceaccount:virt:kubevirt-controller"}))
	require.Equal(t, RequesterServiceAccount, env.classOf(&RequestDetail{User: "system:serviceaccount:virt:robot"}))
	require.Equal(t, RequesterServiceAccount, env.classOf(&RequestDetail{User: "system:serviceaccount:team-a:kubevirt-controller"}))
}

// TestRequestersAreStated reads accounts that an installation states: they go before the known ones, and mistakes are named with their lines.
func TestRequestersAreStated(t *testing.T) {
	t.Parallel()
	accounts, err := ParseAccounts("# ours\n\ninfra:descheduler-* = descheduler\n system:serviceaccount:clusters-*:capi-provider=cluster_api\r\nuser:oidc:ci=*=argo_cd\nkarpenter:karpenter = service_account\n")
	require.NoError(t, err)
	require.Equal(t, Accounts{
		{"infra:descheduler-*", RequesterDescheduler}, {"clusters-*:capi-provider", RequesterClusterAPI}, {"user:oidc:ci=*", RequesterArgoCD},
		{"karpenter:karpenter", RequesterServiceAccount},
	}, accounts)
	env := NewEnv(nil)
	env.Judge(Thresholds{Accounts: accounts})
	for user, want := range map[string]RequesterClass{
		"system:serviceaccount:infra:descheduler-blue":   RequesterDescheduler,
		"system:serviceaccount:infra:descheduler":        RequesterServiceAccount,
		"system:serviceaccount:team:descheduler-blue":    RequesterServiceAccount,
		"system:serviceaccount:clusters-a:capi-provider": RequesterClusterAPI,
		"oidc:ci=main": RequesterArgoCD,
		"system:serviceaccount:karpenter:karpenter":   RequesterServiceAccount,
		"system:serviceaccount:kube-system:karpenter": RequesterKarpenter,
	} {
		require.Equal(t, want, env.classOf(&RequestDetail{User: user}), user)
	}

	for text, says := range map[string]string{
		"infra:descheduler":                        `line 1: "infra:descheduler": expected PATTERN = CLASS`,
		"\ninfra:x = deschedular":                  `line 2: class "deschedular": expected one of descheduler, kubectl,`,
		"infra:x = unknown":                        `class "unknown": expected one of`,
		"descheduler = descheduler":                `pattern "descheduler": expected NAMESPACE:NAME of a service account, or user:NAME`,
		"a:b:c = kured":                            `pattern "a:b:c": expected NAMESPACE:NAME`,
		"a: = kured":                               `pattern "a:": expected NAMESPACE:NAME`,
		"a b:c = kured":                            `pattern "a b:c": expected NAMESPACE:NAME`,
		"*:descheduler = descheduler":              `pattern "*:descheduler": expected a namespace before the colon: anybody can make an account of that name in a namespace of theirs`,
		":descheduler = descheduler":               `pattern ":descheduler": expected a namespace before the colon`,
		"user:* = kubectl":                         `pattern "user:*": expected the name of a user after user:`,
		"a:b = kured\na:c = flux\na:b = karpenter": "line 3: a:b has a class already",
		"a:b = x\na:c = y":                         "line 2: class",
	} {
		_, err := ParseAccounts(text)
		require.ErrorContains(t, err, says, text)
	}
	none, err := ParseAccounts("# nothing\n")
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestRequestersAreKept keeps what was stated with the other thresholds, and what was kept by a version before says nothing.
func TestRequestersAreKept(t *testing.T) {
	t.Parallel()
	stated := DefaultThresholds()
	stated.Accounts = Accounts{{"infra:ds", RequesterDescheduler}}
	raw, err := json.Marshal(stated)
	require.NoError(t, err)
	var read Thresholds
	require.NoError(t, json.Unmarshal(raw, &read))
	require.True(t, stated.Equal(read))
	raw, err = json.Marshal(DefaultThresholds())
	require.NoError(t, err)
	require.NotContains(t, string(raw), "accounts")
}

// TestKnownAccountsMayBeStated holds that every known account names its namespace and has a class that may be stated.
func TestKnownAccountsMayBeStated(t *testing.T) {
	t.Parallel()
	for _, known := range knownAccounts {
		_, err := parseAccount(known.Pattern + "=" + string(known.Class))
		require.NoError(t, err)
		require.False(t, strings.HasPrefix(known.Pattern, "*"), known.Pattern)
	}
}

// TestShortRequester shortens the accounts of programs that are known, and no others: anybody may call an account descheduler.
func TestShortRequester(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user  string
		class RequesterClass
		want  string
	}{
		{"system:serviceaccount:kube-system:descheduler", RequesterDescheduler, "descheduler"},
		{"system:serviceaccount:team-a:descheduler", RequesterServiceAccount, "team-a/descheduler"},
		{"system:serviceaccount:team-a:descheduler", "", "team-a/descheduler"},
		{"system:serviceaccount:odd", RequesterDescheduler, "system:serviceaccount:odd"},
		{"alice", RequesterOther, "alice"},
		{"", RequesterUnknown, ""},
	} {
		require.Equal(t, c.want, ShortRequester(c.user, c.class))
	}
}
