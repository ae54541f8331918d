package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Answer is what the API server answers to an eviction.
type Answer struct {
	Code    int
	Message string
}

// Evict asks for the eviction of a pod as the user says, once. A refusal is an Answer, no error.
func (c *Cluster) Evict(ctx context.Context, user *rest.Config, namespace, pod string, annotations map[string]string) (Answer, error) {
	client, err := kubernetes.NewForConfig(user)
	if err != nil {
		return Answer{}, err
	}
	err = client.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, Annotations: annotations},
	})
	var refused apierrors.APIStatus
	switch {
	case err == nil:
		return Answer{Code: http.StatusCreated}, nil
	case errors.As(err, &refused):
		return Answer{int(refused.Status().Code), refused.Status().Message}, nil
	default:
		return Answer{}, fmt.Errorf("evict pod %s/%s: %w", namespace, pod, err)
	}
}

// LauncherPod returns the name of the pod that has the guest of a VM.
func (c *Cluster) LauncherPod(ctx context.Context, namespace, vm string) (string, error) {
	vmi, err := c.VMI(ctx, namespace, vm)
	if err != nil {
		return "", err
	}
	node, _, _ := unstructured.NestedString(vmi.Object, "status", "nodeName")
	pods, err := c.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "kubevirt.io/created-by=" + string(vmi.GetUID()), FieldSelector: "spec.nodeName=" + node + ",status.phase=Running",
	})
	if err != nil {
		return "", err
	}
	if len(pods.Items) != 1 {
		return "", fmt.Errorf("running launcher pods of %s/%s on node %q: %d, expected one", namespace, vm, node, len(pods.Items))
	}
	return pods.Items[0].Name, nil
}

func sortByCreation(items []unstructured.Unstructured) []unstructured.Unstructured {
	slices.SortStableFunc(items, func(a, b unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	return items
}
