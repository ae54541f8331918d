package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const settingsPath = "/api/v1/settings"

// settingsParams are the parameters of a trail.SettingsQuery.
func settingsParams() []param[trail.SettingsQuery] {
	return []param[trail.SettingsQuery]{
		{name: "cluster", about: "Only of this cluster.", schema: newTextSchema(), example: "prod",
			read: readText("cluster", func(q *trail.SettingsQuery) *string { return &q.Cluster }), write: func(q trail.SettingsQuery) string { return q.Cluster }},
		{name: "fingerprint", about: "Those with this fingerprint or part of one, as in the column policy, whenever they were in force.",
			schema: newTextSchema(), example: "1a2b3c",
			read:  readText("fingerprint", func(q *trail.SettingsQuery) *string { return &q.Fingerprint }),
			write: func(q trail.SettingsQuery) string { return q.Fingerprint }},
		{name: "at", about: "Without a fingerprint: those in force then: " + timeAbout + ". By default those in force now.", schema: newTextSchema(), example: "24h",
			read: readTime("at", func(q *trail.SettingsQuery) *time.Time { return &q.At }), write: func(q trail.SettingsQuery) string { return writeTime(q.At) }},
	}
}

// SettingsURL returns the path, relative to that of evictrail, and the query string of a question about settings.
func SettingsURL(q trail.SettingsQuery) *url.URL {
	return &url.URL{Path: settingsPath, RawQuery: writeParams(settingsParams(), q).Encode()}
}

// listSettings answers with settings that are or were in force.
func listSettings(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	var q trail.SettingsQuery
	if err := readParams(settingsParams(), r.URL.RawQuery, time.Now().UTC(), &q); err != nil {
		return reply{}, err
	}
	all, err := reader.Settings(ctx, q)
	if all == nil {
		all = []trail.SettingsInForce{} // an empty array, not null
	}
	return newJSONReply(all, err)
}

func settingsSchema() schema {
	return withDescription(newObjectSchema([]string{"cluster", "policy", "semantics"}, fields{
		{"cluster", newTextSchema()},
		{"policy", withDescription(newTextSchema(), "The fingerprint, as requests and evacuations name it.")},
		{"from", newTimeSchema("When they came into force. Missing for the first that were seen.")},
		{"until", newTimeSchema("When others came into force. Missing while they are.")},
		{"kubevirt", kubeVirtSchema()},
		{"descheduler", deschedulerSchema()},
		{"migration_policies", withDescription(listOf(migrationPolicySchema()), "In the order of their names. Missing where there is none.")},
		{"semantics", withDescription(newTextSchema(), "Which rules of KubeVirt and of the descheduler follow from their versions.")},
	}), "Settings that were in force in a time.")
}

// kubeVirtSchema describes a trail.KubeVirtSettings.
func kubeVirtSchema() schema {
	gates := func(about string) schema { return withDescription(listOf(newTextSchema()), about) }
	return withDescription(newObjectSchema(nil, fields{
		{"version", newTextSchema()}, {"eviction_strategy", newTextSchema()},
		{"parallel_migrations_per_cluster", newCountSchema("")}, {"parallel_outbound_migrations_per_node", newCountSchema("")},
		{"node_drain_taint_key", newTextSchema()},
		{"progress_timeout", newCountSchema("In seconds.")}, {"completion_timeout_per_gib", newCountSchema("In seconds.")},
		{"allow_post_copy", schema{Type: types{"boolean"}}},
		{"feature_gates", gates("Those that are switched on.")}, {"disabled_feature_gates", gates("Those that are switched off.")},
		{"workload_update_methods", gates("How KubeVirt brings running VMs to a new version.")},
		{"batch_eviction_size", newCountSchema("VMs that KubeVirt evicts at once to bring them to a new version.")},
		{"batch_eviction_interval", withDescription(schema{Type: types{"number"}}, "Between two batches of these, in seconds.")},
	}), "The settings of the KubeVirt CR that decide evacuations; what it does not set is missing. Missing where the CR was not seen.")
}

// deschedulerSchema describes a trail.DeschedulerSettings.
func deschedulerSchema() schema {
	cooldown := newObjectSchema([]string{"base", "max", "window"}, fields{
		{"base", schema{Type: types{"number"}}}, {"max", schema{Type: types{"number"}}}, {"window", schema{Type: types{"number"}}},
	})
	return withDescription(newObjectSchema(nil, fields{
		{"cooldown", withDescription(cooldown, "The cooldown of KubevirtMigrationAware, in seconds. Missing where that is not enabled.")},
		{"limit_total", newCountSchema("Evictions in one cycle.")}, {"limit_per_node", newCountSchema("Evictions of one node in one cycle.")},
		{"limit_per_namespace", newCountSchema("Evictions of one namespace in one cycle.")},
		{"model", withDescription(newTextSchema(), "The behaviour that evictrail was set to assume.")},
	}), "The settings of the descheduler that decide evictions of VMs; a limit that is missing is not set. Missing where its policy was not seen.")
}

// migrationPolicySchema describes a trail.MigrationPolicySettings.
func migrationPolicySchema() schema {
	yes, selector := schema{Type: types{"boolean"}}, schema{Type: types{"object"}, Values: &schema{Type: types{"string"}}}
	return withDescription(newObjectSchema([]string{"name"}, fields{
		{"name", newTextSchema()}, {"created_at", newTimeSchema("")},
		{"namespace_selector", withDescription(selector, "Labels of the namespaces that it is for.")},
		{"vmi_selector", withDescription(selector, "Labels of the VMIs that it is for.")},
		{"allow_auto_converge", yes}, {"allow_post_copy", yes}, {"allow_workload_disruption", yes},
		{"bandwidth_per_migration", withDescription(newTextSchema(), "Bytes in a second, as Kubernetes writes quantities.")},
		{"completion_timeout_per_gib", newCountSchema("In seconds.")},
	}), "A MigrationPolicy; what it does not set is missing.")
}

func (s *reads) settingsRoute() route {
	return route{
		method: http.MethodGet, path: settingsPath, tag: tagWhy, id: "listSettings", short: "Show the settings in force",
		about:  "What is behind the fingerprints in the column policy of eviction requests and evacuations. Only who sees all of a cluster sees its settings.",
		params: describeParams(settingsParams()), problems: readProblems,
		answers: []answer{
			{http.StatusOK, "The settings, by cluster, the oldest first.", readHeaders, jsonContent(listOf(newRefSchema("Settings")), nil)}, newUnchangedAnswer(readHeaders),
		},
		handler: s.newHandler(listSettings),
	}
}

// restsFields returns the fields of a trail.Rests.
func restsFields() fields {
	return fields{
		{"since", newTimeSchema("When the first thing that it describes began. Missing where it describes as_of alone.")},
		{"policy", withDescription(newTextSchema(), "Fingerprint of the settings in force when that began; see /api/v1/settings. Missing where none were seen.")},
		{"semantics", withDescription(newTextSchema(), "Which rules of KubeVirt and of the descheduler the answer follows, by the versions that were seen.")},
	}
}
