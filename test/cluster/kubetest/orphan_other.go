//go:build !linux

package kubetest

import "os/exec"

// dieWithParent does nothing: only Linux can.
func dieWithParent(*exec.Cmd) {}
