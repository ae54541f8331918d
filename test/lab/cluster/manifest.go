package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// manifests are what virt-operator would install.
type manifests struct {
	kinds string                       // CustomResourceDefinitions, as kubetest wants them
	rest  []*unstructured.Unstructured // accounts, roles, policies
	hooks []*unstructured.Unstructured // webhooks of virt-api, and its aggregated API
}

// loadManifests runs kubevirt-manifests of the version.
func loadManifests(ctx context.Context, program string) (manifests, error) {
	cmd := exec.CommandContext(ctx, program)
	cmd.Stderr = nil
	out, err := cmd.Output()
	if err != nil {
		return manifests{}, fmt.Errorf("print manifests of KubeVirt: %w", err)
	}
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return manifests{}, fmt.Errorf("read manifests of KubeVirt: %w", err)
	}
	return sortManifests(list.Items)
}

func sortManifests(items []map[string]any) (m manifests, err error) {
	var kinds strings.Builder
	for _, item := range items {
		o := &unstructured.Unstructured{Object: item}
		delete(item, "status")
		unstructured.RemoveNestedField(item, "metadata", "creationTimestamp")
		switch o.GetKind() {
		case "CustomResourceDefinition":
			text, err := o.MarshalJSON()
			if err != nil {
				return m, err
			}
			kinds.WriteString("---\n" + string(text))
		case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			o.SetAPIVersion("admissionregistration.k8s.io/v1") // KubeVirt says v1
			m.rest = append(m.rest, o)
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			if strings.HasPrefix(o.GetName(), "virt-api") { // the others are of virt-operator, or belong to a feature gate
				m.hooks = append(m.hooks, o)
			}
		case "APIService":
			m.hooks = append(m.hooks, o)
		default:
			m.rest = append(m.rest, o)
		}
	}
	m.kinds = kinds.String()
	return m, nil
}

// redirectToVirtAPI has a webhook configuration, or an APIService, call virt-api where it listens instead of through its Service.
func redirectToVirtAPI(o *unstructured.Unstructured, port int, ca []byte) error {
	if o.GetKind() == "APIService" {
		if err := unstructured.SetNestedField(o.Object, int64(port), "spec", "service", "port"); err != nil {
			return err
		}
		return setBytes(o.Object, ca, "spec", "caBundle")
	}
	hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, hook := range hooks {
		hook, ok := hook.(map[string]any)
		if !ok {
			return fmt.Errorf("webhooks of %s: not objects", o.GetName())
		}
		path, _, err := unstructured.NestedString(hook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		hook["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", port, path)}
		if err := setBytes(hook, ca, "clientConfig", "caBundle"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(o.Object, hooks, "webhooks")
}

// setBytes sets a field of bytes, which JSON has in base64.
func setBytes(object map[string]any, value []byte, path ...string) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(object, strings.Trim(string(text), `"`), path...)
}

// createObjects creates objects as the administrator, in order. Those that exist stay as they are.
func (c *Cluster) createObjects(ctx context.Context, objects ...*unstructured.Unstructured) error {
	resources, err := c.API.Resources()
	if err != nil {
		return fmt.Errorf("ask for the kinds of the API server: %w", err)
	}
	for _, o := range objects {
		resource, err := resources(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return err
		}
		if _, err := resource.Create(ctx, o, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// writeFile writes a file below the host's folder, and returns its path.
func (c *Cluster) writeFile(name string, text []byte) (string, error) {
	path := filepath.Join(c.host.Dir, name)
	return path, os.WriteFile(path, text, 0o600)
}
