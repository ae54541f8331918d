//go:build ignore

// Manifests prints what virt-operator would install for virt-api, virt-controller and virt-handler, as one JSON list: kinds, roles,
// accounts, webhooks and the aggregated API. It is built in the module of each version of KubeVirt, whose packages it imports:
//
//	cd v1.8.4 && go run ../manifests.go
//
// Deployments, Services and certificates are left out: the lab starts programs, and signs their certificates itself.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/install"
	"kubevirt.io/kubevirt/pkg/virt-operator/util"
)

const namespace = "kubevirt"

func main() {
	if err := printManifests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func printManifests() error {
	strategy, err := install.GenerateCurrentInstallStrategy(&util.KubeVirtDeploymentConfig{Namespace: namespace}, "", namespace)
	if err != nil {
		return fmt.Errorf("generate install strategy: %w", err)
	}
	kubevirt, err := components.NewKubeVirtCrd()
	if err != nil {
		return fmt.Errorf("generate kind KubeVirt: %w", err)
	}
	items := []any{kubevirt}
	items = appendAll(items, strategy.CRDs())
	items = appendAll(items, strategy.ServiceAccounts())
	items = appendAll(items, strategy.ClusterRoles())
	items = appendAll(items, strategy.ClusterRoleBindings())
	items = appendAll(items, strategy.Roles())
	items = appendAll(items, strategy.RoleBindings())
	items = appendAll(items, strategy.ValidatingAdmissionPolicies())
	items = appendAll(items, strategy.ValidatingAdmissionPolicyBindings())
	items = appendAll(items, strategy.APIServices())
	items = appendAll(items, strategy.ValidatingWebhookConfigurations())
	items = appendAll(items, strategy.MutatingWebhookConfigurations())
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

func appendAll[T any](items []any, more []T) []any {
	for _, item := range more {
		items = append(items, item)
	}
	return items
}
