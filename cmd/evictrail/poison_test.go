package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/spool"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// poisonEvent is a Kubernetes Event as anybody may create it who has the role edit in a namespace.
func poisonEvent(uid, vmi, version, last string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"poison-%s","namespace":"demo","uid":%q,"resourceVersion":%q},
"involvedObject":{"kind":"VirtualMachineInstance","namespace":"demo","name":%q},"reason":"FailedMigration","message":"poison","type":"Warning","count":1,
"lastTimestamp":%q}`, uid, uid, version, vmi, last))
}

// poisonedCluster is a cluster that stands still in a recording, before its first migration; when it goes on, Events slip in, and then the rest happens.
func poisonedCluster(t *testing.T, name string, events func(vmi string) []json.RawMessage) (kubeconfig string, further func()) {
	t.Helper()
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	at := slices.IndexFunc(rec.Lines, func(l recording.Line) bool {
		return l.Resource == "virtualmachineinstancemigrations" && l.Kind == recording.KindAdded
	})
	require.Positive(t, at, "a migration begins in the recording")
	var about struct {
		Spec struct{ VMIName string } `json:"spec"`
	}
	require.NoError(t, json.Unmarshal(rec.Lines[at].Object, &about))
	var lines []recording.Line
	for i, object := range events(about.Spec.VMIName) {
		lines = append(lines, recording.Line{
			Number: rec.Lines[at].Number, At: rec.Lines[at].At, Resource: "events", Kind: recording.KindAdded, Object: object,
			Key: "demo/poison-" + strconv.Itoa(i), ResourceVersion: rec.Lines[at].ResourceVersion,
		})
	}
	rec.Lines = slices.Insert(rec.Lines, at, lines...)
	server := recording.NewServer(rec, recording.ServerOptions{})
	for i := range at {
		server.Release(i)
	}
	cluster := httptest.NewServer(server)
	t.Cleanup(cluster.Close)
	return writeKubeconfig(t, cluster.URL), func() {
		for i := at; i < len(rec.Lines); i++ {
			server.Release(i)
		}
	}
}

// withoutEvents leaves out the facts of Kubernetes Events that were slipped in.
func withoutEvents(all []map[string]any) (rest []map[string]any, slipped int) {
	for _, row := range all {
		if uid, _ := row["object_uid"].(string); strings.HasPrefix(uid, "poison") {
			slipped++
			continue
		}
		rest = append(rest, row)
	}
	return rest, slipped
}

// TestAnEventOfTheYear0StopsNothing is defect D1: one Event, which anybody with the role edit may create, stopped all recording for ever.
func TestAnEventOfTheYear0StopsNothing(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const name = "e-user-migrations"
	times := []string{"0000-01-01T00:00:00Z", "0001-01-01T00:00:01Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "2015-12-31T23:59:59Z"}
	calm, url := storetest.NewURL(t), storetest.NewURL(t)
	record := func(url string, events func(vmi string) []json.RawMessage) (runningService, []string) {
		kubeconfig, further := poisonedCluster(t, name, events)
		args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", t.TempDir()}
		s := startRun(t, args, nil)
		require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/metrics"), "\nevictrail_leader 1\n") }, 2*time.Minute, 50*time.Millisecond)
		further()
		return s, args
	}
	undisturbed, _ := record(calm, func(string) []json.RawMessage { return nil })
	s, args := record(url, func(vmi string) (events []json.RawMessage) {
		for i, at := range times {
			events = append(events, poisonEvent("poison"+strconv.Itoa(i), vmi, "1", at))
		}
		return events
	})
	require.Eventually(t, func() bool {
		got, slipped := withoutEvents(queryRecordedEvents(t, url))
		return slipped == len(times) && len(got) > 20 && reflect.DeepEqual(queryRecordedEvents(t, calm), got)
	}, 20*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/metrics"), "\nevictrail_spool_facts 0\n") }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, "ok\n", s.getBody(t, "/readyz"))
	require.Equal(t, exitFound, undisturbed.stop())
	require.Equal(t, exitFound, s.stop())
	want := queryRecordedEvents(t, calm)
	got, slipped := withoutEvents(queryRecordedEvents(t, url))
	require.Equal(t, len(times), slipped)
	require.Equal(t, want, got)
	for _, row := range queryRows[map[string]any](t, url, "SELECT clock, evidence, observed_at - occurred_at < interval '1 minute' AS near FROM evictrail.events WHERE object_uid LIKE 'poison%'") {
		require.Equal(t, "observer", row["clock"])
		require.Contains(t, row["evidence"], "implausible time")
		require.Equal(t, true, row["near"], "it has the time when it was seen")
	}
	_, found, _ := runCommand(t, append([]string{"doctor"}, args[1:]...)...)
	require.Contains(t, found, "ok    spool")
	require.Contains(t, found, "ok    default partition")
}

// TestASpoolPoisonedByAnOlderVersion: what lies in the spool since before times were corrected is stored, and so is what lies behind it.
func TestASpoolPoisonedByAnOlderVersion(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	dir, url := t.TempDir(), storetest.NewURL(t)
	s, err := spool.Open(spool.Options{Dir: dir, Cluster: "c1", Size: 1 << 30, Log: slog.New(slog.DiscardHandler), Clock: nowUTC})
	require.NoError(t, err)
	tr := tracker.New("c1")
	facts := tr.Observe(tracker.KubeEventObservation{
		Seen: tracker.Seen{At: nowUTC()}, Meta: tracker.Meta{UID: "poison", Namespace: "demo", Name: "e", ResourceVersion: "1"}, Reason: "FailedMigration", Count: 1, LastAt: nowUTC(),
		About: tracker.Involved{Kind: "VirtualMachineInstance", Namespace: "demo", Name: "db-1"},
	})
	require.Len(t, facts, 1)
	facts[0].OccurredAt, facts[0].Clock, facts[0].Evidence = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), trail.ClockEmitter, "Event FailedMigration"
	require.NoError(t, s.Append(t.Context(), facts))
	require.NoError(t, s.Close())

	kubeconfig, _ := clusterAt(t, "e-user-migrations", countAllLines)
	service := startRun(t, []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", dir}, nil)
	require.Eventually(t, func() bool {
		_, slipped := withoutEvents(queryRecordedEvents(t, url))
		return slipped == 1 && strings.Contains(service.getBody(t, "/metrics"), "\nevictrail_spool_facts 0\n")
	}, 20*time.Second, 50*time.Millisecond)
	require.Equal(t, exitFound, service.stop())
	calm := storetest.NewURL(t)
	calmConfig, _ := clusterAt(t, "e-user-migrations", countAllLines)
	require.Equal(t, exitFound, startRun(t, []string{"run", "--kubeconfig", calmConfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", calm, "--spool-dir", t.TempDir()}, nil).stop())
	got, _ := withoutEvents(queryRecordedEvents(t, url))
	require.Equal(t, queryRecordedEvents(t, calm), got)
}

// TestWhatIsRefusedIsSetAsideAndReplayed refuses facts by a CHECK of the database: the others are stored, doctor and metrics say so, and once the CHECK is gone
// the facts are replayed.
func TestWhatIsRefusedIsSetAsideAndReplayed(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const name = "k-blocked-slot"
	url, dir := storetest.NewURL(t), t.TempDir()
	execSQL(t, url, "ALTER TABLE evictrail.events ADD CONSTRAINT no_cordons CHECK (kind <> 'migration_seen')")
	kubeconfig, _ := clusterAt(t, name, countAllLines)
	args := []string{"run", "--kubeconfig", kubeconfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", url, "--spool-dir", dir}
	s := startRun(t, args, nil)
	var letters []spool.DeadLetter
	require.Eventually(t, func() bool {
		var err error
		letters, _, err = spool.DeadLetters(dir, "c1")
		return err == nil && len(letters) > 0 && strings.Contains(s.getBody(t, "/metrics"), fmt.Sprintf("\nevictrail_dead_letters %d\n", len(letters)))
	}, 20*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool { // more may have been refused since
		var err error
		letters, _, err = spool.DeadLetters(dir, "c1")
		gaps := readPublicViews(t, url)["gaps"]
		return err == nil && len(gaps) == 1 && strings.Contains(gaps[0], fmt.Sprintf("%d facts refused: %d migration_seen", len(letters), len(letters)))
	}, 20*time.Second, 50*time.Millisecond)
	_, found, _ := runCommand(t, append([]string{"doctor"}, args[1:]...)...)
	require.Regexp(t, fmt.Sprintf(`warn  refused facts .*: %d facts were refused and set aside.*no_cordons.*evictrail spool replay`, len(letters)), found)
	code, out, _ := runCommand(t, "spool", "refused", "--spool-dir", dir)
	require.Equal(t, exitFound, code)
	require.Equal(t, len(letters)+1, strings.Count(out, "\n"))
	require.Contains(t, out, "no_cordons")

	code, _, stderr := runCommand(t, "spool", "replay", "--spool-dir", dir, "--database-url", url)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "is refused again")
	execSQL(t, url, "ALTER TABLE evictrail.events DROP CONSTRAINT no_cordons")
	code, out, stderr = runCommand(t, "spool", "replay", "--spool-dir", dir, "--database-url", url)
	require.Equal(t, exitFound, code, stderr)
	require.Equal(t, fmt.Sprintf("%d facts stored, 0 refused again\n", len(letters)), out)
	require.Eventually(t, func() bool { return strings.Contains(s.getBody(t, "/metrics"), "\nevictrail_dead_letters 0\n") }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, exitFound, s.stop())
	code, _, _ = runCommand(t, "spool", "refused", "--spool-dir", dir)
	require.Equal(t, exitNotFound, code)

	calm := storetest.NewURL(t)
	calmConfig, _ := clusterAt(t, name, countAllLines)
	require.Equal(t, exitFound, startRun(t, []string{"run", "--kubeconfig", calmConfig, "--cluster", "c1", "--listen", "127.0.0.1:0", "--database-url", calm, "--spool-dir", t.TempDir()}, nil).stop())
	require.Equal(t, queryRecordedEvents(t, calm), queryRecordedEvents(t, url))
}

// lockEvents holds up all writes of facts until its session is ended.
func lockEvents(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), "BEGIN; LOCK TABLE evictrail.events IN SHARE MODE")
	require.NoError(t, err)
}

// TestWhatFailsAloneIsSetAside has a trigger fail one fact, each time with an error that says nothing of the fact. While the database takes nothing at all, nothing
// is set aside; once it takes writes, all others are stored, that one is set aside, and without the trigger it is replayed.
func TestWhatFailsAloneIsSetAside(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	const name = "k-blocked-slot"
	calm := storetest.NewURL(t)
	calmConfig, _ := clusterAt(t, name, countAllLines)
	require.Equal(t, exitFound, startRun(t, recorderArgs(calmConfig, calm), nil).stop())
	want := queryRecordedEvents(t, calm)
	victim := queryRows[map[string]any](t, calm, "SELECT id::text, kind FROM evictrail.events WHERE object_kind = 'VirtualMachineInstanceMigration' ORDER BY occurred_at, id LIMIT 1")[0]
	attempts := regexp.MustCompile(`\nevictrail_store_errors_total{op="append",sqlstate_class="\w+"} ([4-9]|\d\d+)\n`)

	const readOnly, tooSlow = "default_transaction_read_only = on", "statement_timeout = '1s'" // the second with a lock on what is written
	for code, spoiled := range map[string]string{
		"57014": readOnly, // a statement that takes too long
		"53200": tooSlow,  // too little memory
		"58030": readOnly, // a block that cannot be read
		"P0001": tooSlow,  // whatever a trigger says
		"XX000": readOnly, // an error of the server's own
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			url, dir := storetest.NewURL(t), t.TempDir()
			database := nameOfDatabase(t, url)
			admin := strings.Replace(url, database, "postgres", 1)
			alter := func(how string) {
				execSQL(t, admin, "ALTER DATABASE "+database+" "+how)
				execSQL(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+database+"'")
			}
			execSQL(t, url, fmt.Sprintf(`
CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''%s'', MESSAGE = ''fails each time''; END';
CREATE TRIGGER fails BEFORE INSERT ON evictrail.events FOR EACH ROW WHEN (NEW.id = '%s') EXECUTE FUNCTION public.fail()`, code, victim["id"]))
			alter("SET " + spoiled)
			if spoiled == tooSlow {
				lockEvents(t, url) // until all sessions are ended by the next alter
			}
			kubeconfig, _ := clusterAt(t, name, countAllLines)
			s := startAnyhow(t, recorderArgs(kubeconfig, url, "--spool-dir", dir))
			require.Eventually(t, func() bool { return attempts.MatchString(s.getBody(t, "/metrics")) }, 2*time.Minute, 100*time.Millisecond)
			letters, _, err := spool.DeadLetters(dir, "c1")
			require.NoError(t, err)
			require.Empty(t, letters, "while the database takes nothing")

			alter("RESET ALL")
			require.Eventually(t, func() bool {
				letters, _, err = spool.DeadLetters(dir, "c1")
				return err == nil && len(letters) > 0 && strings.Contains(s.getBody(t, "/metrics"), "\nevictrail_spool_facts 0\n")
			}, 90*time.Second, 100*time.Millisecond)
			require.Len(t, letters, 1)
			require.Equal(t, victim["kind"], string(letters[0].Kind))
			require.Contains(t, letters[0].Reason, code)
			require.Len(t, queryRecordedEvents(t, url), len(want)-1, "all others are stored")
			require.Eventually(t, func() bool {
				return strings.Contains(strings.Join(readPublicViews(t, url)["gaps"], ""), "1 fact refused: 1 "+string(letters[0].Kind))
			}, 20*time.Second, 100*time.Millisecond)

			execSQL(t, url, "DROP TRIGGER fails ON evictrail.events")
			exit, _, stderr := runCommand(t, "spool", "replay", "--spool-dir", dir, "--database-url", url)
			require.Equal(t, exitFound, exit, stderr)
			require.Equal(t, exitFound, s.stop())
			require.Equal(t, want, queryRecordedEvents(t, url))
		})
	}
}
