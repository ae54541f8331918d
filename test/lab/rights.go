package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/test/build"
)

// Where evictrail is installed by deploy/kustomize, and the name of its ServiceAccount.
const (
	installed = "evictrail"
	account   = "evictrail"
)

// loadRights returns the manifests with the rights that evictrail ships with: its ServiceAccount and its roles, as deploy/kustomize installs them.
func loadRights() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(build.Root(), "deploy/kustomize/base/evictrail.yaml"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, manifest := range strings.Split(string(text), "\n---\n") {
		var o struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
			return nil, err
		}
		if slices.Contains([]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, o.Kind) {
			out = append(out, manifest)
		}
	}
	return out, nil
}
