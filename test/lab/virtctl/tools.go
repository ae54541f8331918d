//go:build tools

// Package tools keeps what virtctl imports in go.mod: a module cannot name the program itself here.
package tools

import _ "kubevirt.io/kubevirt/pkg/virtctl"
