package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/deploy"
)

// runGenerate runs "generate" with these arguments.
func runGenerate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newGenerate()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// generateManifests runs "generate manifests" with these arguments.
func generateManifests(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runGenerate(t, append([]string{"manifests"}, args...)...)
}

// refusal is a command line that "generate" refuses.
type refusal struct {
	name  string
	args  []string
	says  string
	usage bool
}

// requireRefusals runs what a subcommand of "generate" must refuse, and wants it to say why and print nothing.
func requireRefusals(t *testing.T, command string, tests []refusal) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := runGenerate(t, append([]string{command}, tt.args...)...)
			require.ErrorContains(t, err, tt.says)
			var usage *usageError
			require.Equal(t, tt.usage, errors.As(err, &usage))
			require.Empty(t, out)
		})
	}
}

func writeFile(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func caFile(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func TestGenerateManifestsPrints(t *testing.T) {
	t.Parallel()
	all, observer, reason := []string{"kind: Policy", "kind: Config", "kind: ValidatingWebhookConfiguration", "kind: ValidatingAdmissionPolicy\n"},
		"kind: ValidatingWebhookConfiguration", "kind: ValidatingAdmissionPolicy\n"
	tests := []struct {
		name string
		args []string
		has  []string // in this order
		not  []string
	}{
		{"everything without names", nil, all, nil},
		{"what is named", []string{"observer"}, []string{observer}, []string{"\n---\n", "kind: Policy"}},
		{"in the order named, once", []string{"eviction-reason", "observer", "observer"}, []string{reason, observer}, []string{"kind: Config"}},
		{"with the CA", []string{"observer", "--ca-file", caFile(t)}, []string{"caBundle: LS0t"}, []string{"# caBundle"}},
		{"without the CA", []string{"observer"}, []string{"# caBundle: "}, nil},
		{"for a Service", []string{"--namespace", "ops", "--service", "recorder", "--port", "8443", "--observer-port", "9000"},
			[]string{`"https://recorder.ops.svc:8443/audit"`, "namespace: ops", "name: recorder", "port: 9000"}, nil},
		{"for a URL", []string{"--url", "https://evictrail.example", "--observer-url", "https://evictrail.example:9443"},
			[]string{`"https://evictrail.example/audit"`, `"https://evictrail.example:9443/admission"`}, []string{"service:", "tls-server-name"}},
		{"with a secret", []string{"observer", "--admission-secret-file", writeFile(t, []byte("0123456789abcdef0123\nthe-one-before-this-one\n"))},
			[]string{"path: /admission/0123456789abcdef0123\n"}, []string{"the-one-before"}},
		{"with another policy name", []string{"eviction-reason", "--policy-name", "why"}, []string{"name: why", "policyName: why"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := generateManifests(t, tt.args...)
			require.NoError(t, err)
			at := 0
			for _, part := range tt.has {
				i := strings.Index(out[at:], part)
				require.GreaterOrEqual(t, i, 0, "%s, after byte %d of\n%s", part, at, out)
				at += i
			}
			for _, part := range tt.not {
				require.NotContains(t, out, part)
			}
		})
	}
}

func TestGenerateManifestsRefuses(t *testing.T) {
	t.Parallel()
	requireRefusals(t, "manifests", []refusal{
		{"an unknown name", []string{"observer", "webhook"}, `manifest "webhook": expected one of audit-policy, audit-webhook, observer, eviction-reason`, true},
		{"a bad namespace", []string{"--namespace", "No"}, `namespace "No"`, true},
		{"a URL and a Service", []string{"--url", "https://evictrail.example", "--service", "evictrail"}, "service says where a Service is", true},
		{"a URL for reviews, too", []string{"--url", "https://evictrail.example"}, "reviews have an address of their own", true},
		{"a secret that is guessed", []string{"observer", "--admission-secret-file", writeFile(t, []byte("short"))}, "20 to 128 lower-case letters", false},
		{"a CA without a certificate", []string{"--ca-file", writeFile(t, nil)}, "CA: no certificate", true},
		{"a CA that is not there", []string{"--ca-file", filepath.Join(t.TempDir(), "none")}, "read CA: ", false},
		{"a directory that is a file", []string{"--dir", writeFile(t, nil)}, "make output directory: ", false},
	})
}

func TestGenerateManifestsWritesFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "dir")
	for range 2 { // the second time over what is there
		out, err := generateManifests(t, "--dir", dir)
		require.NoError(t, err)
		var paths []string
		for _, m := range deploy.Manifests() {
			paths = append(paths, filepath.Join(dir, m.Name+".yaml"))
			text, err := os.ReadFile(paths[len(paths)-1])
			require.NoError(t, err)
			printed, err := generateManifests(t, m.Name)
			require.NoError(t, err)
			require.Equal(t, printed, string(text))
		}
		require.Equal(t, strings.Join(paths, "\n")+"\n", out)
	}
}

// TestGenerateManifestsMakesASecret once: what is in the file stays.
func TestGenerateManifestsMakesASecret(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	first, err := generateManifests(t, "observer", "--admission-secret-file", file)
	require.NoError(t, err)
	secrets, err := readSecrets(file)
	require.NoError(t, err)
	require.Contains(t, first, "path: /admission/"+secrets[0]+"\n")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	second, err := generateManifests(t, "observer", "--admission-secret-file", file)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

func TestGenerateManifestsCompletesNames(t *testing.T) {
	t.Parallel()
	names, _ := completeManifests(nil, []string{"observer"}, "")
	require.Len(t, names, len(deploy.Manifests())-1)
	require.Contains(t, names[0], "audit-policy\t")
	require.NotContains(t, strings.Join(names, "\n"), "observer\t")
}

func TestGenerateManifestsExplainsItself(t *testing.T) {
	t.Parallel()
	out, err := generateManifests(t, "--help")
	require.NoError(t, err)
	for _, m := range deploy.Manifests() {
		require.Contains(t, out, m.Name)
		require.Contains(t, out, m.Short)
	}
}
