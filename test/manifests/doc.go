// Package manifests tests that the files of package deploy mean what they say. Not by reading them: they are given to the
// parts of a kube-apiserver that will read them (k8s.io/apiserver, as libraries), which then decide about requests, send
// audit events and call admission, over HTTPS and to the endpoints of package api.
//
// It is a module of its own, so that the product does not depend on the API server's code.
package manifests
