// Package requests tests how evictrail reads what kube-apiservers send, with Kubernetes' own types as the measure.
package requests
