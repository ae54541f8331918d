package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	maxSocketPath = 100             // bytes; sun_path holds 108 on Linux and 104 on macOS, with the closing zero
	initWaitDelay = 5 * time.Second // after initdb was killed, until its output is given up
)

var (
	dataPattern = regexp.MustCompile(`^pg(\d+)$`)             // the number is the major version
	initPattern = regexp.MustCompile(`^\.pg\d+\.init-(\d+)$`) // the number is the process ID of its maker
)

// directory is the parent directory, locked, as one major version of the server sees it.
type directory struct {
	parent   string // absolute, symbolic links followed
	binaries binaries
	account  account
	lock     *os.File
}

// openDirectory makes the parent directory where it is missing, and locks it. The lock is not inherited by the server,
// so it is free as soon as this process is dead.
func openDirectory(path string, b binaries) (*directory, error) {
	d := &directory{binaries: b}
	var err error
	if d.account, err = serverAccount(); err != nil {
		return nil, err
	}
	if err = d.account.checkPath(b.dir); err != nil {
		return nil, err
	}
	if d.parent, err = d.account.makeParent(path); err != nil {
		return nil, err
	}
	if d.lock, err = os.OpenFile(filepath.Join(d.parent, ".lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("lock directory: %w", err)
	}
	if err = syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		d.close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, fmt.Errorf("lock directory %s: %w", d.parent, err)
	}
	return d, nil
}

func (d *directory) close() { _ = d.lock.Close() }

func (d *directory) dataPath() string {
	return filepath.Join(d.parent, "pg"+strconv.Itoa(d.binaries.major))
}
func (d *directory) logPath() string { return d.dataPath() + ".log" }

// ensureData returns when there is a data directory that this server can run on. One that is there is only looked at.
func (d *directory) ensureData(ctx context.Context, opts Options) error {
	exists, err := d.checkData()
	if exists || err != nil {
		return err
	}
	if err := d.checkBeside(opts.Logger); err != nil {
		return err
	}
	began := time.Now()
	if err := d.initData(ctx, opts.Settings["fsync"] != "off"); err != nil {
		return err
	}
	opts.Logger.Info("data directory created", "dir", d.dataPath(), "elapsed", time.Since(began))
	return nil
}

// checkData reports whether the data directory is there, and refuses one that is not ours to run on. An empty one
// counts as missing.
func (d *directory) checkData() (exists bool, err error) {
	info, err := os.Stat(d.dataPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at data directory: %w", err)
	case !info.IsDir():
		return false, d.unusableError("not a directory", "move it away or choose another directory")
	case ownerOf(info) != d.account.uid:
		return false, d.unusableError(fmt.Sprintf("owned by uid %d, but the server runs as %s", ownerOf(info), d.account.name),
			fmt.Sprintf("start evictrail as that user, give it away with chown -R %d, or choose another directory", d.account.uid))
	}
	version, err := os.ReadFile(filepath.Join(d.dataPath(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, d.checkEmpty()
	}
	if err != nil {
		return false, fmt.Errorf("look at data directory: %w", err)
	}
	if got := strings.TrimSpace(string(version)); got != strconv.Itoa(d.binaries.major) {
		return false, d.unusableError(fmt.Sprintf("holds data of PostgreSQL %s, but the server in %s is version %d", got, d.binaries.dir, d.binaries.major),
			fmt.Sprintf("set %s to the bin directory of a version %s server, or rename it to pg%s", binEnv, got, got))
	}
	return true, nil
}

func (d *directory) checkEmpty() error {
	entries, err := os.ReadDir(d.dataPath())
	if err != nil {
		return fmt.Errorf("look at data directory: %w", err)
	}
	if len(entries) > 0 {
		return d.unusableError(fmt.Sprintf("no PG_VERSION in it, but %s", entries[0].Name()), "not a database; move it away or choose another directory")
	}
	return nil
}

func (d *directory) unusableError(found, advice string) error {
	return fmt.Errorf("use data directory %s: %s: %s", d.dataPath(), found, advice)
}

// checkBeside looks at what lies beside a data directory that is still to be made: another major version's is refused,
// a dead process's unfinished one is removed (it never had the name of a data directory).
func (d *directory) checkBeside(log *slog.Logger) error {
	entries, err := os.ReadDir(d.parent)
	if err != nil {
		return fmt.Errorf("look for other data directories: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(d.parent, entry.Name())
		if match := dataPattern.FindStringSubmatch(entry.Name()); match != nil && hasVersion(path) {
			return d.unusableError(fmt.Sprintf("missing, but there is data of PostgreSQL %s in %s", match[1], path), fmt.Sprintf(
				"set %s to the bin directory of a version %s server, upgrade with pg_upgrade, or move the old data away to start empty", binEnv, match[1]))
		}
		if match := initPattern.FindStringSubmatch(entry.Name()); match != nil && isLeftover(match[1]) {
			log.Info("removing unfinished data directory", "dir", path)
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("remove unfinished data directory: %w", err)
			}
		}
	}
	return nil
}

// hasVersion reports whether a directory is one of a server's, or may be one that is not for us to read.
func hasVersion(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "PG_VERSION"))
	return !errors.Is(err, fs.ErrNotExist)
}

// isLeftover reports whether nobody works on a temporary directory made by this process ID. Our own ID is another
// process's of the past, too (in a container it is often 1): we hold the lock and have not made ours yet.
func isLeftover(pid string) bool {
	id, err := strconv.Atoi(pid)
	return err == nil && (id == os.Getpid() || !isAlive(id))
}

// initData makes the data directory under a temporary name and renames it when it is complete. Without durable
// nothing is flushed to disk.
func (d *directory) initData(ctx context.Context, durable bool) error {
	temp := filepath.Join(d.parent, fmt.Sprintf(".pg%d.init-%d", d.binaries.major, os.Getpid()))
	if err := d.account.makeOwned(temp); err != nil {
		return err
	}
	if err := d.runInitdb(ctx, temp, durable); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	if err := os.Rename(temp, d.dataPath()); err != nil {
		return errors.Join(fmt.Errorf("name data directory: %w", err), os.RemoveAll(temp))
	}
	return syncDir(d.parent)
}

func (d *directory) runInitdb(ctx context.Context, dir string, durable bool) error {
	args := []string{"--pgdata", dir, "--username", userName, "--encoding", "UTF8", "--no-locale", "--data-checksums",
		"--auth-local", "trust", "--auth-host", "reject", "--no-instructions"}
	if !durable {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, d.binaries.path("initdb"), args...)
	d.account.applyToCommand(cmd, d.parent)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // its children, too
	cmd.WaitDelay = initWaitDelay
	runtime.LockOSThread() // for the parent-death signal, see supervise
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run initdb as %s: %w\n%s", d.account.name, errors.Join(context.Cause(ctx), err), lastLines(string(out)))
	}
	return nil
}

// syncDir makes a rename in the directory survive a crash of the machine.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Sync()
}

// makeSocketDir returns the directory of the server's socket: one that stays the same over restarts where its path is
// short enough. Elsewhere it is made where the server before had it, or again where there was none.
func (d *directory) makeSocketDir(before string) (string, error) {
	dir := filepath.Join(d.parent, "socket")
	if len(filepath.Join(dir, ".s.PGSQL."+port)) <= maxSocketPath {
		return dir, d.account.makeOwned(dir)
	}
	var err error
	if dir = before; dir != "" {
		err = os.Mkdir(dir, 0o700) // one that is there may be another user's
	} else {
		dir, err = os.MkdirTemp("", "evictrail-")
	}
	if err != nil {
		return "", fmt.Errorf("make socket directory: %w", err)
	}
	return dir, errors.Join(d.account.chownDir(dir), d.account.checkPath(dir))
}
