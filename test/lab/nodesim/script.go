package nodesim

import "time"

// Outcome is how a migration goes.
type Outcome string

// The outcomes.
const (
	OutcomeSucceed      Outcome = ""              // the guest moves
	OutcomeFail         Outcome = "fail"          // the transfer ends with Reason
	OutcomeStall        Outcome = "stall"         // no progress: aborted after progressTimeout, which After overrides
	OutcomeStallPrepare Outcome = "stall-prepare" // the target never has an address: the migration stays in PreparingTarget
	OutcomeNeverReady   Outcome = "never-ready"   // the target pod never starts: the migration stays in Scheduling
	OutcomeCrash        Outcome = "crash"         // the target pod fails while it prepares; there is no reason
	OutcomeLose         Outcome = "lose"          // post-copy breaks: the guest is lost, the VMI is Failed
)

// Migration says how one migration goes.
type Migration struct {
	Outcome     Outcome
	After       time.Duration // of the transfer, until it ends; zero: Pace.Transfer
	Reason      string        // status.migrationState.failureReason; empty: a libvirt error
	Prepare     time.Duration // until the target has an address, or crashes; zero: Pace.Prepare
	PodStart    time.Duration // of the target pod; zero: Pace.PodStart
	IgnoreAbort bool          // an abort fails, and the transfer goes on
}

// Script says how a VM behaves. The zero Script is a VM without load, whose migrations succeed at the Pace.
type Script struct {
	Load          float64     // that it adds to its node, 1 is all of a node
	NotMigratable string      // reason of the condition LiveMigratable=False, as DisksNotLiveMigratable; empty: it can migrate
	Migrations    []Migration // in order, counted by target pods; the last goes on for ever
}

// Always returns a Script all of whose migrations go like this.
func Always(m Migration) Script { return Script{Migrations: []Migration{m}} }

// migrationAt returns what is said of the n-th migration, from 0.
func (s Script) migrationAt(n int) Migration {
	if len(s.Migrations) == 0 {
		return Migration{}
	}
	return s.Migrations[min(n, len(s.Migrations)-1)]
}

// libvirtError is the commonest reason in the recordings.
const libvirtError = "Live migration failed error encountered during MigrateToURI3 libvirt api call: " +
	"virError(Code=9, Domain=10, Message='operation failed: migration out job: unexpectedly failed')"
