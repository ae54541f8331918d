package tables_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/store/tables"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestDerivedColumns compares the columns that are written and compared with those that the tables have.
func TestDerivedColumns(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, of := range tables.Derived {
		table, columns := of.Name, of.Columns
		rows, err := s.DB.Query(t.Context(), `
SELECT column_name::text
FROM information_schema.columns
WHERE table_schema = 'evictrail'
  AND table_name = $1
  AND column_name <> 'changed_at'`, table)
		require.NoError(t, err)
		want, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.ElementsMatch(t, want, columns, table)
	}
}
