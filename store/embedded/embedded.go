package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Errors that a caller of Start can test for. Nothing was changed on disk when ErrNoServer comes back, and nothing but
// the parent directory and its lock file was made when ErrInUse does.
var (
	ErrNoServer = errors.New("no PostgreSQL server found")
	ErrInUse    = errors.New("in use by another evictrail")
)

const (
	databaseName = "evictrail" // created by Start
	userName     = "evictrail" // the superuser that initdb makes
	port         = "5432"      // only names the socket file, nothing listens on TCP

	defaultStartTimeout = 30 * time.Second
	retryInterval       = 20 * time.Millisecond
	survivorPoll        = 100 * time.Millisecond
	// immediateTimeout is longer than the 5 s after which the postmaster itself kills children that ignore SIGQUIT.
	immediateTimeout = 10 * time.Second
)

// errSurvivors is why a server does not start: backends outlived its predecessor, which was killed. They see that and
// end within moments. The text is all by which the server lets us recognize it.
//
// Source: postgres src/backend/port/sysv_shmem.c and src/backend/utils/init/miscinit.c.
var errSurvivors = errors.New("backends of a killed server remain")

const survivorsText = "pre-existing shared memory block"

// Options say where a server keeps its data and how it runs.
type Options struct {
	Dir          string            // parent directory, made when missing; the data is in Dir/pg<major>; must be set
	Logger       *slog.Logger      // nil logs nothing
	Settings     map[string]string // over our defaults; where it listens cannot be set; fsync=off speeds up initdb, too
	StartTimeout time.Duration     // from the fork to the first answer, 0 is 30 s; initdb is bounded by the context alone

	socketDir string // that of the server before, whose URL is to stay; empty: any
}

// Server is a running PostgreSQL server, or one that has ended. It is safe for concurrent use.
type Server struct {
	dir       *directory
	binaries  binaries
	socketDir string
	log       *os.File
	logStart  int64 // the size of the log when this server started, in bytes
	cmd       *exec.Cmd
	stopping  atomic.Bool
	done      chan struct{}
	err       error // written before done is closed
}

// Start runs a server on opts.Dir and returns when it answers and the database "evictrail" exists. The context bounds
// the start only: the server runs until Stop, or until this process ends. After an error no server runs and the
// directory is unlocked; a data directory that was made stays.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Dir == "" {
		return nil, errors.New("start server: directory is empty: must be set")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.StartTimeout == 0 {
		opts.StartTimeout = defaultStartTimeout
	}
	found, err := findServer(ctx, searchPlaces())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	s, err := tryStart(ctx, opts, found)
	for errors.Is(err, errSurvivors) && ctx.Err() == nil && time.Since(began) < opts.StartTimeout {
		time.Sleep(survivorPoll)
		s, err = tryStart(ctx, opts, found)
	}
	if err != nil {
		return nil, err
	}
	opts.Logger.Info("embedded server started",
		"version", s.Version(), "pid", s.PID(), "dir", s.DataDir(), "elapsed", time.Since(began))
	return s, nil
}

// tryStart is one attempt. It locks the directory, which is unlocked after an error, and else when the server ends.
func tryStart(ctx context.Context, opts Options, found binaries) (*Server, error) {
	dir, err := openDirectory(opts.Dir, found)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, binaries: found, done: make(chan struct{})}
	if err := s.prepareStart(ctx, opts); err != nil {
		s.releaseResources()
		return nil, err
	}
	started := make(chan error)
	go s.superviseProcess(started)
	if err := <-started; err != nil {
		<-s.done
		return nil, fmt.Errorf("start server %s as %s: %w", s.cmd.Path, dir.account.name, err)
	}
	startCtx, cancel := context.WithTimeout(ctx, opts.StartTimeout)
	defer cancel()
	if err := s.awaitReady(startCtx); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), immediateTimeout)
		defer cancel()
		return nil, errors.Join(err, s.Stop(stopCtx))
	}
	return s, nil
}

// prepareStart makes everything that the server needs before it can be forked.
func (s *Server) prepareStart(ctx context.Context, opts Options) (err error) {
	if err = s.dir.ensureData(ctx, opts); err != nil {
		return err
	}
	if err = s.dir.awaitPredecessor(ctx, opts.Logger, predecessorGrace); err != nil {
		return err
	}
	if s.socketDir, err = s.dir.makeSocketDir(opts.socketDir); err != nil {
		return err
	}
	if s.log, s.logStart, err = openLog(s.dir.logPath()); err != nil {
		return err
	}
	s.cmd = exec.Command(s.binaries.path("postgres"), s.buildArguments(opts.Settings)...)
	s.dir.account.applyToCommand(s.cmd, s.dir.parent)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	return nil
}

// buildArguments are the server's command line. Settings win over our defaults, and where the server listens wins over
// both: the URL and the closed directory around the socket depend on it.
func (s *Server) buildArguments(settings map[string]string) []string {
	all := map[string]string{
		"cluster_name":    "evictrail",
		"log_checkpoints": "off",
		"log_line_prefix": "%m [%p] ",
		"log_timezone":    "UTC",
		"max_connections": "50",
		"shared_buffers":  "64MB",
		"timezone":        "UTC",
	}
	maps.Copy(all, settings)
	maps.Copy(all, map[string]string{
		"listen_addresses":        "",
		"port":                    port,
		"unix_socket_directories": `"` + strings.ReplaceAll(s.socketDir, `"`, `""`) + `"`, // a list: commas need quotes
		"unix_socket_permissions": "0700",
	})
	args := []string{"-D", s.dir.dataPath()}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "-c", name+"="+all[name])
	}
	return args
}

// superviseProcess forks the server, owns it until it has ended and then releases everything. It keeps its thread all that
// time: the kernel sends the parent-death signal at the end of the thread that forked, not of the process, and a thread
// that is released may be ended by anyone who locks it next.
func (s *Server) superviseProcess(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.done)
	defer s.releaseResources()
	err := s.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	if err = s.cmd.Wait(); !s.stopping.Load() {
		s.err = s.endedByItself(err)
	}
}

func (s *Server) endedByItself(err error) error {
	if err == nil {
		err = errors.New("exit status 0")
	}
	end := readLogTail(s.log.Name(), s.logStart)
	if strings.Contains(end, survivorsText) {
		err = errSurvivors
	}
	return fmt.Errorf("server on %s ended by itself: %w; the end of %s:\n%s", s.dir.dataPath(), err, s.log.Name(), end)
}

// releaseResources releases what prepare acquired. The lock goes last.
func (s *Server) releaseResources() {
	if s.log != nil {
		_ = s.log.Close()
	}
	if s.socketDir != "" && filepath.Dir(s.socketDir) != s.dir.parent {
		_ = os.RemoveAll(s.socketDir)
	}
	s.dir.close()
}

// awaitReady returns when the server answers and the database exists, or when the server or the context ended.
func (s *Server) awaitReady(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
			return ensureDatabase(ctx, conn)
		}
		select {
		case <-s.done:
			return s.err
		case <-ctx.Done():
			return fmt.Errorf("wait for server on %s: %w: %w; the end of %s:\n%s",
				s.dir.dataPath(), context.Cause(ctx), err, s.log.Name(), readLogTail(s.log.Name(), s.logStart))
		case <-time.After(retryInterval):
		}
	}
}

const selectDatabase = `
SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`

func ensureDatabase(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	if err := conn.QueryRow(ctx, selectDatabase, databaseName).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", databaseName, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+databaseName); err != nil {
		return fmt.Errorf("create database %s: %w", databaseName, err)
	}
	return nil
}

// Find returns which server Start would run, and the URL of a database of the one that runs on the directory already; empty where none does.
// It changes nothing. The error is that there is no server to run.
func Find(ctx context.Context, dir, database string) (version, url string, err error) {
	found, err := findServer(ctx, searchPlaces())
	if err != nil {
		return "", "", err
	}
	d := &directory{parent: dir, binaries: found}
	text, err := os.ReadFile(filepath.Join(d.dataPath(), "postmaster.pid"))
	if err != nil {
		return found.version, "", nil //nolint:nilerr // nothing runs there, or nothing that is ours
	}
	lines := strings.Split(string(text), "\n")
	const pid, socket = 0, 4 // the lines of that file, in the order of src/include/utils/pidfile.h of Postgres
	if n, bad := strconv.Atoi(lines[pid]); bad != nil || !isAlive(n) || len(lines) <= socket {
		return found.version, "", nil //nolint:nilerr // a file that is left over
	}
	return found.version, (&Server{socketDir: lines[socket]}).URL(database), nil
}

// URL is how pgx and psql reach a database of this server. It holds no password; the directory of the socket admits
// the server's user and root alone.
func (s *Server) URL(database string) string {
	query := url.Values{"host": {s.socketDir}, "port": {port}, "sslmode": {"disable"}}
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(userName),
		Path:     "/" + database,
		RawQuery: strings.ReplaceAll(query.Encode(), "+", "%20"), // libpq does not read a plus as a space
	}
	return u.String()
}

// Version is the server's own, such as 15.18 or 18beta1.
func (s *Server) Version() string { return s.binaries.version }

// DataDir is the server's data directory: absolute, symbolic links followed.
func (s *Server) DataDir() string { return s.dir.dataPath() }

// PID is the process ID of the postmaster. It is never reused while Done is open.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Done is closed when the server has ended and the directory is unlocked.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is nil while the server runs and after it ended because of Stop. Else it says how the server ended, with the
// last lines of its log.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop ends the server and returns when it has ended: open transactions are rolled back, a checkpoint is written. When
// the context ends first, the server is ended at once and recovers at its next start; nothing committed is lost, and
// the error wraps the context's. A server that has ended already is no error, nor is a second Stop.
func (s *Server) Stop(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	default:
	}
	s.stopping.Store(true)
	if err := s.sendSignal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("stop server on %s: ended at once: %w", s.dir.dataPath(), context.Cause(ctx)), s.stopNow())
	}
}

// stopNow ends the server without a checkpoint, and kills it when even that takes too long.
func (s *Server) stopNow() error {
	if err := s.sendSignal(syscall.SIGQUIT); err != nil {
		return err
	}
	select {
	case <-s.done:
		return nil
	case <-time.After(immediateTimeout):
	}
	err := s.sendSignal(syscall.SIGKILL)
	<-s.done
	return err
}

func (s *Server) sendSignal(sig os.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal server process %d: %w", s.PID(), err)
	}
	return nil
}

// DefaultDir is where evictrail keeps its data: /var/lib/evictrail for root, else $XDG_DATA_HOME/evictrail or
// ~/.local/share/evictrail. It is never empty: a user without a home gets the directory of root, which Start then
// refuses by name.
func DefaultDir() string {
	const system = "/var/lib/evictrail"
	if os.Geteuid() == 0 {
		return system
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "evictrail")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return system
	}
	return filepath.Join(home, ".local", "share", "evictrail")
}
