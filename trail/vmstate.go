package trail

// VMState says in one word how it stands with a VM that runs.
type VMState string

// The states of a VM that runs.
const (
	VMRunning       VMState = "running"
	VMLeaving       VMState = "leaving"
	VMStuck         VMState = "stuck"
	VMTerminating   VMState = "terminating"
	VMNotMigratable VMState = "not_migratable"
)

// VMStates lists the states of a VM that runs.
func VMStates() []VMState { return vmStateLabels.values() }

// VMSigns is what the state of a VM follows from.
type VMSigns struct {
	Marked         bool // it is to leave its node: an evacuation is open
	FailedAttempts int  // of that evacuation
	Terminating    bool // its pod is being deleted
	NotMigratable  bool
}

// State returns the worst that the signs say.
func (s VMSigns) State() VMState {
	switch {
	case s.Marked && s.FailedAttempts > 0:
		return VMStuck
	case s.Marked:
		return VMLeaving
	case s.Terminating:
		return VMTerminating
	case s.NotMigratable:
		return VMNotMigratable
	}
	return VMRunning
}
