package pg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/evictrail/evictrail/trail"
)

// Sentinels that callers can test for.
var (
	ErrUnavailable = errors.New("database unavailable")
	ErrSchema      = errors.New("database schema does not fit")
	// ErrDeposed says that another replica derives the cluster by now: what it wrote stays.
	ErrDeposed = errors.New("another evictrail derives this cluster by now")
)

// Explain wraps an error of pgx or Postgres with what it means to a caller and, where that helps, what to do. Nil stays nil. An error that is neither of
// Postgres, of the way to it, nor of what was to be written has no sentinel: nobody knows whether trying again helps.
func Explain(doing string, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrDeposed):
		return err
	case errors.Is(err, trail.ErrRefused), errors.Is(err, ErrUnavailable), errors.Is(err, ErrSchema):
		return fmt.Errorf("%s: %w", doing, err)
	}
	if errors.Is(err, ErrPooler) { // not ErrUnavailable: to try again does not help
		return fmt.Errorf("%s: %w", doing, err)
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		advice, sentinel := classOf(pg)
		if advice != "" {
			advice = " (" + advice + ")"
		}
		return fmt.Errorf("%s: %w%s: %w", doing, sentinel, advice, err)
	}
	switch {
	case isEncoding(err):
		return fmt.Errorf("%s: %w: %w", doing, trail.ErrRefused, err)
	case isConnection(err):
		return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, hidePassword(err))
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// How pgx says that it cannot encode an argument, before anything is sent: its error has no type.
//
// Source: github.com/jackc/pgx/v5 extended_query_builder.go, Build.
const encodeFailure = "failed to encode args["

// isEncoding reports whether what was to be written cannot be encoded, here or anywhere.
func isEncoding(err error) bool {
	var value *json.UnsupportedValueError
	var typ *json.UnsupportedTypeError
	var marshal *json.MarshalerError
	return errors.As(err, &value) || errors.As(err, &typ) || errors.As(err, &marshal) || strings.Contains(err.Error(), encodeFailure)
}

// isConnection reports whether the way to the database failed: it cannot be reached, or a connection broke.
func isConnection(err error) bool {
	var connect *pgconn.ConnectError
	var parse *pgconn.ParseConfigError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &parse) || errors.As(err, &network) || pgconn.SafeToRetry(err) {
		return true
	}
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, pgx.ErrTxClosed} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool")
}

// Codes of Postgres that several functions ask about.
const (
	codeStatementUnknown = "26000"
	codeStatementKnown   = "42P05"
)

// codeOf returns the code of an error of Postgres; empty where it is none.
func codeOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// classOf maps a code of Postgres (Appendix A of its manual) to a sentinel and advice.
func classOf(pg *pgconn.PgError) (advice string, sentinel error) {
	switch pg.Code {
	case "25006":
		return "the database is read-only: is this a standby? point --database-url to the primary", ErrUnavailable
	case "53100":
		return "the database's disk is full: free space or drop old partitions", ErrUnavailable
	case "53300":
		return "too many connections: raise max_connections or lower pool_max_conns in the URL", ErrUnavailable
	case "57014":
		return "the question took longer than 5 s: ask for less, such as one VM, one node or less time", ErrUnavailable
	case "42501":
		return "a right is missing: run the SQL of `evictrail schema roles` as the owner", ErrUnavailable
	case "42P01", "3F000", "42703":
		return "run `evictrail schema up`", ErrSchema
	case codeStatementUnknown, codeStatementKnown:
		return "is there a connection pooler in transaction mode? then " + poolerAdvice, ErrUnavailable
	case "3D000":
		return "create the database first", ErrUnavailable
	case "28P01", "28000":
		return "check the user and the password file", ErrUnavailable
	}
	switch pg.Code[:min(2, len(pg.Code))] {
	case "21", "22", "23", "44", "54": // cardinality, data, integrity, check option, program limit: what was written, whenever it is
		return "", trail.ErrRefused
	}
	return "", ErrUnavailable
}

// Brief says in a few words why the database did not do something, without what only its owner should read.
func Brief(err error) string {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return "it does not answer"
	case !errors.As(err, &pg):
		return "it cannot be reached"
	}
	switch pg.Code {
	case "25006":
		return "it is read-only. Make it writable, or point --database-url at the primary"
	case "57014":
		return "a statement timeout cancels each write. Raise statement_timeout of its user"
	case "53100":
		return "its disk is full. Free space, or drop old partitions"
	case "53300":
		return "it has too many connections"
	case "42501", "28P01", "28000":
		return "its user has no right to"
	case "42P01", "3F000", "42703", "3D000":
		return "its schema is not there"
	}
	return "it answers with an error (SQLSTATE " + pg.Code + ")"
}

// hidePassword drops what a connection string may hold from an error of the driver.
func hidePassword(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return errors.New("the database URL cannot be read")
	}
	return err
}

// isRetryable reports whether the transaction may succeed when it is simply done again: deadlock, serialization failure,
// or two writers that made the same partition.
func isRetryable(err error) bool {
	switch codeOf(err) {
	case "40001", "40P01", "42P07", "23505":
		return true
	}
	return false
}

// MayAnswerElsewhere reports whether another server of the same data may answer what failed on this one: it is away, refuses,
// cancels what its replay is in the way of, or has an older schema. A question that takes too long does so elsewhere, too.
func MayAnswerElsewhere(err error) bool {
	return (errors.Is(err, ErrUnavailable) || errors.Is(err, ErrSchema)) && codeOf(err) != "57014"
}

// IsDenied reports whether a right is missing, which may be granted any time.
func IsDenied(err error) bool {
	return codeOf(err) == "42501"
}

// IsPartitionUnneeded reports whether facts of a month have a place though its partition could not be made: another writer made it at the same moment, we may not
// make one, or the default partition holds rows of that month.
func IsPartitionUnneeded(err error) bool {
	switch codeOf(err) {
	case "42P07", "23505", "42501", "23514", "42P17":
		return true
	}
	return false
}

// MayBeOfRecord reports whether an error may lie in what was to be written or derived, and not in the database: then others may succeed.
func MayBeOfRecord(err error) bool {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, ErrDeposed), errors.Is(err, ErrSchema), errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, trail.ErrRefused), errors.Is(err, context.DeadlineExceeded), !errors.Is(err, ErrUnavailable):
		return true
	case errors.As(err, &pg):
		return !isOfServer(pg.Code)
	}
	return false
}

// isOfServer reports whether a code of Postgres says that the server, the schema, a right or another transaction is in the way, whatever is written. All others
// may come of one record: a statement that takes too long (57014), too much memory (53200), a trigger (P0001), a block that cannot be read (58030), a bug (XX000).
func isOfServer(code string) bool {
	switch code {
	case "53100", "53300", "57P01", "57P02", "57P03", "57P04", "57P05":
		return true
	}
	switch code[:min(2, len(code))] {
	case "08", "25", "28", "3D", "3F", "40", "42", "55":
		return true
	}
	return false
}

// IsBroken reports whether a connection broke: what was sent may have made the server end it.
func IsBroken(err error) bool {
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	return errors.Is(err, ErrUnavailable) && !errors.As(err, &pg) && !errors.As(err, &connect)
}

// IsLocked reports whether a lock was not got: others held it for too long, or would have waited for us.
func IsLocked(err error) bool {
	code := codeOf(err)
	return code == "55P03" || code == "40P01"
}
