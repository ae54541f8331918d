package alerts

import (
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// EvictrailAbsent is the alert for an evictrail that nobody hears: the others are silent then, or speak of the past.
const EvictrailAbsent = "EvictrailAbsent"

// newCollectorAlerts is about what evictrail sees. job is that of its scrape.
func newCollectorAlerts(job string) []alert {
	up := selectSeries("up", matchLabel("job", job))
	return []alert{newAbsentAlert(up), newNoLeaderAlert(), newMultipleLeadersAlert(), newWatchStaleAlert(), newAuditStreamSilentAlert(), newClockSkewAlert(), newSeriesCappedAlert(), newNoticesFailingAlert()}
}

// newAbsentAlert names the cluster where evictrail's targets are known and down, and none where Prometheus knows no target. Its
// labels are the same either way in a Prometheus of one cluster, so that the time goes on when one becomes the other.
func newAbsentAlert(up string) alert {
	return alert{
		name: EvictrailAbsent, severity: Critical, of: perCluster, wait: "15m", board: boardOverview,
		expr: joinLines(
			maxBy(perCluster, up)+" < 1",
			"or",
			"0 * "+maxBy(perCluster, "absent("+up+")")),
		summary: "evictrail is not being scraped",
		description: theValue + " replicas of evictrail have answered Prometheus for 15 minutes. Every other evictrail alert is silent now, and if evictrail does not run " +
			"what happens is not recorded. KubeVirt keeps five finished migrations per VM: older ones are lost after some minutes of a retry loop.",
	}
}

func newNoLeaderAlert() alert {
	return alert{
		name: "EvictrailNoLeader", severity: Warning, of: perCluster, wait: "5m", board: boardCollector,
		expr: joinLines(
			countBy(perCluster, metrics.Leader),
			"unless "+matchOn(perCluster),
			"("+sumBy(perCluster, metrics.Leader)+" >= 1)"),
		summary: "No evictrail replica is the leader",
		description: "{{ $value }} replica(s) of evictrail run and none is the leader, who alone derives what facts mean. Evacuations, loops and the " +
			"metrics of them stand still. Facts are still recorded, so this is late, not lost.",
	}
}

func newMultipleLeadersAlert() alert {
	return alert{
		name: "EvictrailMultipleLeaders", severity: Warning, of: perCluster, wait: "2m", board: boardCollector,
		expr:    sumBy(perCluster, metrics.Leader) + " > 1",
		summary: theValue + " evictrail replicas claim leadership",
		description: theValue + " replicas of evictrail say that they are the leader. The database takes each fact once and refuses what an old leader derives, so the " +
			"record is right; but the lease, a clock or a paused pod is not.",
	}
}

// hangsAfter is how many seconds a watch may be silent. The API server sends a bookmark about once a minute, whatever happens. Where it sends none, a watch
// on which nothing happens is silent until client-go renews it, after five to ten minutes.
const hangsAfter = "720"

// newWatchStaleAlert finds a watch that hangs, or is refused. One that never began, for want of a right, has no last activity.
func newWatchStaleAlert() alert {
	of := []string{metrics.LabelResource}
	return alert{
		name: "EvictrailWatchStale", severity: Warning, of: of, wait: "5m", board: boardCollector,
		expr: anyOf(
			secondsSince(maxBy(of, metrics.WatchLastActivityTimestamp))+" > "+hangsAfter,
			maxBy(of, metrics.WatchSynced)+" == 0"),
		summary: "Watch on " + insertLabel(metrics.LabelResource) + " delivers nothing",
		description: "The watch on " + insertLabel(metrics.LabelResource) + " has delivered {{ if $value }}nothing for " + theTime + ", and the API server shows no sign of life on it either" +
			"{{ else }}not even its first list: see /readyz{{ end }}. What evictrail shows may be old, and of a VM " +
			"that is retried only the five newest migrations can be made up for.",
	}
}

// newAuditStreamSilentAlert needs an independent sign that requests were made: silence alone is peace. The silence is longer than evacuations are counted for
// and than counting takes, so that a lone evacuation is not held against the audit events of its own time.
func newAuditStreamSilentAlert() alert {
	return alert{
		name: "EvictrailAuditStreamSilent", severity: Warning, of: perCluster, wait: "2m", board: boardCollector,
		expr: joinLines(
			"("+secondsSince(maxBy(perCluster, metrics.AuditLastEventTimestamp))+" > 1200)",
			"and "+matchOn(perCluster),
			"("+maxBy(perCluster, metrics.AuditEnabled)+" == 1)",
			"and "+matchOn(perCluster),
			"("+sumBy(perCluster, increaseOf(metrics.EvacuationsStartedTotal, "15m"))+" > 0)"),
		summary: "Audit events stopped although VMs are being evicted",
		description: "VMs were marked for eviction in the last 15 minutes, but {{ if gt $value 1e9 }}no audit event has come since evictrail started" +
			"{{ else }}the last audit event came {{ $value | humanizeDuration }} ago{{ end }}. Who asks, with which words, and what is refused goes unrecorded.",
	}
}

func newClockSkewAlert() alert {
	of := []string{metrics.LabelPeer}
	return alert{
		name: "EvictrailClockSkew", severity: Warning, of: of, wait: "10m", board: boardCollector,
		expr:    maxBy(of, "abs("+metrics.ClockSkewSeconds+")") + " > 2",
		summary: "Clock differs from " + insertLabel(metrics.LabelPeer) + " by " + theTime,
		description: "evictrail's clock and that of " + insertLabel(metrics.LabelPeer) + " are " + theTime + " apart. Times of the cluster are recorded in whole seconds; " +
			"beyond that the order of what two sides did becomes a guess.",
	}
}

func newSeriesCappedAlert() alert {
	of := []string{metrics.LabelMetric}
	return alert{
		name: "EvictrailSeriesCapped", severity: Info, of: of, wait: "15m", board: boardCollector,
		expr:    maxBy(of, increaseOf(metrics.SeriesDroppedTotal, "1h")) + " > 0",
		summary: "Per-VM series of " + insertLabel(metrics.LabelMetric) + " hit the cap",
		description: insertLabel(metrics.LabelMetric) + " left out series in the last hour: more VMs are in an exceptional state than --max-vm-series allows. " +
			"Alerts about single VMs may miss some; the history in the database has them all.",
	}
}

// newNoticesFailingAlert is about a receiver that takes nothing. One that takes some of them is behind, and catches up.
func newNoticesFailingAlert() alert {
	of := []string{metrics.LabelReceiver}
	sent := func(what trail.Delivery) string {
		return sumBy(of, increaseOf(selectSeries(metrics.NoticesTotal, matchLabel(metrics.LabelResult, what)), "10m"))
	}
	return alert{
		name: "EvictrailNoticesFailing", severity: Warning, of: of, wait: "15m", board: boardCollector,
		expr: joinLines(
			"("+sent(trail.DeliveryFailed)+" > 0)",
			"unless "+matchOn(of),
			"("+sent(trail.DeliveryTaken)+" > 0)"),
		summary: "Receiver " + insertLabel(metrics.LabelReceiver) + " takes no notices",
		description: "In the last 10 minutes " + insertLabel(metrics.LabelReceiver) + " took none of the notices that evictrail sent; " + theCount + " tries failed. They wait in the database, and are sent " +
			"again every five seconds. What waits for longer than a week after what was sent last may be left out.",
	}
}
