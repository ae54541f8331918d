package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestASubjectThatCannotBeDerivedStopsNothing has one of several VMs fail, in each way in which one can, while facts are stored by a leader, by a follower, and by
// hand. All facts are stored, the others are derived, one failure is reported; once the cause is gone, everything is as if it had never been. The short form
// has each writer meet one way.
func TestASubjectThatCannotBeDerivedStopsNothing(t *testing.T) {
	t.Parallel()
	for i, c := range []struct{ name, bad, breaks, fixes, reason string }{
		{"a panic", "buggy", "", "", "panic: a bug"},
		{
			"a row that is refused", "db-1",
			"ALTER TABLE evictrail.placements ADD CONSTRAINT no_db_1 CHECK (vmi <> 'db-1')", "ALTER TABLE evictrail.placements DROP CONSTRAINT no_db_1", "no_db_1",
		},
		{
			"a statement that takes too long", "db-1", `
CREATE FUNCTION public.linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(10); RETURN NEW; END';
CREATE TRIGGER lingers BEFORE INSERT ON evictrail.placements FOR EACH ROW WHEN (NEW.vmi = 'db-1') EXECUTE FUNCTION public.linger()`,
			"DROP TRIGGER lingers ON evictrail.placements", "statement timeout",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for j, how := range []string{"by hand", "leader", "follower"} {
				if testing.Short() && i != j {
					continue
				}
				t.Run(how, func(t *testing.T) {
					url := storetest.NewURL(t) + "&options=-c%20statement_timeout%3D1s"
					s, err := store.Open(t.Context(), url, "")
					require.NoError(t, err)
					t.Cleanup(s.Close)
					var reported []store.DeriveFailure
					s.Underived = func(f store.DeriveFailure) { reported = append(reported, f) }
					facts := storetest.Incident("c1", 4)
					if c.bad == "buggy" {
						store.BugFixed.Store(false)
						facts = renameVM(facts, "db-1", "buggy")
					}
					run := func(sql string) {
						_, err := s.DB.Exec(t.Context(), sql)
						require.NoError(t, err)
					}
					run(c.breaks)
					leader := s.For("c1", "r1")
					if how != "by hand" {
						require.NoError(t, leader.Lead(t.Context(), "this", trail.DefaultThresholds()))
					}
					for some := range slices.Chunk(facts, 15) {
						switch how {
						case "by hand":
							_, err = s.Append(t.Context(), "c1", some)
						case "leader":
							_, err = leader.Append(t.Context(), some)
						case "follower":
							_, err = s.For("c1", "r2").Append(t.Context(), some)
						}
						require.NoError(t, err)
						if how != "by hand" {
							_, _, err = leader.KeepUp(t.Context())
							require.NoError(t, err)
						}
					}
					var stored, derived int
					require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM evictrail.events), (SELECT count(*) FROM evictrail.evacuations)").Scan(&stored, &derived))
					require.Equal(t, len(facts), stored)
					require.Equal(t, 3, derived, "evacuations of the others")
					failed, err := s.DeriveFailures(t.Context(), 10)
					require.NoError(t, err)
					require.Len(t, failed, 1)
					require.Equal(t, "vmi:shop/"+c.bad, failed[0].Subject)
					require.Contains(t, failed[0].Reason, c.reason)
					require.Len(t, reported, 1, "once, however often it failed")

					run(c.fixes)
					if c.bad == "buggy" {
						store.BugFixed.Store(true)
					}
					run("UPDATE evictrail.derive_failures SET retry_at = now()") // as the hour would have come
					if how == "by hand" {
						_, err = s.DeriveStale(t.Context(), "c1", nil)
					} else {
						_, _, err = leader.KeepUp(t.Context())
					}
					require.NoError(t, err)
					failed, err = s.DeriveFailures(t.Context(), 10)
					require.NoError(t, err)
					require.Empty(t, failed)
					require.Equal(t, storetest.DumpOf(t, "c1", facts), storetest.Dump(t, s))
				})
			}
		})
	}
}

// renameVM returns facts in which a VM has another name.
func renameVM(facts []trail.Fact, from, to string) []trail.Fact {
	for i := range facts {
		if facts[i].VMI == from {
			facts[i].VMI, facts[i].Subject.Name = to, strings.Replace(facts[i].Subject.Name, from, to, 1)
		}
	}
	return facts
}

// TestFailuresAreRetriedLater: after a minute, then two, up to an hour.
func TestFailuresAreRetriedLater(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	_, err := s.Append(t.Context(), "c1", storetest.Incident("c1", 1))
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), "ALTER TABLE evictrail.placements ADD CONSTRAINT none CHECK (false) NOT VALID")
	require.NoError(t, err)
	for i, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
		_, err := s.DB.Exec(t.Context(), "UPDATE evictrail.derive_failures SET retry_at = now(); DELETE FROM evictrail.placements")
		require.NoError(t, err)
		_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.subjects SET dirty_since = to_timestamp(0), version = version + 1 WHERE subject = 'vmi:shop/db-0'")
		require.NoError(t, err)
		_, err = s.DeriveStale(t.Context(), "c1", nil)
		require.NoError(t, err)
		failed, err := s.DeriveFailures(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, failed, 1)
		require.Equal(t, i+1, failed[0].Failures)
		require.WithinDuration(t, time.Now().Add(want), failed[0].RetryAt, 20*time.Second)
		_, err = s.DeriveStale(t.Context(), "c1", nil)
		require.NoError(t, err)
		again, err := s.DeriveFailures(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, failed, again, "it is not tried before")
	}
}
