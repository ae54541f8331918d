//go:build tools

// Package tools keeps what ../manifests.go imports in go.mod. The programs stand there as tools.
package tools

import (
	_ "kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	_ "kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/install"
	_ "kubevirt.io/kubevirt/pkg/virt-operator/util"
)
