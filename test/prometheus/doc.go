// Package prometheus tests that the rules of package alerts mean what they say. Not by reading them: Prometheus' own parser
// looks at every expression, its templates write every text, and promtool evaluates the cases in alerts/testdata. promtool is
// run twice: as Debian ships it, taken out of its package by hack/ensure-promtool.sh, and the newest, built by test/promtool.
//
// mutation_test.go asks the cases whether they would notice: it spoils one rule at a time.
//
// alertmanager_test.go has an Alertmanager, out of Debian's package by hack/ensure-alertmanager.sh, take the example of deploy/alertmanager and send messages
// to receivers of the test.
//
// It is a module of its own, so that the product does not depend on Prometheus.
package prometheus
