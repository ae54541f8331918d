package manifests_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/evictrail/evictrail/deploy"
)

// newPolicyPlugin makes the API server's admission plugin with the policy and its binding.
func newPolicyPlugin(t *testing.T, o deploy.Options) admission.Interface {
	t.Helper()
	plugin, err := validating.NewPlugin(nil)
	require.NoError(t, err)
	client, factory := newFakeCluster(t, decodeManifest(t, renderManifest(t, deploy.EvictionReason, o)))
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetRESTMapper(meta.NewDefaultRESTMapper(nil))
	plugin.SetDynamicClient(dynamicfake.NewSimpleDynamicClient(scheme.Scheme))
	plugin.SetDrainedNotification(t.Context().Done())
	plugin.SetUnconditionalAuthorizer(authorizerfactory.NewAlwaysDenyAuthorizer())
	require.NoError(t, plugin.ValidateInitialization())
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	require.True(t, plugin.WaitForReady())
	return plugin
}

func TestEvictionReasonCannotRefuse(t *testing.T) {
	t.Parallel()
	objects := decodeManifest(t, renderManifest(t, deploy.EvictionReason, deploy.DefaultOptions()))
	require.Len(t, objects, 2)
	policy, binding := objects[0].(*admissionv1.ValidatingAdmissionPolicy), objects[1].(*admissionv1.ValidatingAdmissionPolicyBinding)
	require.Equal(t, admissionv1.Ignore, *policy.Spec.FailurePolicy)
	require.Empty(t, policy.Spec.Validations)
	require.Equal(t, []admissionv1.ValidationAction{admissionv1.Audit}, binding.Spec.ValidationActions)
	require.Equal(t, policy.Name, binding.Spec.PolicyName)
}

func TestEvictionReason(t *testing.T) {
	t.Parallel()
	plugin := newPolicyPlugin(t, deploy.DefaultOptions())
	tests := []struct {
		name    string
		request admission.Attributes
		want    map[string]string
	}{
		{
			"the descheduler explains itself", newEviction(launcher, words, false),
			map[string]string{"evictrail-eviction-reason/requested-by": "sigs.k8s.io/descheduler", "evictrail-eviction-reason/reason": "triggered by Balance/LowNodeUtilization:"},
		},
		{"half of it", newEviction(launcher, map[string]string{"reason": "disk"}, false), map[string]string{"evictrail-eviction-reason/reason": "disk"}},
		{"nothing is said", newEviction(launcher, nil, false), nil},
		{"something else is said", newEviction(launcher, map[string]string{"ticket": "7"}, false), nil},
		{"nothing in a lot of space", newEviction(launcher, map[string]string{"reason": "  "}, false), nil},
		{"a dry run", newEviction(launcher, map[string]string{"reason": "disk"}, true), map[string]string{"evictrail-eviction-reason/reason": "disk"}},
		{"another pod", newEviction("web-1", words, false), nil},
		{"no eviction", podCreation(launcher), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := admitRequest(t, plugin, tt.request)
			if tt.want == nil {
				require.Empty(t, got)
			} else {
				require.Equal(t, tt.want, got)
			}
		})
	}
}

func TestEvictionReasonUnderAnotherName(t *testing.T) {
	t.Parallel()
	o := deploy.DefaultOptions()
	o.PolicyName = "why.example.com"
	got := admitRequest(t, newPolicyPlugin(t, o), newEviction(launcher, map[string]string{"reason": "disk"}, false))
	require.Equal(t, map[string]string{"why.example.com/reason": "disk"}, got)
}
