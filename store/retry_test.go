package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestARetriedTransactionIsReported has transactions end in a deadlock and a serialization failure, and then in deadlocks for ever: each time that one is
// done again is reported, and the error of the last is the caller's.
func TestARetriedTransactionIsReported(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var codes []string
	s.DB.Retried = func(err error) {
		var state *pgconn.PgError
		require.ErrorAs(t, err, &state)
		codes = append(codes, state.Code)
	}
	_, err := s.DB.Exec(t.Context(), `
		CREATE SEQUENCE tried;
		CREATE FUNCTION deadlock() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				CASE nextval('tried')
					WHEN 1 THEN RAISE deadlock_detected;
					WHEN 2 THEN RAISE serialization_failure;
					ELSE IF (SELECT count(*) FROM evictrail.events) > 0 THEN RAISE deadlock_detected; END IF;
				END CASE;
				RETURN NULL;
			END $$;
		CREATE TRIGGER deadlock BEFORE INSERT ON evictrail.events EXECUTE FUNCTION deadlock()`)
	require.NoError(t, err)
	facts := storetest.Incident("c1", 2)
	_, err = s.For("c1", "r1").Append(t.Context(), facts[:5])
	require.NoError(t, err)
	require.Equal(t, []string{"40P01", "40001"}, codes)
	require.Equal(t, 5, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events"))

	codes = nil
	_, err = s.For("c1", "r1").Append(t.Context(), facts[5:10])
	require.Error(t, err)
	require.Len(t, codes, 9)
	require.Equal(t, 5, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events"))
}
