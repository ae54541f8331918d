package played_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// copied is when a migration copied.
type copied struct {
	Namespace, VMI, UID string
	From, To            time.Time
}

// TestTransfersFromPrometheus serves what virt-handler would have reported of the migrations of a recording, as it names it before v1.7, through a real
// Prometheus: what each copied is in its row, and of those that lasted less than a scrape that it is not known.
func TestTransfersFromPrometheus(t *testing.T) {
	t.Parallel()
	const name = "c-node-drain"
	played := func(arguments ...string) *pgx.Conn {
		url := storetest.NewURL(t)
		runProgram(t, "evictrail", append([]string{"play", filepath.Join(root, "testdata/recordings", name), "--database-url", url}, arguments...)...)
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		return conn
	}
	rows, err := played().Query(t.Context(), "SELECT namespace, vmi, migration_uid, running_at, finished_at FROM evictrail_v1.migrations WHERE running_at IS NOT NULL AND finished_at IS NOT NULL")
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[copied])
	require.NoError(t, err)
	require.NotEmpty(t, all)
	text, data := filepath.Join(t.TempDir(), "virt-handler.om"), t.TempDir()
	writeTransfers(t, all, text)
	runProgram(t, "promtool", "tsdb", "create-blocks-from", "openmetrics", text, data)
	s := startPrometheus(t, data, "global: {}\n")
	conn := played("--prometheus-url", s.url)
	known := 0
	for i, m := range all {
		var processed, remaining, dirty, rate *int64
		var lack *string
		require.NoError(t, conn.QueryRow(t.Context(), `
SELECT data_processed, data_remaining, dirty_memory_rate, memory_transfer_rate, transfer_lack
FROM evictrail_v1.migrations
WHERE migration_uid = $1`, m.UID).Scan(&processed, &remaining, &dirty, &rate, &lack))
		if processed == nil {
			require.Equal(t, "no_sample", *lack, "%s lasted %s", m.VMI, m.To.Sub(m.From))
			continue
		}
		known++
		require.Equal(t, []int64{int64(i+1) << 30, int64(i) << 20, 50 << 20, 90 << 20}, []int64{*processed, *remaining, *dirty, *rate}, m.VMI)
		require.Nil(t, lack)
	}
	require.Positive(t, known)
	t.Logf("what %d of %d migrations copied is known", known, len(all))
	var why string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*)::text FROM evictrail_v1.weekly_move_costs WHERE data_processed > 0").Scan(&why))
	require.NotEqual(t, "0", why)
}

// writeTransfers writes what virt-handler reports of migrations, scraped every second: the same in each scrape, so that it does not matter which is read.
func writeTransfers(t *testing.T, all []copied, file string) {
	t.Helper()
	var out bytes.Buffer
	for _, metric := range []struct {
		name  string
		value func(i int) int64
	}{
		{"data_processed_bytes", func(i int) int64 { return int64(i+1) << 30 }},
		{"data_remaining_bytes", func(i int) int64 { return int64(i) << 20 }},
		{"dirty_memory_rate_bytes", func(int) int64 { return 50 << 20 }},
		{"disk_transfer_rate_bytes", func(int) int64 { return 90 << 20 }},
	} {
		_, _ = fmt.Fprintf(&out, "# TYPE kubevirt_vmi_migration_%s gauge\n", metric.name)
		for i, m := range all {
			for at := m.From; !at.After(m.To); at = at.Add(time.Second) {
				_, _ = fmt.Fprintf(&out, "kubevirt_vmi_migration_%s{namespace=\"kubevirt\",exported_namespace=%q,name=%q,node=\"n\"} %d %d\n",
					metric.name, m.Namespace, m.VMI, metric.value(i), at.Unix())
			}
			_, _ = fmt.Fprintf(&out, "kubevirt_vmi_migration_%s{namespace=\"kubevirt\",exported_namespace=%q,name=%q,node=\"n\"} NaN %d\n", metric.name, m.Namespace, m.VMI, m.To.Unix()+1)
		}
	}
	out.WriteString("# EOF\n")
	require.NoError(t, os.WriteFile(file, out.Bytes(), fs.FileMode(0o600)))
}
