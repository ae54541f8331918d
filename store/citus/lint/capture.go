package lint

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/citus/citustest"
	"github.com/evictrail/evictrail/store/embedded"
)

// Server is a Postgres of a test's own, which writes each statement that it gets into its log.
type Server struct{ server *embedded.Server }

// StartServer starts a server that is gone when the test ends.
func StartServer(tb testing.TB) *Server {
	tb.Helper()
	dir, err := os.MkdirTemp("", "evictrail-citus-") // a short path, for sockets
	if err == nil {
		tb.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755) // as root the server runs as another user
	}
	if err != nil {
		tb.Fatal(err)
	}
	server, err := embedded.Start(tb.Context(), embedded.Options{Dir: dir, Settings: map[string]string{
		"fsync": "off", "full_page_writes": "off", "log_destination": "jsonlog", "logging_collector": "on", "log_parameter_max_length": "0",
		"log_rotation_age": "0", "log_rotation_size": "0", "log_statement": "all",
	}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = server.Stop(ctx)
	})
	return &Server{server}
}

// NewURL returns the URL of the database, which has the current schema and says that it has Citus.
func (s *Server) NewURL(tb testing.TB) string {
	tb.Helper()
	url := s.server.URL("evictrail") // the first one: each server is of one test
	opened, err := store.Open(tb.Context(), url, "")
	if err != nil {
		tb.Fatal(err)
	}
	defer opened.Close()
	if err := citustest.Claim(tb.Context(), url); err != nil {
		tb.Fatal(err)
	}
	if _, err := opened.Up(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return url
}

// logged matches what a server writes before a statement: by the extended protocol, with its name, or by the simple
// one.
var logged = regexp.MustCompile(`^(execute [^:]*|statement): `)

// Statements returns what the server got so far, each text once, in the order of the alphabet. A text of the simple
// protocol may be a script: it is split.
func (s *Server) Statements() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.server.DataDir(), "log", "*.json"))
	if err == nil && len(files) == 0 {
		err = errors.New("the server wrote no log of statements")
	}
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, file := range files {
		if err := readLog(file, seen); err != nil {
			return nil, err
		}
	}
	var out []string
	for sql := range seen {
		out = append(out, SplitScript(sql)...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// readLog adds the statements of one file of a log.
func readLog(file string, seen map[string]bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	decoder := json.NewDecoder(bufio.NewReader(f))
	for decoder.More() {
		var line struct {
			Message string `json:"message"`
			Level   string `json:"error_severity"`
		}
		if err := decoder.Decode(&line); err != nil {
			return err
		}
		if prefix := logged.FindString(line.Message); prefix != "" && line.Level == "LOG" {
			seen[line.Message[len(prefix):]] = true
		}
	}
	return nil
}
