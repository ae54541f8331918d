package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// WatchSign is what a process knows of one watch that it needs.
type WatchSign struct {
	Source  string    // the resource, as in Gap.Source
	Synced  bool      // it is seen: its list was taken, and nothing has broken it since
	Since   time.Time // since when it is not
	Cause   string    // why, in a few words: "connection refused"
	Problem string    // why, in a sentence that says what to do; empty while its first list is awaited
}

// SpoolSigns is how it stands with what waits for the database.
type SpoolSigns struct {
	Facts       int
	Oldest      time.Time // when the first that waits was seen; zero where none does
	Full        bool      // something was left out
	Problem     string    // why facts are not kept on disk
	DeadLetters int       // facts that the database refuses
}

// WriteSigns is how the last writes to the database went.
type WriteSigns struct {
	FailingSince time.Time // zero while they succeed
	Never        bool      // none has succeeded since the process began
	Cause        string    // why, in a few words that anybody may read: "it is read-only"
	Problem      string    // why, as the database says it
}

// LeaderSigns is what a replica knows of who derives.
type LeaderSigns struct {
	Leads     bool      // this replica does
	Known     bool      // somebody does, as far as this replica knows
	Since     time.Time // since when Known is as it is
	Problem   string    // why this replica cannot take the lease
	DerivedAt time.Time // of a leader: when nothing was left to derive; zero: not yet
	Failure   string    // of a leader: why it does not get on
}

// Behind returns up to when a leader has derived everything: since it leads, where it has not yet.
func (l LeaderSigns) Behind() time.Time {
	if l.DerivedAt.After(l.Since) {
		return l.DerivedAt
	}
	return l.Since
}

// ReplicaSigns is what one process knows of its own recording.
type ReplicaSigns struct {
	Replica        string
	StartedAt      time.Time
	ClusterProblem string // why the cluster is not known yet; empty where it is
	Watches        []WatchSign
	Spool          SpoolSigns
	Writes         WriteSigns
	Leader         LeaderSigns
}

// ReplicaReport is what one replica reports to the others and all readers of the database.
type ReplicaReport struct {
	Replica   string
	AliveAt   time.Time // when it was made
	StartedAt time.Time
	State     RecorderState
	Since     time.Time // since when State holds
	Why       []string  // sentences, those about State first; none while it records
	Details   []string  // errors in full, which only who operates evictrail is to read
	Unseen    []string  // sources that it does not see
	Unready   bool      // it should not be asked, nor be sent anything
	Leader    LeaderSigns
}

// finding is one thing that is not as it should be.
type finding struct {
	state   RecorderState
	since   time.Time
	why     []string
	details []string
	unready bool
}

// Report judges what a process knows of its own recording, but for who derives: that is a matter of all replicas.
func (s ReplicaSigns) Report(now time.Time) ReplicaReport {
	r := ReplicaReport{Replica: s.Replica, AliveAt: now, StartedAt: s.StartedAt, Leader: s.Leader}
	for _, w := range s.Watches {
		if !w.Synced {
			r.Unseen = append(r.Unseen, w.Source)
		}
	}
	slices.Sort(r.Unseen)
	var found []finding
	for _, judge := range []func(time.Time) (finding, bool){s.checkWatches, s.checkWrites, s.checkSpool, s.checkDeadLetters} {
		if f, is := judge(now); is {
			found = append(found, f)
		}
	}
	worst := worstOf(found, s.StartedAt)
	r.State, r.Since, r.Why, r.Details, r.Unready = worst.state, worst.since, worst.why, worst.details, worst.unready
	return r
}

// worstOf joins findings to one: the worst state, since when, and the reasons of all, those of the worst first. Without any it is
// recording since a time.
func worstOf(found []finding, otherwise time.Time) finding {
	if len(found) == 0 {
		return finding{state: RecorderRecording, since: otherwise}
	}
	slices.SortStableFunc(found, func(a, b finding) int {
		switch {
		case a.state.isWorseThan(b.state):
			return -1
		case b.state.isWorseThan(a.state):
			return 1
		}
		return a.since.Compare(b.since)
	})
	worst := finding{state: found[0].state, since: found[0].since}
	for _, f := range found {
		worst.why, worst.details = append(worst.why, f.why...), append(worst.details, f.details...)
		worst.unready = worst.unready || f.unready
	}
	return worst
}

// checkWatches looks for watches that are needed and not seen.
func (s ReplicaSigns) checkWatches(now time.Time) (finding, bool) {
	if s.ClusterProblem != "" || len(s.Watches) == 0 {
		problem := s.ClusterProblem
		if problem == "" {
			problem = "no watch has begun"
		}
		return finding{state: RecorderNotRecording, since: s.StartedAt, why: []string{"The cluster is not known yet: " + problem + "."}, unready: true}, true
	}
	var unseen []WatchSign
	var since time.Time
	for _, w := range s.Watches {
		if !w.Synced {
			unseen = append(unseen, w)
			since = minNonZeroTime(since, w.Since)
		}
	}
	if len(unseen) == 0 {
		return finding{}, false
	}
	f := finding{state: RecorderDegraded, since: since, unready: true}
	cause, hindered := commonCause(unseen)
	if len(unseen) == len(s.Watches) && (hindered || now.Sub(since) > startGrace) {
		f.state = RecorderNotRecording
	}
	names := make([]string, len(unseen))
	for i, w := range unseen {
		names[i] = w.Source
	}
	f.why = []string{fmt.Sprintf("Cannot watch %d of %s since %s (%s): %s.", len(unseen), FormatCount(len(s.Watches), "resource"), FormatClock(since), cause, strings.Join(names, ", "))}
	for _, w := range unseen {
		if w.Problem != "" {
			f.details = append(f.details, w.Problem)
		}
	}
	return f, true
}

// commonCause says in a few words why watches are not seen, and whether anything hinders one of them.
func commonCause(unseen []WatchSign) (cause string, hindered bool) {
	var causes []string
	for _, w := range unseen {
		short := "waiting for the first list"
		if w.Problem != "" {
			short, hindered = w.Cause, true
		}
		if !slices.Contains(causes, short) {
			causes = append(causes, short)
		}
	}
	if len(causes) > 1 {
		return fmt.Sprintf("%s, and %s", causes[0], FormatCount(len(causes)-1, "other reason")), hindered
	}
	return causes[0], hindered
}

// checkWrites looks for a database that takes no writes.
func (s ReplicaSigns) checkWrites(now time.Time) (finding, bool) {
	switch failing := now.Sub(s.Writes.FailingSince); {
	case s.Writes.FailingSince.IsZero() || failing < writeGrace && !s.Writes.Never:
		return finding{}, false
	case failing < writeGrace:
		return finding{state: RecorderDegraded, since: s.Writes.FailingSince, why: []string{"The database has not taken a write yet."}}, true
	}
	waiting := "What is seen is spooled and not stored: " + s.Spool.describeBacklog() + "."
	f := finding{state: RecorderReadOnly, since: s.Writes.FailingSince}
	if s.Spool.Problem != "" {
		f.state, f.unready = RecorderNotRecording, true
		waiting = "What is seen is kept in memory alone, as the spool is not working: a restart loses it."
	}
	f.why = []string{fmt.Sprintf("The database has taken no writes since %s: %s.", FormatClock(s.Writes.FailingSince), s.Writes.Cause), waiting}
	if s.Writes.Problem != "" {
		f.details = []string{s.Writes.Problem}
	}
	return f, true
}

// describeBacklog says how much waits in the spool.
func (s SpoolSigns) describeBacklog() string {
	if s.Facts == 0 || s.Oldest.IsZero() {
		return "nothing waits yet"
	}
	return fmt.Sprintf("%s, the oldest since %s", FormatCount(s.Facts, "fact"), s.Oldest.UTC().Format(time.RFC3339))
}

// checkSpool looks for facts that are not kept on disk, or wait for long though the database takes writes.
func (s ReplicaSigns) checkSpool(now time.Time) (finding, bool) {
	f := finding{state: RecorderDegraded, since: s.Spool.Oldest}
	switch {
	case s.Spool.Problem != "":
		f.why = []string{"The spool cannot be written: facts go straight to the database."}
		f.details = []string{"spool: " + s.Spool.Problem}
	case s.Spool.Full:
		f.why = []string{"The spool is full: what finds no room is left out, and counted as lost. Give it more room (--spool-size), or let the database catch up."}
	case !s.Spool.Oldest.IsZero() && now.Sub(s.Spool.Oldest) > backlogGrace:
		f.why = []string{"What was seen reaches the database late: " + s.Spool.describeBacklog() + " wait."}
	default:
		return finding{}, false
	}
	if f.since.IsZero() {
		f.since = s.StartedAt
	}
	return f, true
}

// checkDeadLetters looks for facts that the database refuses.
func (s ReplicaSigns) checkDeadLetters(time.Time) (finding, bool) {
	if s.Spool.DeadLetters == 0 {
		return finding{}, false
	}
	why := "Facts that the database refuses are set aside: " + fmt.Sprint(s.Spool.DeadLetters) + ". `evictrail doctor` names the file."
	return finding{state: RecorderDegraded, since: s.StartedAt, why: []string{why}}, true
}

func minNonZeroTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
