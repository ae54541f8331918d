package main

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/client"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/store/standby"
	"github.com/evictrail/evictrail/trail"
)

// reader is asked for what makes one answer.
type reader = api.Reader

// source is where answers come from: a database, or an evictrail that serves.
type source struct {
	Close   func()
	readers api.Readers
	written reader // of what was written last: a primary, where there are two servers
	acknowledger
}

// answer has one answer made, once more where the server that was asked first could not: what it writes before it returns
// without an error is to be thrown away then.
func (s *source) answer(ctx context.Context, of func(context.Context, reader) error) error {
	return s.readers(ctx, trail.Everything(), of)
}

// answerOne is source.answer for an answer that is a value.
func answerOne[A any](ctx context.Context, s *source, of func(context.Context, reader) (A, error)) (a A, err error) {
	err = s.answer(ctx, func(ctx context.Context, r reader) (err error) {
		a, err = of(ctx, r)
		return err
	})
	return a, err
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
	r.database.addReadFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.server.URL, "server", "", "`URL` of an evictrail that serves, to ask instead of a database")
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

// listNames returns the names that a query asks for.
func (s *source) listNames(ctx context.Context, q trail.NameQuery) ([]string, error) {
	return answerOne(ctx, s, func(ctx context.Context, r reader) ([]string, error) { return r.Names(ctx, q) })
}

// openSource opens what the flags name. A flag is stronger than the environment; there the database is.
func (r *readerFlags) openSource(ctx context.Context) (*source, error) {
	server, database := r.changed("server"), r.changed("database-url") || r.changed("database-read-url")
	if server && database {
		return nil, usageErrorf("server and database-url both say whom to ask: give one of them")
	}
	if server || !database && r.database.url == "" && r.server.URL != "" {
		r.server.Missing = r.noteMissing()
		c, err := client.New(r.server)
		if err != nil {
			return nil, usageErrorf("%w", err)
		}
		return &source{Close: c.Close, readers: api.ForAll(c), written: c, acknowledger: c}, nil
	}
	if r.database.url == "" {
		return nil, usageErrorf("no database or server configured: give --database-url or set EVICTRAIL_DATABASE_URL (`evictrail run` and `demo` print theirs when they start), or --server or EVICTRAIL_SERVER")
	}
	return r.database.openSource(ctx)
}

// openSource opens the database that the flags name. One that has a standby need not answer: the standby may.
func (d *databaseFlags) openSource(ctx context.Context) (*source, error) {
	if err := errors.Join(d.checkFlags(), d.checkReadFlags()); err != nil {
		return nil, err
	}
	open := store.Open
	if d.readURL != "" {
		open = store.OpenLater
	}
	s, err := open(ctx, d.url, d.passwordFile)
	if err != nil {
		return nil, err
	}
	reads, err := d.openReads(ctx, s, standby.Options{})
	if err != nil {
		s.Close()
		return nil, err
	}
	return &source{
		Close: func() { reads.Close(); s.Close() }, written: answers.Reader{Reader: s.Reader},
		acknowledger: awaitedAcknowledger{s.AcknowledgerOf(trail.Everything()), reads},
		readers: func(ctx context.Context, of trail.Scope, answer func(context.Context, reader) error) error {
			reads.Check(ctx)
			return callersOf{reads}.answerPrograms(ctx, of, answer)
		},
	}, nil
}
