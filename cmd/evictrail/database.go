package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/embedded"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/standby"
)

// databaseFlags say where the database is.
type databaseFlags struct {
	url          string
	passwordFile string
	insecure     bool
	dataDir      string
	readURL      string        // of a standby that answers; empty: the primary does
	readMaxLag   time.Duration // that it may have, where the primary answers, too
}

func (d *databaseFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.url, "database-url", "",
		"PostgreSQL `URL`, without a password")
	cmd.Flags().StringVar(&d.passwordFile, "database-password-file", "",
		"`file` whose first line is the password; a pgpass file works too. Read again for each connection")
	cmd.Flags().BoolVar(&d.insecure, "database-insecure", false,
		"also use a database on another host without sslmode=verify-full: a man in the middle could read and change everything")
}

// addReadFlags adds the flags of what answers callers.
func (d *databaseFlags) addReadFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.readURL, "database-read-url", "",
		"PostgreSQL `URL` of a standby of the database, which then answers what is asked")
	cmd.Flags().DurationVar(&d.readMaxLag, "database-read-max-lag", 30*time.Second,
		"how far behind the standby may be; beyond that, or while it is away, the primary answers")
}

func (d *databaseFlags) addEmbedded(cmd *cobra.Command, part string) {
	d.dataDir = filepath.Join(embedded.DefaultDir(), part)
	cmd.Flags().StringVar(&d.dataDir, "data-dir", d.dataDir, "`directory` of the embedded Postgres, used without --database-url")
}

// openStore opens the database that the flags name.
func (d *databaseFlags) openStore(ctx context.Context) (*store.Store, error) {
	if err := d.checkFlags(); err != nil {
		return nil, err
	}
	return store.Open(ctx, d.url, d.passwordFile)
}

// checkFlags says what is wrong with the flags alone.
func (d *databaseFlags) checkFlags() error {
	if d.url == "" {
		return usageErrorf("no database: give --database-url or set EVICTRAIL_DATABASE_URL; `evictrail run` and `demo` print theirs when they start")
	}
	if err := d.checkURL("database-url", d.url); err != nil || d.readURL == "" {
		return err
	}
	return d.checkURL("database-read-url", d.readURL)
}

// checkURL says what is wrong with the URL that a flag has.
func (d *databaseFlags) checkURL(flag, url string) error {
	if hasPassword(url) {
		return usageErrorf("%s holds a password, which who lists processes can read: put it into a file, and name that with --database-password-file", flag)
	}
	if err := pg.CheckLink(url); err != nil && !d.insecure {
		return usageErrorf("%s: %w; or say --database-insecure", flag, err)
	}
	return nil
}

// checkReadFlags says what is wrong with the flags of what answers callers.
func (d *databaseFlags) checkReadFlags() error {
	switch {
	case d.readURL == "":
	case d.readMaxLag < time.Second:
		return usageErrorf("database-read-max-lag %s: at least 1s, as the standby is looked at every second", d.readMaxLag)
	case d.url == "":
		return usageErrorf("database-read-url needs --database-url: a standby has a primary, which answers where the standby cannot")
	}
	return nil
}

// openReads returns what answers callers from a database that is open: its standby where the flags name one. None of them need answer yet.
func (d *databaseFlags) openReads(ctx context.Context, s *store.Store, o standby.Options) (*standby.Servers, error) {
	o.Primary, o.PrimaryDB, o.URL, o.PasswordFile, o.MaxLag = s.Whole, s.DB, d.readURL, d.passwordFile, d.readMaxLag
	return standby.Open(ctx, o)
}

// passwordIn finds a password in a keyword string.
var passwordIn = regexp.MustCompile(`(?i)(^|\s)password\s*=`)

// hasPassword reports whether a URL, or a keyword string, holds a password.
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
	reads  *standby.Servers // that answer callers; nil where nobody asks
	server *embedded.Keeper // nil with a database of one's own
	ready  chan struct{}    // closed when it has answered and its schema fits
}

// openOrEmbed opens the database that the flags name, or starts an embedded Postgres and opens that.
func (d *databaseFlags) openOrEmbed(ctx context.Context, log *slog.Logger) (*database, error) {
	if d.url != "" {
		s, err := d.openStore(ctx)
		return &database{Store: s, url: d.url}, err
	}
	return d.startEmbedded(ctx, log)
}

// openOrEmbedLater is openOrEmbed for a service that starts without its database, too: one that the flags name need not answer yet.
func (d *databaseFlags) openOrEmbedLater(ctx context.Context, log *slog.Logger) (db *database, err error) {
	if d.url == "" {
		db, err = d.startEmbedded(ctx, log)
	} else if err = d.checkFlags(); err == nil {
		db = &database{url: d.url}
		db.Store, err = store.OpenLater(ctx, d.url, d.passwordFile)
	}
	if err != nil {
		return nil, err
	}
	db.ready = make(chan struct{})
	return db, nil
}

// startEmbedded starts an embedded Postgres, which is started again where it ends by itself, and opens it.
func (d *databaseFlags) startEmbedded(ctx context.Context, log *slog.Logger) (*database, error) {
	server, err := embedded.Keep(ctx, embedded.Options{Dir: d.dataDir, Logger: log})
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

// answersWithin bounds how long a start waits for the database to answer.
const answersWithin = 5 * time.Second

// prepareIfAvailable brings the schema up to date where the database answers now, and reports whether it did. One that is away is no error.
func (d *database) prepareIfAvailable(ctx context.Context, log *slog.Logger) (bool, error) {
	asking, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	err := d.DB.Ping(asking)
	if err == nil {
		err = prepareDatabase(ctx, d.Store, log)
	}
	switch {
	case err == nil:
		d.setReady(ctx, log)
		return true, nil
	case ctx.Err() == nil && (errors.Is(err, pg.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)):
		log.Warn("database is away: what is seen waits in the spool until it is there", "err", err)
		return false, nil
	}
	return false, err
}

// waitUntilReady waits for the database where it was away at the start, and brings its schema up to date.
func (d *database) waitUntilReady(ctx context.Context, log *slog.Logger) error {
	if d.isReady() {
		return nil
	}
	_, err := retryUntilAvailable(ctx, log, "database is still away, trying again",
		func() (struct{}, error) { return struct{}{}, prepareDatabase(ctx, d.Store, log) },
		func(err error) bool { return errors.Is(err, pg.ErrUnavailable) })
	if err == nil {
		log.Info("database answers, what waits is stored")
		d.setReady(ctx, log)
	}
	return err
}

// setReady makes the partitions that facts need from now on, and then closes ready. Gauges are read after that: in the last days of a month a database
// without the partition of the next one would raise EvictrailPartitionRunway.
func (d *database) setReady(ctx context.Context, log *slog.Logger) {
	ensureMonths(ctx, d.Store, log)
	close(d.ready)
}

// isReady reports whether the database has answered and its schema fits.
func (d *database) isReady() bool {
	select {
	case <-d.ready:
		return true
	default:
		return false
	}
}

// close closes the connections and stops the embedded server.
func (d *database) close(ctx context.Context) error {
	d.Close()
	if d.server == nil {
		return nil
	}
	return d.server.Stop(context.WithoutCancel(ctx))
}

// prepareDatabase makes sure that our statements last in the database, brings its schema up to date, and says what it did.
func prepareDatabase(ctx context.Context, s *store.Store, log *slog.Logger) error {
	if _, err := s.DB.CheckPooler(ctx); err != nil {
		return err
	}
	applied, err := s.Up(ctx)
	if err != nil {
		return err
	}
	if len(applied) > 0 {
		log.Info("schema migrated", "count", len(applied))
		return nil
	}
	status, err := s.Schema(ctx)
	if err == nil && status.Newer() {
		log.Warn("the database has the schema of a newer evictrail, which does: finish the upgrade, or the way back", "version", status.Version, "expected", status.Expected)
	}
	return err
}
