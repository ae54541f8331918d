// Package plugins tests the panels for Headlamp and the OpenShift console (deploy/plugins) in a real browser. They are built by npm
// from their lock file, loaded by a host that stands in for each console, and ask an evictrail with recorded incidents.
//
//   - headlamp_test.go: the panel in Headlamp, through the service proxy of an API server; its settings.
//   - apiserver_test.go: the same through a real kube-apiserver, with the role of the documentation.
//   - console_test.go: the tab in the OpenShift console, loaded by the console's own loader, with tokens of users.
//   - files_test.go: what is installed: the kustomization, the folder for Headlamp, the lock file.
//   - main_test.go, tab_test.go: the builds, the browser, evictrail. hosts_test.go: what stands before evictrail. hosts/: the pages.
//
// The hosts follow the sources of both consoles, which cannot run here. What a panel says is compared with the command line. With
// EVICTRAIL_SCREENSHOTS the panels are written as pictures into that directory.
package plugins
