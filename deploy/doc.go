// Package deploy writes what a cluster needs so that evictrail hears of requests: which audit events a kube-apiserver
// makes, where it sends them, and the two admission objects that only look. In go the names and the address under which
// evictrail is reached (Options), out comes YAML. It asks nobody and runs nothing.
//
//	o := deploy.DefaultOptions()
//	o.URL = "https://evictrail.example"
//	text, err := deploy.YAML(deploy.AuditPolicy, o) // a file for --audit-policy-file
//
// The files under manifests/ are the manifests themselves, with a few places to fill in: read those first. Which flags
// and commands put them to use is described in docs/audit.md; that they mean what they say is tested with the API server's
// own code in test/manifests.
//
// Beside it lie what an installation takes: chart, a Helm chart, which is the source of kustomize, and Dockerfile. A chart
// holds only what is in its folder: chart/files are copies of what is generated elsewhere. packages has what test/release
// makes packages of Debian and Red Hat from, with the systemd unit, and the templates for krew and Homebrew.
package deploy

// After alerts and dashboards, whose files are copied: go generate goes by name.
//
//go:generate go test . -run ^TestChartFiles$ -update
