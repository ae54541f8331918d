package embedded

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

var discard = slog.New(slog.DiscardHandler)

// openTemp opens a directory of ours as a server of version 15 sees it, without there being one.
func openTemp(t *testing.T) *directory {
	t.Helper()
	d, err := openDirectory(tempDir(t), binaries{dir: "/", version: "15.1", major: 15})
	require.NoError(t, err)
	t.Cleanup(d.close)
	return d
}

// writeFile makes a file and the directories above it; all belong to the server's user.
func (d *directory) writeFile(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(d.parent, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, d.account.chownDir(filepath.Dir(path)))
}

// listTree is every path below a directory with its mode, time and size.
func listTree(t *testing.T, dir string) (lines []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		lines = append(lines, fmt.Sprint(path, info.Mode(), info.ModTime(), info.Size()))
		return err
	}))
	return lines
}

func TestForeignDataIsRefusedAndUntouched(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		setup func(*testing.T, *directory)
		want  string
	}{
		{"other version under our name", func(t *testing.T, d *directory) { t.Helper(); d.writeFile(t, "pg15/PG_VERSION", "13\n") }, "holds data of PostgreSQL 13"},
		{"no database", func(t *testing.T, d *directory) { t.Helper(); d.writeFile(t, "pg15/letter.txt", "dear") }, "no PG_VERSION in it, but letter.txt"},
		{"a file", func(t *testing.T, d *directory) { t.Helper(); d.writeFile(t, "pg15", "dear") }, "not a directory"},
		{"older version beside", func(t *testing.T, d *directory) { t.Helper(); d.writeFile(t, "pg14/PG_VERSION", "14\n") }, "there is data of PostgreSQL 14"},
		{"newer version beside", func(t *testing.T, d *directory) { t.Helper(); d.writeFile(t, "pg16/PG_VERSION", "16\n") }, "there is data of PostgreSQL 16"},
		{"another user's", func(t *testing.T, d *directory) {
			t.Helper()
			d.writeFile(t, "pg15/PG_VERSION", "15\n")
			d.account.uid++
		}, "owned by uid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := openTemp(t)
			tt.setup(t, d)
			before := listTree(t, d.parent)
			err := d.ensureData(t.Context(), Options{Logger: discard})
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, d.dataPath())
			require.Equal(t, before, listTree(t, d.parent))
		})
	}
}

func TestOlderDataBesideOursIsNoMatter(t *testing.T) {
	t.Parallel()
	d := openTemp(t)
	d.writeFile(t, "pg14/PG_VERSION", "14\n")
	d.writeFile(t, "pg15/PG_VERSION", "15\n")
	require.NoError(t, d.ensureData(t.Context(), Options{Logger: discard}))
}

func TestOnlyLeftoversOfTheDeadAreRemoved(t *testing.T) {
	t.Parallel()
	d := openTemp(t)
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	d.writeFile(t, fmt.Sprintf(".pg15.init-%d/PG_VERSION", dead.Process.Pid), "15\n")
	d.writeFile(t, fmt.Sprintf(".pg15.init-%d/PG_VERSION", os.Getpid()), "15\n")
	d.writeFile(t, fmt.Sprintf(".pg15.init-%d/PG_VERSION", os.Getppid()), "15\n")
	require.NoError(t, d.checkBeside(discard))
	left, err := filepath.Glob(filepath.Join(d.parent, ".pg15.init-*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(d.parent, fmt.Sprintf(".pg15.init-%d", os.Getppid()))}, left)
}

func TestStaleLockFileOfServer(t *testing.T) {
	t.Parallel()
	d := openTemp(t)
	path := filepath.Join(d.dataPath(), "postmaster.pid")

	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	d.writeFile(t, "pg15/postmaster.pid", strconv.Itoa(dead.Process.Pid)+"\n")
	require.NoError(t, d.awaitPredecessor(t.Context(), discard, 0))
	require.FileExists(t, path, "the server sees for itself that the process is dead")

	d.writeFile(t, "pg15/postmaster.pid", strconv.Itoa(os.Getpid())+"\n")
	require.NoError(t, d.awaitPredecessor(t.Context(), discard, 0))
	require.NoFileExists(t, path, "the process is alive, but no server")
}

func TestClosedDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	stranger := account{name: "stranger", uid: 4242, gid: 4242, switched: true}
	open := tempDir(t)
	require.NoError(t, stranger.checkPath(open))
	closed := filepath.Join(open, "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(closed, "below"), 0o755))
	err := stranger.checkPath(filepath.Join(closed, "below"))
	require.ErrorContains(t, err, closed+": closed to user stranger")

	_, err = stranger.makeParent(filepath.Join(closed, "new"))
	require.ErrorContains(t, err, closed+": closed to user stranger")
	require.NoDirExists(t, filepath.Join(closed, "new"))
}

func TestForeignSocketDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	d := openTemp(t)
	d.writeFile(t, "socket/.s.PGSQL.5432", "")
	dir, err := d.makeSocketDir("")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err = d.makeSocketDir("")
	require.ErrorContains(t, err, "must be a directory of "+d.account.name+" with mode 0700")
}

func TestLongLogIsPutAside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pg15.log")
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o600))
	log, size, err := openLog(path)
	require.NoError(t, err)
	require.EqualValues(t, 4, size)
	_, err = log.WriteString("one\ntwo\n")
	require.NoError(t, err)
	require.Equal(t, "one\ntwo", readLogTail(path, size))
	require.NoError(t, log.Truncate(maxLogSize+1))
	require.NoError(t, log.Close())

	log, size, err = openLog(path)
	require.NoError(t, err)
	require.NoError(t, log.Close())
	require.Zero(t, size)
	require.FileExists(t, path+".1")
}
