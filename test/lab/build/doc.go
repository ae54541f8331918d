// Package build builds the programs of the lab out of their own sources. Each comes from a module that pins its version: test/kube
// has Kubernetes and etcd, test/lab/kubevirt has one module for every version of KubeVirt, test/lab/descheduler has the descheduler.
//
// Programs are kept in the user's cache folder, outside of the work tree, under a key of everything that they are made of: the files
// of the module, the version of Go and the flags. A changed go.mod builds anew; switching between commits does not.
//
//   - program.go: which programs there are
//   - cache.go: where a built program lies
//   - build.go: building what is not there yet
package build
