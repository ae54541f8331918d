package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/embedded"
)

// databaseFlags say where the database is.
type databaseFlags struct {
	url          string
	passwordFile string
	insecure     bool
	dataDir      string
}

func (d *databaseFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.url, "database-url", os.Getenv("EVICTRAIL_DATABASE_URL"),
		"PostgreSQL `URL`, without a password (env EVICTRAIL_DATABASE_URL)")
	cmd.Flags().Lookup("database-url").DefValue = "" // help does not tell what the environment has
	cmd.Flags().StringVar(&d.passwordFile, "database-password-file", "", "`file` whose first line is the password; a pgpass file works too. Read again for each connection")
	cmd.Flags().BoolVar(&d.insecure, "database-insecure", false, "also use a database on another host without sslmode=verify-full: who is between could read and change all")
}

func (d *databaseFlags) addEmbedded(cmd *cobra.Command, part string) {
	d.dataDir = filepath.Join(embedded.DefaultDir(), part)
	cmd.Flags().StringVar(&d.dataDir, "data-dir", d.dataDir, "`directory` of the embedded Postgres, used without --database-url")
}

// open opens the database that the flags name.
func (d *databaseFlags) open(ctx context.Context) (*store.Store, error) {
	if d.url == "" {
		return nil, usagef("no database: give --database-url or set EVICTRAIL_DATABASE_URL; `evictrail run` and `demo` print theirs when they start")
	}
	if hasPassword(d.url) {
		return nil, usagef("database-url holds a password, which who lists processes can read: put it into a file, and name that with --database-password-file")
	}
	if err := store.CheckLink(d.url); err != nil && !d.insecure {
		return nil, usagef("%w; or say --database-insecure", err)
	}
	return store.Open(ctx, d.url, d.passwordFile)
}

// passwordIn finds a password in a keyword string.
var passwordIn = regexp.MustCompile(`(?i)(^|\s)password\s*=`)

// hasPassword tells whether a URL, or a keyword string, holds a password.
func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return passwordIn.MatchString(text)
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// database is an open store, and the embedded server below it where there is one.
type database struct {
	*store.Store
	url    string
	server *embedded.Server // nil with a database of one's own
}

// openOrEmbed opens the database that the flags name, or starts an embedded Postgres and opens that.
func (d *databaseFlags) openOrEmbed(ctx context.Context, log *slog.Logger) (*database, error) {
	if d.url != "" {
		s, err := d.open(ctx)
		return &database{Store: s, url: d.url}, err
	}
	server, err := embedded.Start(ctx, embedded.Options{Dir: d.dataDir, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("start embedded Postgres (or give --database-url): %w", err)
	}
	url := server.URL("evictrail")
	s, err := store.Open(ctx, url, "")
	if err != nil {
		_ = server.Stop(context.WithoutCancel(ctx))
		return nil, err
	}
	return &database{Store: s, url: url, server: server}, nil
}

// await opens the database like openOrEmbed, but waits for one that is away: a service starts before its database.
func (d *databaseFlags) await(ctx context.Context, log *slog.Logger) (*database, error) {
	return await(ctx, log, "database is away, trying again",
		func() (*database, error) { return d.openOrEmbed(ctx, log) },
		func(err error) bool { return d.url != "" && errors.Is(err, store.ErrUnavailable) })
}

// close gives back the connections and stops the embedded server.
func (d *database) close(ctx context.Context) error {
	d.Close()
	if d.server == nil {
		return nil
	}
	return d.server.Stop(context.WithoutCancel(ctx))
}

// gone is closed when the embedded server ended by itself; never without one.
func (d *database) gone() <-chan struct{} {
	if d.server == nil {
		return nil
	}
	return d.server.Done()
}

// prepare brings the schema up to date and says what it did.
func prepare(ctx context.Context, s *store.Store, log *slog.Logger) error {
	applied, err := s.Up(ctx)
	if err != nil {
		return err
	}
	if len(applied) > 0 {
		log.Info("schema migrated", "count", len(applied))
	}
	return nil
}
