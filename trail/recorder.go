package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// RecorderState reports whether a cluster is being recorded. Of several that hold the worst wins.
type RecorderState string

// The states, from the best to the worst: RecorderStates has them in this order.
const (
	RecorderRecording    RecorderState = "recording"          // everything is seen, stored and derived
	RecorderDegraded     RecorderState = "degraded"           // something is not seen, or would be lost by a restart
	RecorderBehind       RecorderState = "derivation_behind"  // facts are stored, and what they mean is not derived
	RecorderNoLeader     RecorderState = "no_leader"          // the same, because no replica may derive
	RecorderReadOnly     RecorderState = "database_read_only" // the database takes no writes: facts wait in the spool
	RecorderNotRecording RecorderState = "not_recording"      // nothing is seen, or nobody is there who would
)

// RecorderStates returns all states, from the best to the worst.
func RecorderStates() []RecorderState { return recorderLabels.values() }

// isWorseThan reports whether s is worse than other.
func (s RecorderState) isWorseThan(other RecorderState) bool {
	return slices.Index(RecorderStates(), s) > slices.Index(RecorderStates(), other)
}

// How long something may last before it makes a state.
const (
	SilenceAmber = 2 * time.Minute  // without a sign of life: the recorder may have stopped
	SilenceRed   = 10 * time.Minute // without a sign of life: it has
	ReportGrace  = 25 * time.Second // without a report of a replica, of which one is due every 5 s

	writeGrace      = 5 * time.Second  // of a write that fails or is not answered
	startGrace      = 30 * time.Second // of a first list that nothing hinders
	backlogGrace    = time.Minute      // of a fact that waits for a database that takes writes
	leaderGrace     = 15 * time.Second // of an election, which takes about 13 s
	derivationGrace = time.Minute      // of a leader that has not derived everything
)

// ClusterSigns is what anybody can read about the recording of a cluster.
type ClusterSigns struct {
	Cluster     string
	AliveAt     time.Time // up to when everything that was seen is stored; zero: never
	LastEventAt time.Time // of the newest event; zero where there is none
	Replayed    bool      // it was played from a recording
	Replicas    []ReplicaReport
	Standby     *StandbySigns // that is to answer what is asked; nil: the primary alone does
}

// RecorderStatus is the verdict on the recording of a cluster.
type RecorderStatus struct {
	Cluster     string        `json:"cluster"`
	State       RecorderState `json:"state"`
	Since       time.Time     `json:"since,omitzero"`
	Why         []string      `json:"why"`                    // sentences, those about State first; none while it records
	Unseen      []string      `json:"unseen"`                 // sources that no replica sees
	AliveAt     time.Time     `json:"alive_at,omitzero"`      // the last sign of life
	LastEventAt time.Time     `json:"last_event_at,omitzero"` // the time of the newest event
	Replayed    bool          `json:"replayed"`               // played from a recording, which is over
	At          time.Time     `json:"at"`                     // for when this speaks
	NotObserved []Gap         `json:"not_observed,omitempty"` // gaps that overlap the time that was asked for, the newest first; none where none was
	Standby     *StandbySigns `json:"standby,omitempty"`      // that is to answer what is asked; nil: the primary alone does
	Details     []string      `json:"-"`                      // errors in full, which only who operates evictrail is to read
	Unready     bool          `json:"-"`                      // what runs should not be asked, nor be sent anything
}

// Status judges the recording of a cluster at a time.
func (s ClusterSigns) Status(now time.Time) RecorderStatus {
	st := RecorderStatus{Cluster: s.Cluster, AliveAt: s.AliveAt, LastEventAt: s.LastEventAt, At: now, Why: []string{}, Unseen: []string{}, Standby: s.Standby}
	var fresh []ReplicaReport
	for _, r := range s.Replicas {
		if r.AliveAt.After(st.AliveAt) {
			st.AliveAt = r.AliveAt
		}
		if now.Sub(r.AliveAt) < SilenceAmber {
			fresh = append(fresh, r)
		}
	}
	if s.Replayed && len(s.Replicas) == 0 && now.Sub(st.AliveAt) >= SilenceAmber {
		st.State, st.Since, st.Replayed = RecorderNotRecording, st.AliveAt, true
		st.Why = []string{fmt.Sprintf("A recording of %s, replayed: nothing is recorded now.", st.AliveAt.UTC().Format("2 Jan 2006"))}
		return st
	}
	var found []finding
	switch {
	case len(fresh) > 0:
		best := bestOf(fresh)
		found, st.Unseen = checkReplicas(fresh, best), unseenByAll(fresh)
		found = append(found, checkDerivation(fresh, best.State, now)...)
		found = append(found, checkReports(st.AliveAt, now)...)
	default:
		found = checkSilence(st.AliveAt, now)
	}
	found = append(found, s.checkStandby()...)
	worst := worstOf(found, startOf(fresh))
	st.State, st.Since, st.Details, st.Unready = worst.state, worst.since, worst.details, worst.unready
	st.Why = append(st.Why, worst.why...)
	return st
}

// checkSilence looks for the last sign of life where no replica has given one of late.
func checkSilence(alive, now time.Time) []finding {
	silent := now.Sub(alive)
	switch {
	case alive.IsZero():
		return []finding{{state: RecorderNotRecording, why: []string{"Nothing of this cluster has been recorded yet."}}}
	case silent < SilenceAmber: // an older evictrail, which makes no report
		return nil
	case silent < SilenceRed:
		return []finding{{state: RecorderDegraded, since: alive, why: []string{
			"No sign of life since " + FormatClock(alive) + ": the recorder has stopped, or cannot write to the database.",
		}}}
	}
	return []finding{{state: RecorderNotRecording, since: alive, why: []string{
		"No sign of life since " + FormatClock(alive) + ": the recorder has stopped, or cannot write to the database. What happened since is not known.",
	}}}
}

// checkReports looks for reports that are overdue, before they are old enough to be a silence.
func checkReports(alive, now time.Time) []finding {
	if now.Sub(alive) < ReportGrace {
		return nil
	}
	return []finding{{state: RecorderDegraded, since: alive, why: []string{
		"No report of the recorder since " + FormatClock(alive) + ": it has stopped, or cannot write to the database.",
	}}}
}

// bestOf returns the report of the replica that records best.
func bestOf(fresh []ReplicaReport) ReplicaReport {
	return slices.MinFunc(fresh, func(a, b ReplicaReport) int {
		switch {
		case b.State.isWorseThan(a.State):
			return -1
		case a.State.isWorseThan(b.State):
			return 1
		}
		return a.Since.Compare(b.Since)
	})
}

// checkReplicas takes over what the best replica found, and names those that are worse.
func checkReplicas(fresh []ReplicaReport, best ReplicaReport) []finding {
	var found []finding
	if best.State != RecorderRecording {
		found = append(found, finding{best.State, best.Since, best.Why, best.Details, best.Unready})
	}
	for _, r := range fresh {
		if r.State.isWorseThan(best.State) {
			found = append(found, finding{state: RecorderDegraded, since: r.Since, why: []string{
				fmt.Sprintf("Replica %s: %s since %s. %s", r.Replica, r.State.Label(), FormatClock(r.Since), firstOf(r.Why)),
			}})
		}
	}
	return found
}

// unseenByAll returns the sources that no replica sees, sorted.
func unseenByAll(fresh []ReplicaReport) []string {
	return append([]string{}, slices.DeleteFunc(slices.Clone(fresh[0].Unseen), func(source string) bool {
		return slices.ContainsFunc(fresh, func(r ReplicaReport) bool { return !slices.Contains(r.Unseen, source) })
	})...)
}

// startOf returns since when a cluster has been recorded by replicas that are there now.
func startOf(fresh []ReplicaReport) time.Time {
	var since time.Time
	for _, r := range fresh {
		since = minNonZeroTime(since, r.Since)
	}
	return since
}

// checkDerivation looks for a leader, and whether it gets on. Best is the state of the replica that records best: it reports whether facts are stored although nothing is
// derived. A replica whose database takes no writes cannot say who leads.
func checkDerivation(fresh []ReplicaReport, best RecorderState, now time.Time) []finding {
	stored := "What is seen is stored. "
	if best.isWorseThan(RecorderNoLeader) {
		stored = ""
	}
	var since time.Time
	var problem string
	for _, r := range fresh {
		switch l := r.Leader; {
		case l.Leads:
			return checkLeader(r, stored, now)
		case l.Known:
			return nil // it is of an older version, or its report is late
		default:
			if l.Since.After(since) {
				since = l.Since
			}
			if problem == "" {
				problem = l.Problem
			}
		}
	}
	if now.Sub(since) < leaderGrace {
		return nil
	}
	if problem == "" {
		problem = "no replica holds the lease"
	}
	return []finding{{state: RecorderNoLeader, since: since, why: []string{
		fmt.Sprintf("No replica has derived since %s: %s.", FormatClock(since), strings.TrimSuffix(problem, ".")),
		stored + "Evacuations, loops and drains stand still until a replica leads.",
	}}}
}

// checkLeader looks whether a leader derives what is stored; stored is the sentence that facts are, empty where they are not.
func checkLeader(r ReplicaReport, stored string, now time.Time) []finding {
	since := r.Leader.Behind()
	if now.Sub(since) < derivationGrace {
		return nil
	}
	problem := "more is left to derive than gets done"
	if r.Leader.Failure != "" {
		problem = r.Leader.Failure
	}
	return []finding{{state: RecorderBehind, since: since, why: []string{
		fmt.Sprintf("Not everything has been derived since %s: %s.", FormatClock(since), strings.TrimSuffix(problem, ".")),
		stored + "Evacuations, loops and drains may be older than that.",
	}}}
}

// Healthy reports whether nothing is missing: only then may an empty list be read as "there is nothing".
func (s RecorderStatus) Healthy() bool { return s.State == RecorderRecording }

// Certain reports whether an empty list of a cluster may be read as "there is none": everything was observed and derived.
func (s RecorderStatus) Certain() bool { return s.Healthy() || s.Replayed }

// Live reports whether something is recorded now.
func (s RecorderStatus) Live() bool { return !s.Replayed && s.State != RecorderNotRecording }

// Worst returns the worst of some statuses; false where there is none. Clusters that were replayed count only where there is no other.
func Worst(all []RecorderStatus) (worst RecorderStatus, is bool) {
	for _, s := range all {
		if !is || worst.Replayed && !s.Replayed || worst.Replayed == s.Replayed && s.State.isWorseThan(worst.State) {
			worst, is = s, true
		}
	}
	return worst, is
}
