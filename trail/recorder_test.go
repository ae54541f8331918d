package trail

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The sources that a replica needs.
var needed = []string{"kubevirts", "nodes", "virtualmachineinstances", "virtualmachineinstancemigrations", "pods", "events"}

// newHealthySigns returns the signs of a replica that leads and sees and stores everything.
func newHealthySigns(now time.Time) ReplicaSigns {
	s := ReplicaSigns{Replica: "a", StartedAt: now.Add(-time.Hour), Leader: LeaderSigns{Leads: true, Known: true, Since: now.Add(-time.Hour), DerivedAt: now}}
	for _, source := range needed {
		s.Watches = append(s.Watches, WatchSign{Source: source, Synced: true})
	}
	return s
}

func TestRecorderStatus(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 21, 40, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	refuse := func(s *ReplicaSigns, since time.Time, cause, problem string, sources ...int) {
		for _, i := range sources {
			s.Watches[i] = WatchSign{Source: needed[i], Since: since, Cause: cause, Problem: problem}
		}
	}
	all := []int{0, 1, 2, 3, 4, 5}
	for _, c := range []struct {
		name    string
		change  func(*ReplicaSigns)
		state   RecorderState
		since   time.Time
		why     []string
		unready bool
	}{
		{"all is well", func(*ReplicaSigns) {}, RecorderRecording, ago(time.Hour), []string{}, false},
		{"the cluster has not answered", func(s *ReplicaSigns) { s.Watches, s.ClusterProblem = nil, "it does not answer" },
			RecorderNotRecording, ago(time.Hour), []string{"The cluster is not known yet: it does not answer."}, true},
		{"everything is refused", func(s *ReplicaSigns) { refuse(s, ago(4*time.Minute), "connection refused", "cannot watch it", all...) },
			RecorderNotRecording, ago(4 * time.Minute), []string{"Cannot watch 6 of 6 resources since 2026-11-21 21:36:00Z (connection refused): kubevirts, nodes, virtualmachineinstances, virtualmachineinstancemigrations, pods, events."}, true},
		{"it has just begun", func(s *ReplicaSigns) { refuse(s, ago(time.Second), "", "", all...) },
			RecorderDegraded, ago(time.Second), []string{"Cannot watch 6 of 6 resources since 2026-11-21 21:39:59Z (waiting for the first list): kubevirts, nodes, virtualmachineinstances, virtualmachineinstancemigrations, pods, events."}, true},
		{"no list for long", func(s *ReplicaSigns) { refuse(s, ago(time.Minute), "", "", all...) }, RecorderNotRecording, ago(time.Minute), nil, true},
		{"one is refused", func(s *ReplicaSigns) { refuse(s, ago(time.Hour), "no right", "no right to watch pods", 4) },
			RecorderDegraded, ago(time.Hour), []string{"Cannot watch 1 of 6 resources since 2026-11-21 20:40:00Z (no right): pods."}, true},
		{"writes have failed for a moment", func(s *ReplicaSigns) { s.Writes = WriteSigns{FailingSince: ago(time.Second), Cause: "it is away"} }, RecorderRecording, ago(time.Hour), []string{}, false},
		{"no write has been answered yet", func(s *ReplicaSigns) { s.Writes = WriteSigns{FailingSince: ago(time.Second), Never: true} }, RecorderDegraded, ago(time.Second), []string{"The database has not taken a write yet."}, false},
		{"the database is read-only", func(s *ReplicaSigns) {
			s.Writes = WriteSigns{FailingSince: ago(time.Minute), Cause: "it is read-only"}
			s.Spool = SpoolSigns{Facts: 3, Oldest: ago(30 * time.Second)}
		}, RecorderReadOnly, ago(time.Minute), []string{
			"The database has taken no writes since 2026-11-21 21:39:00Z: it is read-only.",
			"What is seen is spooled and not stored: 3 facts, the oldest since 2026-11-21T21:39:30Z.",
		}, false},
		{"nothing keeps what is seen", func(s *ReplicaSigns) {
			s.Writes, s.Spool = WriteSigns{FailingSince: ago(time.Minute), Cause: "it is away"}, SpoolSigns{Problem: "no space"}
		}, RecorderNotRecording, ago(time.Minute), nil, true},
		{"the spool's disk is broken", func(s *ReplicaSigns) { s.Spool.Problem = "no space" }, RecorderDegraded, ago(time.Hour), []string{"The spool cannot be written: facts go straight to the database."}, false},
		{"the spool is full", func(s *ReplicaSigns) { s.Spool.Full = true }, RecorderDegraded, ago(time.Hour), nil, false},
		{"facts wait for long", func(s *ReplicaSigns) { s.Spool = SpoolSigns{Facts: 1, Oldest: ago(2 * time.Minute)} }, RecorderDegraded, ago(2 * time.Minute), nil, false},
		{"facts were refused", func(s *ReplicaSigns) { s.Spool.DeadLetters = 2 }, RecorderDegraded, ago(time.Hour), []string{"Facts that the database refuses are set aside: 2. `evictrail doctor` names the file."}, false},
		{"an election goes on", func(s *ReplicaSigns) { s.Leader = LeaderSigns{Since: ago(10 * time.Second)} }, RecorderRecording, ago(time.Hour), []string{}, false},
		{"the lease is refused", func(s *ReplicaSigns) {
			s.Leader = LeaderSigns{Since: ago(20 * time.Second), Problem: "no right to the lease ns/evictrail"}
		}, RecorderNoLeader, ago(20 * time.Second), []string{
			"No replica has derived since 2026-11-21 21:39:40Z: no right to the lease ns/evictrail.",
			"What is seen is stored. Evacuations, loops and drains stand still until a replica leads.",
		}, false},
		{"another replica leads", func(s *ReplicaSigns) { s.Leader = LeaderSigns{Known: true, Since: ago(time.Hour)} }, RecorderRecording, ago(time.Hour), []string{}, false},
		{"the leader does not get on", func(s *ReplicaSigns) { s.Leader.DerivedAt = ago(2 * time.Minute) }, RecorderBehind, ago(2 * time.Minute), nil, false},
		{"a new leader has much to derive", func(s *ReplicaSigns) { s.Leader.Since, s.Leader.DerivedAt = ago(30*time.Second), time.Time{} }, RecorderRecording, ago(time.Hour), []string{}, false},
		{"the worst wins, and all are reported", func(s *ReplicaSigns) {
			s.Spool.DeadLetters, s.Leader = 1, LeaderSigns{Since: ago(time.Minute)}
			s.Writes = WriteSigns{FailingSince: ago(30 * time.Second), Cause: "it is read-only"}
		}, RecorderReadOnly, ago(30 * time.Second), []string{
			"The database has taken no writes since 2026-11-21 21:39:30Z: it is read-only.",
			"What is seen is spooled and not stored: nothing waits yet.",
			"Facts that the database refuses are set aside: 1. `evictrail doctor` names the file.",
			"No replica has derived since 2026-11-21 21:39:00Z: no replica holds the lease.",
			"Evacuations, loops and drains stand still until a replica leads.",
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			signs := newHealthySigns(now)
			c.change(&signs)
			s := ClusterSigns{Cluster: "c", Replicas: []ReplicaReport{signs.Report(now)}}.Status(now)
			require.Equal(t, c.state, s.State, s.Why)
			require.Equal(t, c.since, s.Since)
			require.Equal(t, c.unready, s.Unready)
			require.Equal(t, c.state == RecorderRecording, s.Advice() == "", s.Advice())
			require.Equal(t, c.state == RecorderRecording, len(s.Why) == 0, s.Why)
			if c.why != nil {
				require.Equal(t, c.why, s.Why)
			}
		})
	}
}

// TestRecorderOfReplicas judges clusters by what several replicas reported, or none.
func TestRecorderOfReplicas(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 21, 40, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	well := newHealthySigns(now).Report(now)
	blind := func() ReplicaReport {
		s := newHealthySigns(now)
		s.Replica, s.Leader = "b", LeaderSigns{Known: true}
		for i := range s.Watches {
			s.Watches[i] = WatchSign{Source: needed[i], Since: ago(time.Minute), Cause: "no route to host", Problem: "x"}
		}
		return s.Report(now)
	}()
	half := func(replica string, unseen ...int) ReplicaReport {
		s := newHealthySigns(now)
		s.Replica = replica
		for _, i := range unseen {
			s.Watches[i] = WatchSign{Source: needed[i], Since: ago(time.Minute), Cause: "no right", Problem: "x"}
		}
		return s.Report(now)
	}
	past := func(r ReplicaReport, d time.Duration) ReplicaReport { r.AliveAt = ago(d); return r }
	for _, c := range []struct {
		name     string
		signs    ClusterSigns
		state    RecorderState
		headline string
		live     bool
		unseen   []string
	}{
		{"two that are well", ClusterSigns{Replicas: []ReplicaReport{well, well}, LastEventAt: ago(3 * time.Minute)}, RecorderRecording, "Recording; last event 3 min 0 s ago", true, []string{}},
		{"one is blind, the other sees", ClusterSigns{Replicas: []ReplicaReport{blind, well}}, RecorderDegraded, "Degraded; no event yet", true, []string{}},
		{"both are blind", ClusterSigns{Replicas: []ReplicaReport{blind, blind}}, RecorderNotRecording, "Not recording; no event yet", false,
			[]string{"events", "kubevirts", "nodes", "pods", "virtualmachineinstancemigrations", "virtualmachineinstances"}},
		{"each sees what the other does not", ClusterSigns{Replicas: []ReplicaReport{half("a", 1), half("b", 2)}}, RecorderDegraded, "Degraded; no event yet", true, []string{}},
		{"both lack the same", ClusterSigns{Replicas: []ReplicaReport{half("a", 1, 4), half("b", 1)}}, RecorderDegraded, "Degraded; no event yet", true, []string{"nodes"}},
		{"one stopped an hour ago", ClusterSigns{Replicas: []ReplicaReport{past(well, time.Hour)}, AliveAt: ago(time.Hour), LastEventAt: ago(61 * time.Minute)},
			RecorderNotRecording, "Last event 1 h 1 min ago; recorder stopped 1 h 0 min ago", false, []string{}},
		{"one has been silent for three minutes", ClusterSigns{Replicas: []ReplicaReport{past(well, 3*time.Minute)}}, RecorderDegraded, "No event yet; recorder stopped 3 min 0 s ago", true, []string{}},
		{"a report is overdue", ClusterSigns{Replicas: []ReplicaReport{past(well, 30*time.Second)}}, RecorderDegraded, "Degraded; no event yet", true, []string{}},
		{"a report is late", ClusterSigns{Replicas: []ReplicaReport{past(well, 12*time.Second)}}, RecorderRecording, "Recording; no event yet", true, []string{}},
		{"a blind one that stopped", ClusterSigns{Replicas: []ReplicaReport{past(blind, time.Hour), well}}, RecorderRecording, "Recording; no event yet", true, []string{}},
		{"an older version, which reports nothing", ClusterSigns{AliveAt: ago(5 * time.Second)}, RecorderRecording, "Recording; no event yet", true, []string{}},
		{"nobody ever", ClusterSigns{}, RecorderNotRecording, "Never recorded", false, []string{}},
		{"a recording", ClusterSigns{AliveAt: ago(400 * time.Hour), Replayed: true}, RecorderNotRecording, "Recording of 5 Nov 2026, replayed", false, []string{}},
		{"a recording that is recorded on", ClusterSigns{AliveAt: now, Replayed: true, Replicas: []ReplicaReport{well}}, RecorderRecording, "Recording; no event yet", true, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.signs.Status(now)
			require.Equal(t, c.state, s.State, s.Why)
			require.Equal(t, c.headline, s.Headline())
			require.Equal(t, c.live, s.Live())
			require.Equal(t, c.unseen, s.Unseen)
		})
	}
}

// TestRecorderNeverClaims tries signs by chance: where a watch that is needed is not synced, or nobody derives, the state is never that
// all is well; and whatever is wrong, the reason is reported.
func TestRecorderNeverClaims(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 21, 40, 0, 0, time.UTC)
	r := rand.New(rand.NewPCG(27, 5))
	maybe := func(t time.Time) time.Time {
		if r.IntN(2) == 0 {
			return time.Time{}
		}
		return t
	}
	ago := func() time.Time { return now.Add(-time.Duration(r.IntN(1200)) * time.Second) }
	for range 20_000 {
		s := ReplicaSigns{Replica: "a", StartedAt: ago(), Spool: SpoolSigns{Facts: r.IntN(3), Oldest: maybe(ago()), Full: r.IntN(5) == 0, DeadLetters: r.IntN(2)}}
		unsynced := false
		for _, source := range needed {
			w := WatchSign{Source: source, Synced: r.IntN(3) > 0, Since: ago()}
			if w.Problem = []string{"", "cannot watch"}[r.IntN(2)]; w.Problem != "" {
				w.Cause = "refused"
			}
			unsynced = unsynced || !w.Synced
			s.Watches = append(s.Watches, w)
		}
		s.Writes = WriteSigns{FailingSince: maybe(ago()), Cause: "away"}
		s.Leader = LeaderSigns{Leads: r.IntN(2) == 0, Since: ago(), DerivedAt: maybe(ago())}
		signs := ClusterSigns{Replicas: []ReplicaReport{s.Report(now)}}
		st := signs.Status(now)
		leaderless := !s.Leader.Leads && now.Sub(s.Leader.Since) >= leaderGrace
		if unsynced || leaderless {
			require.NotEqual(t, RecorderRecording, st.State, "%+v", s)
		}
		require.Equal(t, st.State == RecorderRecording, len(st.Why) == 0, "%+v", st)
		require.Contains(t, RecorderStates(), st.State)
		require.False(t, st.Since.IsZero())
		silent := signs.Status(now.Add(time.Hour))
		require.Equal(t, RecorderNotRecording, silent.State, "nobody has said anything for an hour")
	}
}

// TestRecordingOfAnswers checks the warnings that answers and lists carry.
func TestRecordingOfAnswers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 21, 40, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	stopped := ClusterSigns{AliveAt: ago(time.Hour)}.Status(now)
	require.Equal(t, "NOT RECORDING: No sign of life since 2026-11-21 20:40:00Z: the recorder has stopped, or cannot write to the database. "+
		"What happened since is not known. What is shown may be incomplete.", stopped.Notice())
	require.Empty(t, ClusterSigns{AliveAt: ago(time.Second)}.Status(now).Notice())
	require.Empty(t, ClusterSigns{AliveAt: ago(time.Hour), Replayed: true}.Status(now).Notice(), "a recording is complete in itself")
	require.Empty(t, (*RecorderNote)(nil).Notice(), "an answer about the past")

	require.Empty(t, DescribeGaps(nil))
	require.Equal(t, "Not observed in this period: nodes, pods from 2026-11-21 21:30:00Z until now (forbidden); evictrail from 2026-11-21 20:40:00Z to 2026-11-21 21:10:00Z (not running).",
		DescribeGaps([]Gap{{Source: "nodes", OpenedAt: ago(10 * time.Minute), Cause: "forbidden"}, {Source: "pods", OpenedAt: ago(10 * time.Minute), Cause: "forbidden"}, {Source: "evictrail", OpenedAt: ago(time.Hour), ClosedAt: ago(30 * time.Minute), Cause: "not_running"}}))

	for _, c := range []struct {
		name     string
		query    Query
		next     *Key
		from, to time.Time
	}{
		{"bounds", Query{Since: ago(time.Hour), Until: ago(time.Minute)}, &Key{At: ago(2 * time.Minute)}, ago(time.Hour), ago(time.Minute)},
		{"a page of more", Query{}, &Key{At: ago(2 * time.Minute)}, ago(2 * time.Minute), time.Time{}},
		{"all there is", Query{}, nil, ago(24 * time.Hour), time.Time{}},
	} {
		from, to := c.query.Period(c.next, now)
		require.Equal(t, c.from, from, c.name)
		require.Equal(t, c.to, to, c.name)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for d, text := range map[time.Duration]string{
		-time.Second: "0 s", 14 * time.Second: "14 s", 3*time.Minute + 5*time.Second: "3 min 5 s", 11*time.Minute + 14*time.Second: "11 min",
		22*time.Hour + 31*time.Minute: "22 h 31 min", 260*time.Hour + 44*time.Minute: "10 d 20 h",
	} {
		require.Equal(t, text, Age(d))
	}
}
