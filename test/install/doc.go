// Package install tests what evictrail is installed with: the chart of deploy/chart and the overlays of deploy/kustomize that
// are held to it. helm and kubectl are the real ones, built from their own sources (test/build).
//
//   - chart_test.go: what the chart makes of its values; the goldens show it whole.
//   - values_test.go: what it refuses, and in which words.
//   - rights_test.go, pod_test.go: least privilege, in the API and in the pod.
//   - files_test.go: the rules, dashboards and manifests in it are those that are generated.
//   - kustomize_test.go: the overlays are the chart with other values.
//   - cluster_test.go: a real API server takes all that, strictly, in a namespace that enforces the restricted standard, and an
//     installation of an earlier chart can be upgraded. Nothing runs there: it has no nodes.
package install
