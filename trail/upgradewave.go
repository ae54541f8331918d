package trail

import "time"

// WaveOutcome says how an upgrade wave ended: view upgrade_waves computes it.
type WaveOutcome string

// The outcomes of an upgrade wave.
const (
	WaveCompleted  WaveOutcome = "completed"
	WaveStopped    WaveOutcome = "stopped"
	WaveSuperseded WaveOutcome = "superseded"
)

// Label returns the label of the outcome.
func (o WaveOutcome) Label() Label { return waveOutcomeLabels.of(o) }

// UpgradeWave is how far VMs are on the way to a new version of KubeVirt: a row of view upgrade_waves.
type UpgradeWave struct {
	StartedAt   time.Time `json:"started_at"`
	VersionFrom string    `json:"version_from"` // empty where unknown
	VersionTo   string    `json:"version_to"`   // the same
	VMs         int       `json:"vms"`
	Left        int       `json:"vms_left"`
	Staying     int       `json:"vms_staying"` // of these, how many KubeVirt does not move
	Moved       int       `json:"moved"`
	ShutDown    int       `json:"shut_down"`
	Failed      int       `json:"failed_attempts"`
	MovedAgain  int       `json:"moved_again"`
	Summary     string    `json:"summary"` // what is left, and a forecast, in words
}

// Name says from which version to which the VMs go.
func (w *UpgradeWave) Name() string {
	switch {
	case w.VersionTo == "":
		return "A new version of KubeVirt"
	case w.VersionFrom == "":
		return "KubeVirt " + w.VersionTo
	}
	return "KubeVirt " + w.VersionFrom + " to " + w.VersionTo
}

// Done returns how many VMs in a hundred are done.
func (w *UpgradeWave) Done() int {
	if w.VMs == 0 {
		return 0
	}
	return 100 * (w.VMs - w.Left) / w.VMs
}
