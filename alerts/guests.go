package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// The alerts about guests that the platform ended: one of each cause and requester, and one where there are many.
const (
	guestLost            = "EvictrailGuestLost"
	guestsLostWidespread = "EvictrailGuestsLostWidespread"
)

// newGuestAlerts are about VMs that were shut down or lost, not moved.
func newGuestAlerts() []alert { return []alert{newGuestLostAlert(), newLostWidespreadAlert()} }

// guestsEnded is how many guests were ended lately: the first is seen because the counters start at zero.
func guestsEnded(of []string) string { return sumBy(of, increaseOf(metrics.GuestsEndedTotal, "15m")) }

func newGuestLostAlert() alert {
	of := []string{metrics.LabelCause, metrics.LabelRequester}
	return alert{
		name: guestLost, severity: Warning, of: of, keep: "1h", board: boardOverview,
		expr:    guestsEnded(of) + " > 0",
		summary: "The platform shut down or lost a VM (" + insertLabel(metrics.LabelCause) + ", " + insertLabel(metrics.LabelRequester) + ")",
		description: "In the last 15 minutes {{ $value | printf \"%.0f\" }} VM(s) ended without their owner's will" + begunBy + "." + guestCauses +
			" They were not moved, and what they had in memory is lost.",
	}
}

// begunBy says what sort of program began it, where that is known.
const begunBy = "{{ with $labels." + metrics.LabelRequester + " }}{{ if ne . \"" + string(trail.RequesterUnknown) + "\" }}, begun by {{ . }}{{ end }}{{ end }}"

// guestCauses says what the causes mean.
var guestCauses = explainLabel(metrics.LabelCause, trail.PlatformEndings()...)

// newLostWidespreadAlert needs five: a drain that shuts down the few VMs that cannot be migrated is somebody's plan.
func newLostWidespreadAlert() alert {
	return alert{
		name: guestsLostWidespread, severity: Critical, of: perCluster, keep: "1h", board: boardOverview,
		expr:    guestsEnded(perCluster) + " >= 5",
		summary: "The platform shut down or lost {{ $value | printf \"%.0f\" }} VMs within 15 minutes",
		description: "In the last 15 minutes {{ $value | printf \"%.0f\" }} VMs ended without their owners' will: they were not moved, and what they had in memory is lost. " +
			"So many at once have one cause: a taint, a drain, a descheduler, an update of KubeVirt, or a node that fails.",
	}
}
