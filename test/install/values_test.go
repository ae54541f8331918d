package install_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWrongValuesAreRefused, by the schema or by the templates, with the name of the value.
func TestWrongValuesAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  []string
		want string
	}{
		{"no database", []string{"--set=database.url="}, "database.url: say where PostgreSQL is, such as postgres://evictrail@db.example:5432/evictrail"},
		{"a password in the URL", []string{"--set=database.url=postgres://evictrail:secret@db.example/evictrail"}, "at '/database/url'"},
		{"parameters in the URL", []string{"--set=database.url=postgres://evictrail@db.example/evictrail?sslmode=disable"}, "at '/database/url'"},
		{"a password among the parameters", []string{"--set=database.parameters.password=secret"}, "invalid propertyName 'password'"},
		{"a password where its secret belongs", []string{"--set=database.passwordSecret=secret"}, "at '/database/passwordSecret': got string, want object"},
		{"TLS that is not checked by halves", []string{"--set=database.sslmode=prefer"}, "at '/database/sslmode': value must be one of 'verify-full'"},
		{"a value that does not exist", []string{"--set=replicaCount=3"}, "additional properties 'replicaCount' not allowed"},
		{"replicas that are no number", []string{"--set=replicas=two"}, "at '/replicas': got string, want integer"},
		{"tokens of nobody", []string{"--set=tokens.audiences={}"}, "at '/tokens/audiences/0': minLength: got 0, want 1"},
		{"tokens of the API server, somewhere", []string{"--set=tokens.apiServer=some"}, "at '/tokens/apiServer': value must be one of 'metrics', 'all', 'none'"},
		{"auth that does not exist", []string{"--set=auth=basic"}, "at '/auth': value must be one of 'kubernetes', 'none'"},
		{"a level that does not exist", []string{"--set=logLevel=trace"}, "at '/logLevel'"},
		{"an extra argument that is none", []string{"--set=extraArgs={loops}"}, "at '/extraArgs/0'"},
		{"audit of nobody", []string{"--set=audit.enabled=true,networkPolicy.enabled=false"}, "audit: say who may send: audit.tokenSecret.name, or audit.clientCASecret.name"},
		{"audit from nowhere", []string{"--set=audit.enabled=true,audit.tokenSecret.name=tokens"}, "networkPolicy.apiServerCIDRs: API servers send audit events or reviews"},
		{"no address", []string{"--set=networkPolicy.apiServerCIDRs={10.0.0.1}"}, "at '/networkPolicy/apiServerCIDRs/0'"},
		{"an observer whose CA nobody knows", []string{"--set=observer.enabled=true,networkPolicy.apiServerCIDRs={0.0.0.0/0}"}, "tls.ca: the observer's API servers must know the CA"},
		{"a ConfigMap in no namespace", []string{"--set=descheduler.configMap.name=descheduler"}, "at '/descheduler/configMap/namespace'"},
		{"memory in unknown units", []string{"--set=resources.limits.memory=1Xi"}, "resources.limits.memory 1Xi: expected a number with Ki, Mi, Gi"},
		{"a key instead of a CA", []string{"--set-string=tls.ca=-----BEGIN PRIVATE KEY-----"}, "at '/tls/ca'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"template", "evictrail", chart, "--values", "testdata/small.yaml"}, tt.set...)
			out, err := runProgram(t, buildHelm, args...)
			require.Error(t, err)
			require.Contains(t, out, tt.want)
		})
	}
}
