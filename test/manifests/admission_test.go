package manifests_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/apis/audit"
	auditing "k8s.io/apiserver/pkg/audit"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// newFakeCluster is the API that an admission plugin asks: a namespace and what was applied, with the selectors that the API
// server fills in.
//
// Source: kubernetes pkg/apis/admissionregistration/v1/defaults.go.
func newFakeCluster(t *testing.T, applied []runtime.Object) (*fake.Clientset, informers.SharedInformerFactory) {
	t.Helper()
	for _, object := range applied {
		switch o := object.(type) {
		case *admissionv1.ValidatingWebhookConfiguration:
			o.Webhooks[0].NamespaceSelector, o.Webhooks[0].ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
		case *admissionv1.ValidatingAdmissionPolicy:
			o.Spec.MatchConstraints.NamespaceSelector, o.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	client := fake.NewClientset(append(applied, namespace)...)
	return client, informers.NewSharedInformerFactory(client, 0)
}

// newEviction is a request for one, as admission sees it.
func newEviction(pod string, annotations map[string]string, dryRun bool) admission.Attributes {
	body := &policyv1.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: "shop", Annotations: annotations},
	}
	return admission.NewAttributesRecord(body, nil, policyv1.SchemeGroupVersion.WithKind("Eviction"), "shop", pod,
		corev1.SchemeGroupVersion.WithResource("pods"), "eviction", admission.Create, &metav1.CreateOptions{}, dryRun, alice)
}

// podCreation is a request that makes a pod.
func podCreation(name string) admission.Attributes {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
	return admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", name,
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, false, alice)
}

// admitRequest returns a request to a plugin and returns the annotations of its audit event, which has no body. It fails where
// the request is refused.
func admitRequest(t *testing.T, plugin admission.Interface, a admission.Attributes) map[string]string {
	t.Helper()
	ctx := auditing.WithAuditContext(context.WithoutCancel(t.Context()))
	event := auditing.AuditContextFrom(ctx)
	require.NoError(t, event.Init(auditing.RequestAuditConfig{Level: audit.LevelMetadata}, nil))
	audited := admission.WithAudit(plugin).(admission.ValidationInterface) // as every plugin of an API server is
	require.NoError(t, audited.Validate(ctx, a, admission.NewObjectInterfacesFromScheme(scheme.Scheme)))
	return event.GetEventAnnotations()
}
