package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/cmd/evictrail/config"
	"github.com/evictrail/evictrail/store/storetest"
)

// writeConfig writes a configuration file with some settings, and returns its path.
func writeConfig(t *testing.T, path, settings string) string {
	t.Helper()
	text := "apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n" + settings
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestVariablesAreNoOneElses compares the variables of all flags with those that Kubernetes sets where a Service is called evictrail.
func TestVariablesAreNoOneElses(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			variable := config.Variable(f)
			seen[variable] = true
			require.NotRegexp(t, `^EVICTRAIL_(PORT|SERVICE_|TEST_)`, variable, cmd.CommandPath())
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
	for _, want := range []string{"EVICTRAIL_DATABASE_URL", "EVICTRAIL_SERVER", "EVICTRAIL_KEEP_FACTS", "EVICTRAIL_CONFIG"} {
		require.True(t, seen[want], want)
	}
}

func TestConfigPrint(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, filepath.Join(t.TempDir(), "evictrail.yaml"), "cluster: prod\nkeep-facts: 180d\nloop-threshold: {moves: 6, failing_for: 20m}\n")
	code, out, stderr := runCommand(t, "config", "print", "--config", file, "--cluster", "other")
	require.Equal(t, exitFound, code, stderr)
	require.Equal(t, `apiVersion: evictrail.dev/v1alpha1
kind: RunConfiguration
cluster: other # command line
keep-facts: 180d # file `+file+`:4
loop-threshold: [moves=6, failing_for=20m] # file `+file+`:5
`, out)

	code, all, stderr := runCommand(t, "config", "print", "--all")
	require.Equal(t, exitFound, code, stderr)
	newRun().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != config.FileFlag && f.Name != "help" {
			require.Contains(t, all, "\n# "+f.Name+": ")
		}
	})
	whole := filepath.Join(t.TempDir(), "whole.yaml")
	uncommented := strings.NewReplacer("\n# cluster: \"\"", "\ncluster: a", "\n# log-level: info", "\nlog-level: debug").Replace(all)
	require.NoError(t, os.WriteFile(whole, []byte(uncommented), 0o600))
	code, out, stderr = runCommand(t, "config", "print", "--config", whole)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "log-level: debug # file "+whole)
}

func TestConfigThatRunWouldRefuse(t *testing.T) {
	t.Parallel()
	for settings, says := range map[string]string{
		"keep-fact: 90d\n":                                     "evictrail.yaml:3: keep-fact: there is no such setting; did you mean keep-facts?",
		"log-format: xml\n":                                    "run would not start with this:\nlog-format \"xml\": expected text or json",
		"log-level: loud\n":                                    "run would not start with this:\nlog-level \"loud\": expected debug, info, warn or error",
		"loop-threshold: {moves: many}\n":                      "run would not start with this:\n",
		"database-url: postgres://u:canary@localhost/d\n":      "database-url holds a password",
		"prometheus-token-file: t\nlisten: 0.0.0.0:8080\n":     "prometheus-token-file",
		"keep-facts: 400d\nkeep-rows: 30d\nmax-vm-series: 0\n": "max-vm-series 0: must be positive",
	} {
		file := writeConfig(t, filepath.Join(t.TempDir(), "evictrail.yaml"), settings)
		code, out, stderr := runCommand(t, "config", "print", "--config", file)
		require.Equal(t, exitUsage, code, settings)
		require.Contains(t, stderr, says)
		require.NotContains(t, out+stderr, "canary")
	}
	code, _, stderr := runCommand(t, "run", "--config", "no-such-file.yaml")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "config: open no-such-file.yaml: no such file or directory")
}

// TestRunReloadsItsConfiguration changes the configuration file of a process that records, and sends SIGHUP.
func TestRunReloadsItsConfiguration(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	kubeconfig := writeKubeconfig(t, serveStandingCluster(t, "k-blocked-slot", &rights{}))
	file := writeConfig(t, filepath.Join(t.TempDir(), "evictrail.yaml"), "cluster: c1\nlisten: 127.0.0.1:0\nkubeconfig: "+kubeconfig+"\nkeep-facts: 60d\n")
	url, spool := storetest.NewURL(t), t.TempDir()
	s, process, log := startProcess(t, []string{"run", "--config", file, "--database-url", url, "--spool-dir", spool})
	says := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(log.String(), text) }, time.Minute, 10*time.Millisecond, text)
	}
	change := func(settings, text string) {
		t.Helper()
		writeConfig(t, file, settings)
		require.NoError(t, process.Process.Signal(syscall.SIGHUP))
		says(text)
	}
	base := "cluster: c1\nlisten: 127.0.0.1:0\nkubeconfig: " + kubeconfig + "\n"
	change(base+"keep-facts: 30d\n", "settings=[keep-facts]")
	change(base+"keep-fact: 30d\n", "configuration not reloaded: what was read before stays in force")
	change(base+"keep-facts: 30d\nlog-level: debug\ngrafana-url: https://grafana.example\n", "settings=[grafana-url]")
	says(`settings=[log-level]`)
	response, err := s.client.Get(s.base + "/livez")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, process.Process.Signal(syscall.SIGTERM))
	require.NoError(t, process.Wait(), log)
}
