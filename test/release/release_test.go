package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var releaseDir = flag.String("release.dir", "",
	"`folder` of a finished release to look at; by default one is made, of this machine's platform alone")

// made is a release that the tests look at.
type made struct {
	dir       string
	version   string
	platforms []platform
}

// openRelease makes a release, or opens a finished one, once for all tests.
var openRelease = sync.OnceValues(func() (made, error) {
	dir := *releaseDir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "evictrail-release-test-"); err != nil {
			return made{}, err
		}
		if err := makeRelease(context.Background(), options{out: dir, platforms: []platform{host}}, os.Stderr); err != nil {
			return made{dir: dir}, err
		}
	}
	m := made{dir: dir}
	archives, err := filepath.Glob(filepath.Join(dir, "evictrail_*.tar.gz"))
	if err != nil || len(archives) == 0 {
		return m, fmt.Errorf("no archive evictrail_*.tar.gz in %s: %w", dir, errors.Join(err, os.ErrNotExist))
	}
	for _, a := range archives {
		parts := strings.Split(strings.TrimSuffix(filepath.Base(a), ".tar.gz"), "_")
		if len(parts) != 4 {
			return m, fmt.Errorf("archive %s: expected evictrail_VERSION_SYSTEM_ARCHITECTURE.tar.gz", a)
		}
		m.version, m.platforms = parts[1], append(m.platforms, platform{parts[2], parts[3]})
	}
	return m, nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *releaseDir == "" {
		if r, _ := openRelease(); r.dir != "" {
			_ = os.RemoveAll(r.dir)
		}
	}
	os.Exit(code)
}

func needRelease(t *testing.T) made {
	t.Helper()
	r, err := openRelease()
	require.NoError(t, err)
	return r
}

func (r made) path(name string) string { return filepath.Join(r.dir, name) }

// archive returns the path of a platform's archive.
func (r made) archive(p platform) string {
	return r.path(fmt.Sprintf("evictrail_%s_%s_%s.tar.gz", r.version, p.OS, p.Arch))
}

// linux returns the platforms that have packages.
func (r made) linux(t *testing.T) []platform {
	t.Helper()
	var all []platform
	for _, p := range r.platforms {
		if p.OS == "linux" {
			all = append(all, p)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// packageName returns the file name of a package of the kind deb or rpm.
func (r made) packageName(p platform, kind string) string {
	return fmt.Sprintf("evictrail_%s_%s.%s", r.version, p.Arch, kind)
}

// read returns a file of the release.
func (r made) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(r.path(name))
	require.NoError(t, err)
	return string(text)
}

// files returns the names of all files that a release of its platforms has.
func (r made) files() []string {
	names := []string{"evictrail-" + r.version + ".tgz", "evictrail.yaml", "evictrail.rb", "release-notes.md", sumsName}
	for _, c := range consoles {
		names = append(names, pluginName(c.name, r.version))
	}
	for _, p := range r.platforms {
		base := fmt.Sprintf("evictrail_%s_%s_%s", r.version, p.OS, p.Arch)
		names = append(names, base+".tar.gz", base+".spdx.json")
		if p.OS == "linux" {
			names = append(names, r.packageName(p, "deb"), r.packageName(p, "rpm"))
		}
	}
	return names
}

// runTool runs a program and returns what it prints.
func runTool(t *testing.T, name string, args ...string) string {
	t.Helper()
	return runOf(t, exec.CommandContext(t.Context(), name, args...))
}

// runOf runs a command and returns what it prints. Where the program is missing, it says how to get it.
func runOf(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := runCommand(cmd)
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatalf("%v: run hack/ensure-release-tools.sh, which installs it", err)
	}
	require.NoError(t, err)
	return string(out)
}

// TestReleaseIsComplete looks for each file and no other, and for its checksum.
func TestReleaseIsComplete(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	entries, err := os.ReadDir(r.dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.ElementsMatch(t, r.files(), names)
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", sumsName)
	cmd.Dir = r.dir
	require.Equal(t, len(names)-1, strings.Count(runOf(t, cmd), ": OK\n"), "all but the checksums themselves")
}

// TestArchives opens the archive of each platform: its program is for the platform, and of the flags that make it the
// same everywhere.
func TestArchives(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	for _, p := range r.platforms {
		dir := t.TempDir()
		names := unpackArchive(t, r.archive(p), dir)
		require.Subset(t, names, []string{
			"evictrail", "LICENSE", "README.md", "man/evictrail-why-not.1.gz",
			"completions/evictrail.bash", "completions/_evictrail", "completions/evictrail.fish",
		})
		settings := readSettings(t, filepath.Join(dir, "evictrail"))
		for key, value := range map[string]string{
			"GOOS": p.OS, "GOARCH": p.Arch, "CGO_ENABLED": "0", "-trimpath": "true", "vcs": "",
		} {
			require.Equal(t, value, settings[key], "%s of %s", key, p)
		}
		if p == host {
			requireRuns(t, filepath.Join(dir, "evictrail"), r.version)
		}
	}
}

// TestPlugins opens the archives of plugins: each is one folder of the version, with all that its console loads.
func TestPlugins(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	for console, want := range map[string][]string{
		"headlamp": {"evictrail/LICENSE", "evictrail/main.js", "evictrail/package.json"},
		"console": {
			"evictrail-console/LICENSE", "evictrail-console/consoleplugin.yaml", "evictrail-console/dist/exposed-Tab-chunk.js",
			"evictrail-console/dist/plugin-entry.js", "evictrail-console/dist/plugin-manifest.json", "evictrail-console/kustomization.yaml",
			"evictrail-console/nginx.conf", "evictrail-console/server.yaml", "evictrail-console/settings.json",
		},
	} {
		dir := t.TempDir()
		require.Equal(t, want, unpackArchive(t, r.path(pluginName(console, r.version)), dir))
		for _, name := range []string{"evictrail/package.json", "evictrail-console/dist/plugin-manifest.json"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				require.Regexp(t, `"version": ?"`+regexp.QuoteMeta(r.version)+`"`, string(text))
			}
		}
	}
}

// unpackArchive unpacks an archive into a folder and returns the names in it. All have one time.
func unpackArchive(t *testing.T, archive, dir string) []string {
	t.Helper()
	file, err := os.Open(archive)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	zip, err := gzip.NewReader(file)
	require.NoError(t, err)
	var names []string
	times := map[string]bool{}
	for in := tar.NewReader(zip); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(header.Name), header.Name)
		to := filepath.Join(dir, header.Name)
		require.NoError(t, os.MkdirAll(path.Dir(to), 0o750))
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, text, header.FileInfo().Mode()))
		names, times[header.ModTime.String()] = append(names, header.Name), true
	}
	require.Len(t, times, 1)
	return names
}

func readBuild(t *testing.T, program string) *debug.BuildInfo {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	return info
}

func readSettings(t *testing.T, program string) map[string]string {
	t.Helper()
	settings := map[string]string{}
	for _, s := range readBuild(t, program).Settings {
		settings[s.Key] = s.Value
	}
	return settings
}

// requireRuns runs the program, which calls itself by the version.
func requireRuns(t *testing.T, program, version string) {
	t.Helper()
	out := runTool(t, program, "version")
	require.Contains(t, out, "evictrail, version "+version+" ")
	require.Contains(t, out, "platform:         "+host.String())
}

// TestManifests compares the checksums of the manifest of krew and of Homebrew's formula with the archives.
func TestManifests(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	named := regexp.MustCompile(`(?:uri:|url) "?(\S+?)"?\n\s+sha256:? "?([0-9a-f]{64})"?\n`)
	for _, name := range manifests {
		found := named.FindAllStringSubmatch(r.read(t, name), -1)
		require.Len(t, found, len(r.platforms), name)
		for _, f := range found {
			name, ok := strings.CutPrefix(f[1], downloads+"/v"+r.version+"/")
			require.True(t, ok, f[1])
			sum, err := sumFile(r.path(name))
			require.NoError(t, err)
			require.Equal(t, sum, f[2], f[1])
		}
	}
}

// TestFormula has Ruby read the formula.
func TestFormula(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	require.Equal(t, "Syntax OK\n", runTool(t, "ruby", "-wc", r.path("evictrail.rb")))
}

// TestASecondMakingThatDiffersIsNamed compares two releases with one file that is not the same.
func TestASecondMakingThatDiffersIsNamed(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{one: "a", two: "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "same"), []byte("same"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "differs"), []byte(text), 0o600))
		require.NoError(t, writeSums(dir))
	}
	require.NoError(t, compareSums(filepath.Join(one, sumsName), filepath.Join(one, sumsName)))
	err := compareSums(filepath.Join(one, sumsName), filepath.Join(two, sumsName))
	require.ErrorContains(t, err, "  differs\nof the second time")
}

func TestArgumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o600))
	for args, want := range map[string]string{
		"":                                    "-out FOLDER",
		"-out x more":                         "-out FOLDER",
		"-out x -platforms linux":             `platform "linux": expected SYSTEM/ARCHITECTURE`,
		"-platforms linux/amd64 -out " + full: "is not empty",
	} {
		require.ErrorContains(t, runRelease(t.Context(), strings.Fields(args), new(bytes.Buffer)), want, args)
	}
}
