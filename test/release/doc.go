// Command release makes a release of the repository: everything that a version has for its users, in one folder. It
// publishes nothing.
//
//	cd test && go run ./release -out ../bin/release
//
// A release comes from a commit, not from the work tree: the commit is checked out into a temporary folder and built
// there. All is made twice, in two folders of different names, and the checksums must be equal: what is in a release
// can be made again by anybody who has the commit, the version of Go and npm. With -fresh the second time compiles
// everything again instead of reading Go's cache.
//
// The folder holds, for version 0.1.0:
//
//	evictrail_0.1.0_linux_amd64.tar.gz        program, license, manual pages, completions; one for each platform
//	evictrail_0.1.0_linux_amd64.spdx.json     what the program is made of, in SPDX 2.3; one for each platform
//	evictrail_0.1.0_amd64.deb, ….rpm          packages with a systemd unit, for Linux
//	evictrail-0.1.0.tgz                       the Helm chart
//	evictrail-headlamp-0.1.0.tar.gz           the plugin for Headlamp
//	evictrail-console-0.1.0.tar.gz            the plugin for the OpenShift console
//	evictrail.yaml, evictrail.rb              the manifest of krew and the formula of Homebrew
//	release-notes.md                          what CHANGELOG.md says of the version
//	SHA256SUMS                                the checksums of all of them
//
// At a tag the version is the tag's, and must be that of the chart and have a section in the changelog. Elsewhere it
// is a version before that of the chart, such as 0.1.0-dev.gb8dc097, with what is unreleased as notes.
//
// Start with main.go (makeRelease). source.go finds the commit and its version, program.go builds, sbom.go,
// packages.go, plugins.go, manifests.go and notes.go make what their names say. The tests open each file with the tools that users
// have: dpkg-deb, rpm2cpio, helm, krew, ruby.
package main
