package trail

import "time"

// Overview is how it stands with one cluster: what the front page shows.
type Overview struct {
	Cluster  string
	At       time.Time      // as of when, UTC
	Past     bool           // that is a moment of the past
	Seen     Coverage       // by which sources requests are known
	Loops    []Loop         // that are open, in the order of their openings
	Closed   []Loop         // that were closed since From, in the order of their ends
	Stuck    []Evacuation   // that are open and have failed attempts, the oldest first
	Drains   []Drain        // that go on, the oldest first
	Blockers []DrainBlocker // what they wait for, the longest first
	Wave     *UpgradeWave   // that goes on; nil: none does, it is of the past, or not all of the cluster is seen
	Held     []Hold         // what holds VMs back, the longest first
	HeldMore int            // how many more are held back
	Gaps     []Gap          // that are open, or were opened since From, the newest first
	Moves    []MoveCount    // since From, in the order of their times
	From     time.Time
	Step     time.Duration // of Moves

	Waiting       []Evacuation      // that are open, older than WaitingAfter and without any attempt, the oldest first
	Recent        []Migration       // that ended since From, the newest first
	Unmoved       []Unmoved         // evacuations that ended since From without a move, the newest first
	DrainsEnded   []Drain           // that ended since From, the newest first
	Lost          []LostGuest       // since From, the newest first
	Outages       []Outage          // that go on, or ended since From, the newest first
	Settings      []SettingsInForce // since From, the oldest first; none where they did not change since then
	KubeVirt      KubeVirtSettings  // in force where something is stuck or waits
	RecordedSince time.Time         // when the recording begins; zero where that is not known
	Acknowledged  []Acknowledgement // that hold now, the newest first
}

// WaitingAfter is how long after its mark an evacuation without any attempt is shown: KubeVirt makes one within seconds.
const WaitingAfter = 2 * time.Minute

// LostGuest is the end of a guest that nobody wanted: the platform ended it, or it failed.
type LostGuest struct {
	Placement
	StartedAt time.Time `json:"started_at,omitzero"`  // when a guest of the VM ran again; zero where none did
	StartedOn string    `json:"started_on,omitempty"` // on which node; empty where none did
}

// Unmoved is an evacuation that ended without a move.
type Unmoved struct {
	Evacuation
	StartedAt time.Time `json:"started_at,omitzero"`  // when a guest of the VM ran again after its VMI had ended; zero where none did
	StartedOn string    `json:"started_on,omitempty"` // on which node; empty where none did
}

// Hold is what holds one VM back.
type Hold struct {
	Namespace string
	VMI       string
	Node      string
	Layer     Layer
	Effective time.Duration // how long in all
	Until     time.Time
}

// MoveCount counts migrations that ended within a step of time.
type MoveCount struct {
	At      time.Time // the beginning of the step
	Trigger Trigger
	Outcome Outcome
	Count   int
}
