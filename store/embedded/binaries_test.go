package embedded

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// installFake makes a directory that looks like a server of this version. Tests that use it do not run in parallel: a
// fork elsewhere would hold the new script open for writing, and Linux then refuses to run it.
func installFake(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
	for _, name := range []string{"initdb", "postgres"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

func newPlace(name string, dirs ...string) place {
	return place{name: name, dirs: func(context.Context) []string { return dirs }}
}

func TestFindServer(t *testing.T) {
	v14, v15, v16, v18 := installFake(t, "14.9"), installFake(t, "15.18 (Debian 15.18-0+deb12u1)"), installFake(t, "16.2"), installFake(t, "18beta1")

	found, err := findServer(t.Context(), []place{newPlace("none"), newPlace("old", v14), newPlace("side by side", v15, v16, v14), newPlace("newest", v18)})
	require.NoError(t, err)
	require.Equal(t, binaries{dir: v16, version: "16.2", major: 16}, found, "the newest of the first place that has one")

	found, err = findServer(t.Context(), []place{newPlace("beta", v18)})
	require.NoError(t, err)
	require.Equal(t, binaries{dir: v18, version: "18beta1", major: 18}, found)
}

func TestNoServer(t *testing.T) {
	v14 := installFake(t, "14.9")
	incomplete := installFake(t, "15.1")
	require.NoError(t, os.Remove(filepath.Join(incomplete, "initdb")))

	_, err := findServer(t.Context(), []place{newPlace("pg_config --bindir", incomplete), newPlace("$PATH"), newPlace("packages", v14)})
	require.ErrorIs(t, err, ErrNoServer)
	for _, want := range []string{
		filepath.Join(incomplete, "initdb"), "$PATH (nothing)", v14 + ": version 14.9: must be 15 or newer",
		"apt-get install postgresql-15", "dnf install postgresql-server", "brew install postgresql@16", "--database-url",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestNamedServerIsTheOnlyPlace(t *testing.T) {
	t.Setenv(binEnv, t.TempDir())
	dir := filepath.Join(t.TempDir(), "never made")
	_, err := Start(t.Context(), Options{Dir: dir})
	require.ErrorIs(t, err, ErrNoServer)
	require.ErrorContains(t, err, "$"+binEnv)
	require.NoDirExists(t, dir)
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "/data")
	t.Setenv("HOME", "/home/ada")
	want := []string{"/data/evictrail", "/home/ada/.local/share/evictrail"}
	if os.Geteuid() == 0 {
		want = []string{"/var/lib/evictrail", "/var/lib/evictrail"}
	}
	require.Equal(t, want[0], DefaultDir())
	t.Setenv("XDG_DATA_HOME", "not/absolute")
	require.Equal(t, want[1], DefaultDir())
}
