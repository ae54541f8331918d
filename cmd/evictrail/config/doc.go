// Package config completes the flags of a command from a configuration file and from the environment.
//
// A setting has one name, that of its flag: --keep-facts on the command line, keep-facts in a file, EVICTRAIL_KEEP_FACTS in the
// environment. Where several have it, the command line wins, then the environment, then the file:
//
//	apiVersion: evictrail.dev/v1alpha1
//	kind: RunConfiguration
//	cluster: prod
//	keep-facts: 180d
//	console-url:                                  # a flag that may be repeated
//	  - https://console.example/k8s/ns/{namespace}/virtualmachines/{name}
//	loop-threshold: {failing_for: 20m, moves: 6}  # one whose values are NAME=VALUE
//
// Decode reads a file and refuses what it does not understand, with the line. Complete sets the flags that the command line left
// out and notes where each value is from. Write writes flags as a file that Decode reads.
//
// Start reading at Complete.
package config
