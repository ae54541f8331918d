package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

func TestDays(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"90d": 90 * day, "0": 0, "0d": 0, "36h": 36 * time.Hour, "1.5d": 36 * time.Hour} {
		var d days
		require.NoError(t, d.Set(text), text)
		require.Equal(t, want, time.Duration(d), text)
	}
	for _, text := range []string{"", "90", "-1d", "-1h", "d", "ninety", "1e9d"} {
		var d days
		require.ErrorContains(t, d.Set(text), "such as 90d", text)
	}
	d := days(36 * time.Hour)
	require.Equal(t, "1.5d", d.String())
}

func TestRetentionThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"keep-facts 3d, keep-rows 400d, keep-requesters 0: facts for 3d: must be 7d or longer": {"--keep-facts", "3d"},
		"must be kept as long or longer":                                        {"--keep-rows", "30d"},
		"and must be kept as long or shorter":                                   {"--keep-requesters", "91d"},
		"as long as those are kept for ever, so are they":                       {"--keep-facts", "0"},
		`invalid argument "90" for "--keep-facts" flag: expected days, such as`: {"--keep-facts", "90"},
	} {
		code, _, stderr := runCommand(t, append([]string{"run", "--listen", "127.0.0.1:0"}, args...)...)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, want)
	}
}

// oldFacts stores facts of a node in each of some months, one a day, the last of them some days ago.
func oldFacts(t *testing.T, s *store.Store, months int) {
	t.Helper()
	tr := tracker.New("c1")
	var facts []trail.Fact
	for i, at := 0, nowUTC().AddDate(0, -months, 0); at.Before(nowUTC()); i, at = i+1, at.AddDate(0, 0, 1) {
		facts = append(facts, tr.Observe(tracker.NodeObservation{
			Meta: tracker.Meta{UID: "n", Name: "n1", ResourceVersion: strconv.Itoa(i + 1)}, Seen: tracker.Seen{At: at}, Unschedulable: i%2 == 0,
		})...)
	}
	_, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
}

// TestAuditImportOfDroppedMonths imports an old audit log: it says how much of it is from a time whose facts were dropped.
func TestAuditImportOfDroppedMonths(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	url := storetest.NewURL(t)
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	defer s.Close()
	oldFacts(t, s, 6)
	event := func(id string, days int) string {
		at := nowUTC().AddDate(0, 0, -days).Format(time.RFC3339Nano)
		return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":%q,"stage":"ResponseComplete","verb":"create","user":{"username":"alice"},`+
			`"objectRef":{"resource":"pods","namespace":"shop","name":"virt-launcher-db-x","subresource":"eviction"},"responseStatus":{"code":429},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`,
			id, at, at)
	}
	file := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(file, []byte(event("old", 150)+"\n"+event("older", 160)+"\n"+event("young", 2)), 0o600))
	code, out, stderr := runCommand(t, "audit", "import", file, "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "3 lines: 3 taken")
	require.NotContains(t, stderr, "were dropped")

	_, err = retention.Retain(t.Context(), s.DB, retention.Policy{Facts: 90 * 24 * time.Hour}, nowUTC())
	require.NoError(t, err)
	code, out, stderr = runCommand(t, "audit", "import", file, "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "3 lines: 2 taken, 1 known already")
	require.Contains(t, stderr, "of these, 2 from before "+nowUTC().AddDate(0, 0, -90).Format("2006-01")+"-01, of which facts were dropped: kept, and the rows about that time stay as they are")
}

func TestWhatIsOldIsDroppedByTheLeader(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	s := storetest.New(t)
	oldFacts(t, s, 6)
	var log bytes.Buffer
	m := metrics.New(prometheus.NewRegistry())
	k := &keeper{
		store: s, cluster: "c1", metrics: m, log: slog.New(slog.NewTextHandler(&log, nil)),
		retained: func() *retention.Policy {
			return &retention.Policy{Facts: 90 * 24 * time.Hour, Rows: 100 * 24 * time.Hour}
		},
	}
	k.dropExpired(t.Context(), nowUTC())
	text := log.String()
	require.GreaterOrEqual(t, strings.Count(text, "facts of a month dropped"), 2)
	require.Equal(t, 1, strings.Count(text, "derived rows dropped"))
	require.Greater(t, testutil.ToFloat64(m.Dropped.WithLabelValues(metrics.DroppedFacts)), 50.0)
	require.Positive(t, testutil.ToFloat64(m.Dropped.WithLabelValues(metrics.DroppedRows)))
	require.Equal(t, 1, testutil.CollectAndCount(m.RetentionLast))
	k.dropExpired(t.Context(), nowUTC())
	require.Equal(t, text, log.String(), "there is nothing more to say")
}

func TestSchemaStatus(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := storetest.NewURL(t)
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	oldFacts(t, s, 6)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "ANALYZE")
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	_, err = retention.Retain(t.Context(), s.DB, retention.Policy{Facts: 90 * 24 * time.Hour}, nowUTC())
	require.NoError(t, err)
	code, out, stderr := runCommand(t, "schema", "status", "--database-url", url, "--capacity", "50GiB", "-o", "json")
	require.Equal(t, exitFound, code, stderr)
	var status schemaStatus
	require.NoError(t, json.Unmarshal([]byte(out), &status))
	require.Equal(t, status.Expected, status.Version)
	require.Nil(t, status.Partitions[0].From)
	require.Equal(t, "events_kept", status.Partitions[0].Partition)
	require.Equal(t, *status.FactsFrom, status.Partitions[0].To)
	next := status.Partitions[1]
	require.Equal(t, *status.FactsFrom, *next.From)
	require.Equal(t, nextDropStatus{next.Partition, next.To.AddDate(0, 0, 90), next.Facts, next.Bytes}, *status.NextDrop)
	require.Positive(t, status.NextDrop.Facts)
	require.InDelta(t, 1, status.FactsADay, 0.5)
	require.Positive(t, status.FactBytes)
	require.Positive(t, status.BytesADay)
	require.Zero(t, status.DefaultFacts)
	require.Greater(t, status.DatabaseBytes, status.Classes[0].Bytes)
	require.EqualValues(t, 50<<30, *status.CapacityBytes)
	require.Less(t, *status.SettlesAtBytes, *status.CapacityBytes)
	require.Nil(t, status.DaysLeft, "it is enough for ever")
	_, out, _ = runCommand(t, "schema", "status", "--database-url", url, "--capacity", "50GiB")
	for _, want := range []string{"PARTITION", "(what was kept)", "events_default", "derived", "dropped next:", "for ever at the current rate: 50 GiB are enough"} {
		require.Contains(t, out, want)
	}
	code, out, _ = runCommand(t, "schema", "status", "--database-url", url, "--keep-facts", "0", "--keep-rows", "0", "--capacity", "1GiB")
	require.Equal(t, exitFound, code)
	require.Contains(t, out, "grows without end")
	require.Regexp(t, `days left: +\d[\d.e+]* at the current rate`, out)
	_, out, _ = runCommand(t, "schema", "status", "--database-url", url)
	require.Contains(t, out, "say how much room there is with --capacity")
}
