package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// link is the way to a database: its URL, and the files that a password, a client certificate and the CA of the server come from. They
// are read again for each connection, so that new ones count without a restart; connections live connectionLives at most.
type link struct {
	url, passwordFile string
	accept            func(context.Context, *pgconn.PgConn) error // of a server that was reached; nil: any

	mu   sync.Mutex
	last *pgxpool.Config // as it was read last
}

// connectionLives bounds how long a connection goes on with credentials that were replaced, where the URL does not.
const connectionLives = 15 * time.Minute

// poolDefault is how long connections live where nothing is said. Source: pgxpool, defaultMaxConnLifetime.
const poolDefault = time.Hour

// newPoolConfig makes the configuration of a pool.
func (l *link) newPoolConfig() (*pgxpool.Config, error) {
	config, err := l.readConfig()
	if err != nil {
		return nil, err
	}
	l.last = config
	pool := config.Copy()
	if pool.MaxConnLifetime == poolDefault {
		pool.MaxConnLifetime = connectionLives
	}
	pool.BeforeConnect, pool.AfterConnect = l.refreshConnConfig, readJSONFast
	if l.accept != nil {
		pool.ConnConfig.ValidateConnect = l.validateServer(pool.ConnConfig.ValidateConnect)
	}
	return pool, nil
}

// validateServer returns what a server has to pass that was reached: what the URL says (target_session_attrs), and accept.
// Of several hosts the next one is tried then.
func (l *link) validateServer(before pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		return l.accept(ctx, conn)
	}
}

// readConfig reads the URL and the files.
func (l *link) readConfig() (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(l.url)
	if err != nil {
		return nil, fmt.Errorf("open database: %w: expected postgres://user@host:port/database, and files that can be read", hidePassword(err))
	}
	if err := checkMode(config.ConnConfig.DefaultQueryExecMode); err != nil {
		return nil, err
	}
	if err := readPassword(config, l.passwordFile); err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.ConnConfig.RuntimeParams["application_name"] = "evictrail"
	return config, nil
}

// refreshConnConfig returns a connection that is to be made what the files say now. While they cannot be read, as while they are being replaced, what
// was read before holds.
func (l *link) refreshConnConfig(_ context.Context, c *pgx.ConnConfig) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if config, err := l.readConfig(); err == nil {
		l.last = config
	}
	fresh := l.last.ConnConfig.Copy()
	c.Password, c.TLSConfig, c.Fallbacks = fresh.Password, fresh.TLSConfig, fresh.Fallbacks
	return nil
}

// readPassword sets the password from the first line of a file, where one is named.
func readPassword(config *pgxpool.Config, file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read database password: %w", err)
	}
	config.ConnConfig.Password, _, _ = strings.Cut(strings.TrimRight(string(text), "\r\n"), "\n")
	return nil
}

// ErrInsecure says that others could read or change what is sent to a database on its way.
var ErrInsecure = errors.New("the way to the database is not secure")

// CheckLink returns an error that is ErrInsecure where a database is on another host and it is not made sure, by its certificate and its
// name, that it is the right one.
func CheckLink(url string) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil //nolint:nilerr // Open says what is wrong with it
	}
	ways := []*pgconn.FallbackConfig{{Host: config.ConnConfig.Host, TLSConfig: config.ConnConfig.TLSConfig}}
	for _, way := range append(ways, config.ConnConfig.Fallbacks...) {
		if !isLocalHost(way.Host) && (way.TLSConfig == nil || way.TLSConfig.InsecureSkipVerify) {
			return fmt.Errorf("%w: anybody between here and %s could be it: add sslmode=verify-full to the URL and, where the system does not know its CA, sslrootcert=FILE", ErrInsecure, way.Host)
		}
	}
	return nil
}

// isLocalHost reports whether a host is this machine: a socket's directory, or loopback.
func isLocalHost(host string) bool {
	ip := net.ParseIP(host)
	return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" || ip != nil && ip.IsLoopback()
}
