package pg_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code string
		is   error
		says string
	}{
		{"25006", pg.ErrUnavailable, "is this a standby?"},
		{"53100", pg.ErrUnavailable, "disk is full"},
		{"53300", pg.ErrUnavailable, "too many connections"},
		{"42501", pg.ErrUnavailable, "evictrail schema roles"},
		{"42P01", pg.ErrSchema, "evictrail schema up"},
		{"57P01", pg.ErrUnavailable, ""},
		{"21000", trail.ErrRefused, ""},
		{"22P05", trail.ErrRefused, ""},
		{"23514", trail.ErrRefused, ""},
		{"54000", trail.ErrRefused, ""},  // index row size exceeds maximum
		{"0A000", pg.ErrUnavailable, ""}, // cached plan must not change result type: it is planned again
	} {
		err := pg.Explain("append facts", &pgconn.PgError{Code: c.code, Message: "as Postgres says it"})
		require.ErrorIs(t, err, c.is, c.code)
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, "as Postgres says it")
	}
	require.NoError(t, pg.Explain("x", nil))
	for _, broken := range []error{syscall.EPIPE, io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, pgconn.ErrConnClosed, pgx.ErrTxClosed} {
		require.ErrorIs(t, pg.Explain("x", fmt.Errorf("receive: %w", broken)), pg.ErrUnavailable, broken)
	}
	unknown := pg.Explain("x", errors.New("cannot scan a number into a text"))
	require.NotErrorIs(t, unknown, pg.ErrUnavailable, "nobody knows whether trying again helps")
	require.NotErrorIs(t, unknown, trail.ErrRefused)
}

// TestWhatCannotBeEncodedIsRefused: it fails before anything is sent, whatever becomes of the database.
func TestWhatCannotBeEncodedIsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	year := time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC)
	for name, do := range map[string]func() error{
		"a time in JSON": func() error {
			_, err := s.DB.Exec(t.Context(), "SELECT $1::jsonb", map[string]time.Time{"a": year})
			return err
		},
		"a time in the JSON of a batch": func() error {
			var batch pgx.Batch
			batch.Queue("SELECT 1")
			batch.Queue("SELECT $1::jsonb", map[string]time.Time{"a": year})
			return s.DB.SendBatch(t.Context(), &batch).Close()
		},
		"a number":         func() error { _, err := s.DB.Exec(t.Context(), "SELECT $1::int4", 1<<40); return err },
		"no number (JSON)": func() error { _, err := json.Marshal(math.NaN()); return err },
	} {
		err := pg.Explain(name, do())
		require.ErrorIs(t, err, trail.ErrRefused, name)
		require.NotErrorIs(t, err, pg.ErrUnavailable, name)
	}
}
