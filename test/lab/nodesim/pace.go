package nodesim

import "time"

// Pace says how long the steps take that a Script does not speak of. Zero is at once.
type Pace struct {
	PodStart  time.Duration // from bound to running
	PodExit   time.Duration // from the end of the guest, or the deletion of the pod, to completed
	Boot      time.Duration // of a guest, from Scheduled to Running
	Shutdown  time.Duration // of a guest whose VMI is deleted
	Prepare   time.Duration // of a migration's target, until it has an address
	Begin     time.Duration // from the target's address to the start of the transfer
	Detect    time.Duration // from the start to the guest seen on the target
	Transfer  time.Duration // from there to the end
	HandOver  time.Duration // each of the two steps after a successful transfer
	Abort     time.Duration // from an abort that is under way to its end
	LeaseStep time.Duration // between two renewals of a node's lease
}

// DefaultPace is about that of the recordings.
func DefaultPace() Pace {
	return Pace{
		PodStart: 700 * time.Millisecond, PodExit: 500 * time.Millisecond,
		Boot: time.Second, Shutdown: time.Second,
		Prepare: 1200 * time.Millisecond, Begin: 400 * time.Millisecond, Detect: 400 * time.Millisecond, Transfer: 4 * time.Second,
		HandOver: 300 * time.Millisecond, Abort: time.Second,
		LeaseStep: 10 * time.Second,
	}
}
