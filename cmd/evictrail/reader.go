package main

import (
	"context"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/client"
)

// reader answers: a database, or an evictrail that serves.
type reader interface {
	api.Reader
	Close()
}

// readerFlags say who is asked.
type readerFlags struct {
	database databaseFlags
	server   client.Options
	changed  func(flag string) bool // whether the command line has the flag
	notes    func() io.Writer       // where it is written whose part is missing in what a hub answers; nil: nowhere
}

func (r *readerFlags) addFlags(cmd *cobra.Command) {
	r.database.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.server.URL, "server", os.Getenv("EVICTRAIL_SERVER"), "`URL` of an evictrail that serves, to ask instead of a database (env EVICTRAIL_SERVER)")
	f.StringVar(&r.server.CAFile, "server-ca-file", "", "`file` with the CA of the server's certificate (PEM), where the system does not know it")
	f.StringVar(&r.server.TokenFile, "server-token-file", "", "`file` whose first line is a bearer token for the server")
	r.changed, r.notes = f.Changed, cmd.ErrOrStderr
}

// noteMissing returns what writes a note about the sources whose part is missing in an answer, once each.
func (r *readerFlags) noteMissing() func(text string) {
	if r.notes == nil {
		return nil
	}
	var mu sync.Mutex
	said := map[string]bool{}
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if !said[text] {
			said[text] = true
			printTextf(r.notes(), "evictrail: %s What is shown is incomplete.\n", text)
		}
	}
}

// missingIn returns what the last answer of a reader says of the sources whose part is missing in it; empty: nothing is.
func missingIn(s reader) string {
	if c, is := s.(*client.Client); is {
		return c.Missing()
	}
	return ""
}

// openReader opens what the flags name. A flag is stronger than the environment; there the database is.
func (r *readerFlags) openReader(ctx context.Context) (reader, error) {
	server, database := r.changed("server"), r.changed("database-url")
	if server && database {
		return nil, usageErrorf("server and database-url both say whom to ask: give one of them")
	}
	if server || !database && r.database.url == "" && r.server.URL != "" {
		r.server.Missing = r.noteMissing()
		c, err := client.New(r.server)
		if err != nil {
			return nil, usageErrorf("%w", err)
		}
		return c, nil
	}
	if r.database.url == "" {
		return nil, usageErrorf("no database or server configured: give --database-url or set EVICTRAIL_DATABASE_URL (`evictrail run` and `demo` print theirs when they start), or --server or EVICTRAIL_SERVER")
	}
	s, err := r.database.openStore(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}
