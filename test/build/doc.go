// Package build builds the programs that tests and the lab run, out of their own sources. Each comes from a module that pins its
// version: test/kube has Kubernetes, etcd and the descheduler, test/helm has helm, test/promtool has Prometheus, test/perses has what checks dashboards as Perses does, test/peers has
// kube-state-metrics, test/packaging has nfpm, krew and actionlint, test/lab/kubevirt has one module for every version of
// KubeVirt, test/lab/virtctl has virtctl.
//
//	paths, err := build.Build(ctx, os.Stderr, build.Etcd(), build.APIServer())
//	etcd, err := paths.Path("etcd")
//
// Programs are kept in the user's cache folder, outside of the work tree, under a key of everything that they are made of: the files
// of the module, the version of Go and the flags. A changed go.mod builds again; switching between commits does not. evictrail itself
// is built into bin/test of the work tree.
//
//   - program.go: which programs there are
//   - cache.go: where a built program lies
//   - build.go: building what is not there yet; evictrail.go: building evictrail, always
package build
