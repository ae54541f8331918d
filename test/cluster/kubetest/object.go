package kubetest

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

//go:embed kubevirt.yaml
var kubevirtKinds string

// KubeVirtKinds is the manifest of KubeVirt's kinds.
func KubeVirtKinds() string { return kubevirtKinds }

// Objects reads the objects of a manifest.
func Objects(manifest string) ([]*unstructured.Unstructured, error) {
	d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 64<<10)
	var out []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(o.Object) > 0:
			out = append(out, o)
		}
	}
}

// Apply applies a manifest as the administrator, by server-side apply with strict validation of fields.
func (c *Cluster) Apply(manifest string) {
	c.t.Helper()
	objects, err := Objects(manifest)
	if err != nil {
		c.t.Fatalf("read manifest: %v", err)
	}
	for _, o := range objects {
		if err := c.ApplyObject(c.t.Context(), o); err != nil {
			c.t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// ApplyObject applies one object, as Apply does. The error is the API server's.
func (c *Cluster) ApplyObject(ctx context.Context, o *unstructured.Unstructured) error {
	resources, err := c.Resources()
	if err != nil {
		return err
	}
	client, err := resources(o.GroupVersionKind(), o.GetNamespace())
	if err != nil {
		return err
	}
	raw, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, o.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: "kubetest", FieldValidation: "Strict", Force: new(true)})
	return err
}

// Resources asks the API server once for its kinds, and returns a function that returns the administrator's client of a kind, in a namespace
// where the kind has any.
func (c *Cluster) Resources() (func(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error), error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Admin())
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(d)
	if err != nil {
		return nil, err
	}
	mapper, client := restmapper.NewDiscoveryRESTMapper(groups), c.Dynamic()
	return func(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, err
		}
		all := client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			return all.Namespace(namespace), nil
		}
		return all, nil
	}, nil
}

// Dynamic is the administrator's client of all kinds.
func (c *Cluster) Dynamic() dynamic.Interface {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.Admin())
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// Namespace makes a namespace with a ServiceAccount default, which the admission of pods asks for. Labels may say which Pod
// Security it enforces.
func (c *Cluster) Namespace(name string, labels map[string]string) {
	c.t.Helper()
	object := func(kind, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind(kind)
		o.SetName(name)
		return o
	}
	space, account := object("Namespace", name), object("ServiceAccount", "default")
	space.SetLabels(labels)
	account.SetNamespace(name)
	for _, o := range []*unstructured.Unstructured{space, account} {
		if err := c.ApplyObject(c.t.Context(), o); err != nil {
			c.t.Fatalf("make namespace %s: %v", name, err)
		}
	}
}

// awaitKinds waits until KubeVirt's kinds are served.
func (c *Cluster) awaitKinds() {
	c.t.Helper()
	client := c.Dynamic()
	for _, r := range []schema.GroupVersionResource{
		{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"},
		{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
		{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"},
		{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancemigrations"},
		{Group: "migrations.kubevirt.io", Version: "v1alpha1", Resource: "migrationpolicies"},
	} {
		c.retryUntilReady(r.Resource, c.server, func(ctx context.Context) error {
			list, err := client.Resource(r).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil && list.GetResourceVersion() == "" {
				return apierrors.NewInternalError(errors.New("list without a version"))
			}
			return err
		})
	}
}
