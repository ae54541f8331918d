package main

import (
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/test/build"
)

// packaged are files of a package, beside those that differ between Debian and Red Hat.
var packaged = []string{
	"etc/evictrail/evictrail.yaml", "usr/bin/evictrail",
	"usr/lib/systemd/system/evictrail.service", "usr/lib/sysusers.d/evictrail.conf",
	"usr/share/man/man1/evictrail.1.gz", "usr/share/man/man1/evictrail-run.1.gz",
	"usr/share/bash-completion/completions/evictrail", "usr/share/fish/vendor_completions.d/evictrail.fish",
}

// requireInstalled looks at the files of a package where it was unpacked: all are there, and the program is the one of
// the archive.
func requireInstalled(t *testing.T, r made, p platform, root string, more ...string) {
	t.Helper()
	for _, name := range append(more, packaged...) {
		require.FileExists(t, filepath.Join(root, name))
	}
	for _, link := range []string{"kubectl-evictrail", "kubectl_complete-evictrail"} {
		target, err := os.Readlink(filepath.Join(root, "usr/bin", link))
		require.NoError(t, err)
		require.Equal(t, "evictrail", target)
	}
	unpacked := t.TempDir()
	unpackArchive(t, r.archive(p), unpacked)
	want, err := sumFile(filepath.Join(unpacked, "evictrail"))
	require.NoError(t, err)
	got, err := sumFile(filepath.Join(root, "usr/bin/evictrail"))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestDeb unpacks the packages of Debian. That of this machine is run: its program, the demo, the unit.
func TestDeb(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	for _, p := range r.linux(t) {
		t.Run(p.Arch, func(t *testing.T) {
			t.Parallel()
			requireDeb(t, r, p)
		})
	}
}

func requireDeb(t *testing.T, r made, p platform) {
	t.Helper()
	root, deb := t.TempDir(), r.path(r.packageName(p, "deb"))
	runTool(t, "dpkg-deb", "--extract", deb, root)
	requireInstalled(t, r, p, root, "usr/share/zsh/vendor-completions/_evictrail", "usr/share/doc/evictrail/copyright")
	fields := runTool(t, "dpkg-deb", "--field", deb, "Package", "Version", "Architecture")
	version := strings.Replace(r.version, "-", "~", 1)
	require.Equal(t, "Package: evictrail\nVersion: "+version+"-1\nArchitecture: "+p.Arch+"\n", fields)
	control := t.TempDir()
	runTool(t, "dpkg-deb", "--control", deb, control)
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		runTool(t, "sh", "-n", filepath.Join(control, script))
	}
	settings, err := os.ReadFile(filepath.Join(control, "conffiles"))
	require.NoError(t, err)
	require.Equal(t, "/etc/evictrail/evictrail.yaml\n", string(settings))
	requireUnit(t, root)
	if p == host {
		requireWorks(t, r, filepath.Join(root, "usr/bin"))
		requireFlags(t, root)
	}
}

// requireWorks runs the installed program: by its name, as kubectl's plugin, and the demo with a Postgres of its own.
func requireWorks(t *testing.T, r made, bin string) {
	t.Helper()
	requireRuns(t, filepath.Join(bin, "evictrail"), r.version)
	help := runTool(t, filepath.Join(bin, "kubectl-evictrail"), "why", "--help")
	require.Contains(t, help, "kubectl evictrail why")
	completed := runTool(t, filepath.Join(bin, "kubectl_complete-evictrail"), "why-")
	require.Contains(t, completed, "why-not")
	// The server of root runs as another user, to whom the test's own folder is closed.
	home, err := os.MkdirTemp("", "evictrail-demo-")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(home)) }()
	require.NoError(t, os.Chmod(home, 0o755))
	demo := exec.CommandContext(t.Context(), filepath.Join(bin, "evictrail"), "demo", "--once",
		"--listen", "127.0.0.1:0", "--data-dir", filepath.Join(home, "demo"))
	demo.Env = append(os.Environ(), "EVICTRAIL_DATABASE_URL=")
	require.Contains(t, runOf(t, demo), "evictrail why demo/vm-d")
}

// requireUnit has systemd read the unit where it was unpacked. It warns of what it does not know, and passes: then the
// test does not. A system has /bin/kill, which the unit names; the package does not bring it.
func requireUnit(t *testing.T, root string) {
	t.Helper()
	targets, err := filepath.Glob("/usr/lib/systemd/system/*.target")
	require.NoError(t, err)
	for _, target := range targets { // those that any unit needs
		text, err := os.ReadFile(target)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, "usr/lib/systemd/system", filepath.Base(target)), text, 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "bin/kill"), nil, 0o755))
	verify := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", "--root="+root,
		"evictrail.service")
	said, err := verify.CombinedOutput()
	require.NoError(t, err, "%s (hack/ensure-release-tools.sh installs systemd)", said)
	require.Empty(t, string(said))
}

// requireFlags runs the command of the unit as systemd would: it knows all flags, and asks the cluster of the
// kubeconfig.
func requireFlags(t *testing.T, root string) {
	t.Helper()
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/evictrail.service"))
	require.NoError(t, err)
	_, command, ok := strings.Cut(string(unit), "\nExecStart=")
	require.True(t, ok)
	command, _, _ = strings.Cut(command, "\n")
	credentials := t.TempDir()
	variables := map[string]string{
		"CREDENTIALS_DIRECTORY": credentials, "STATE_DIRECTORY": t.TempDir(),
	}
	words := strings.Fields(os.Expand(command, func(name string) string { return variables[name] }))
	run := exec.CommandContext(t.Context(), filepath.Join(root, words[0]), words[1:]...)
	run.Env = append(os.Environ(), "EVICTRAIL_LISTEN=127.0.0.1:0", "EVICTRAIL_CONFIG="+filepath.Join(root, "etc/evictrail/evictrail.yaml"))
	out, err := run.CombinedOutput()
	var status *exec.ExitError
	require.ErrorAs(t, err, &status)
	require.Equal(t, 1, status.ExitCode(), "2 is a flag that is not known: %s", out)
	require.Contains(t, string(out), credentials+"/kubeconfig", "it says which kubeconfig is missing")
}

// TestRPM unpacks the packages of Red Hat.
func TestRPM(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	for _, p := range r.linux(t) {
		t.Run(p.Arch, func(t *testing.T) {
			t.Parallel()
			requireRPM(t, r, p)
		})
	}
}

func requireRPM(t *testing.T, r made, p platform) {
	t.Helper()
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
	root, rpm := t.TempDir(), r.path(r.packageName(p, "rpm"))
	require.Contains(t, runTool(t, "rpm", "--checksig", "--verbose", rpm), "Payload SHA256 digest: OK")
	// rpm2cpio ends with an error after the last byte: google/rpmpack, which nfpm uses, states the size of the
	// files as that of the payload.
	const script = `rpm2cpio "$1" | cpio --extract --make-directories --no-absolute-filenames --quiet`
	unpack := exec.CommandContext(t.Context(), "bash", "-c", script, "bash", rpm)
	unpack.Dir = root
	runOf(t, unpack)
	requireInstalled(t, r, p, root, "usr/share/zsh/site-functions/_evictrail", "usr/share/licenses/evictrail/LICENSE")
	const format = "%{NAME} %{VERSION}-%{RELEASE} %{ARCH} %{LICENSE} %{BUILDHOST}\n"
	header := runTool(t, "rpm", "--query", "--package", rpm, "--queryformat", format)
	version := strings.Replace(r.version, "-", "~", 1)
	require.Equal(t, "evictrail "+version+"-1 "+arch[p.Arch]+" Apache-2.0 evictrail\n", header)
	settings := runTool(t, "rpm", "--query", "--package", rpm, "--configfiles")
	require.Equal(t, "/etc/evictrail/evictrail.yaml\n", settings)
}

// runHelm runs helm, which knows no cluster and no other folder.
func runHelm(t *testing.T, args ...string) string {
	t.Helper()
	helm, err := build.Helm().Build()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), helm, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull, "HELM_CONFIG_HOME="+cmd.Dir, "HELM_CACHE_HOME="+cmd.Dir)
	return runOf(t, cmd)
}

// TestChart pushes the chart to a registry, as a release does, and renders what the registry then has.
func TestChart(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo))))
	defer server.Close()
	host, _, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	remote := "oci://" + server.Listener.Addr().String() + "/charts"
	runHelm(t, "push", r.path("evictrail-"+r.version+".tgz"), remote, "--plain-http")
	dir := t.TempDir()
	runHelm(t, "pull", remote+"/evictrail", "--version", r.version, "--plain-http", "--destination", dir)
	pulled := filepath.Join(dir, "evictrail-"+r.version+".tgz")
	want, err := sumFile(r.path("evictrail-" + r.version + ".tgz"))
	require.NoError(t, err)
	got, err := sumFile(pulled)
	require.NoError(t, err)
	require.Equal(t, want, got)
	rendered := runHelm(t, "template", "evictrail", pulled, "--namespace", "evictrail",
		"--set", "image.repository=registry.example/evictrail",
		"--set", "database.url=postgres://evictrail@db.example:5432/evictrail",
		"--set", "database.passwordSecret.name=evictrail-database", "--set", "database.caSecret.name=evictrail-database")
	runsVersion := strings.Contains(rendered, " image: registry.example/evictrail:"+r.version+"\n")
	require.True(t, runsVersion, "pods run the image of the version")
}

// TestKrew has krew check the manifest, and install the archive as kubectl's plugin.
func TestKrew(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	validate, err := build.KrewValidator().Build()
	require.NoError(t, err)
	runTool(t, validate, "-manifest", r.path("evictrail.yaml"), "-skip-install")
	krew, err := build.Krew().Build()
	require.NoError(t, err)
	root := t.TempDir()
	install := exec.CommandContext(t.Context(), krew, "install",
		"--manifest", r.path("evictrail.yaml"), "--archive", r.archive(host))
	install.Env = append(os.Environ(), "KREW_ROOT="+root)
	runOf(t, install)
	requireRuns(t, filepath.Join(root, "bin/kubectl-evictrail"), r.version)
}
