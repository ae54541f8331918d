package trail

import "time"

// launcher is a virt-launcher pod, put together from its facts.
type launcher struct {
	namespace    string
	name         string
	vmi          string
	vmiUID       string
	node         string
	migrationUID string    // of the migration that it was made for; empty for the pod that a VM starts with
	createdAt    time.Time // as far as it is known
	terminating  time.Time // its deletion was asked for while it ran; zero where it was not
	endedAt      time.Time // its phase became final, or it was gone; zero while it lives
	disruption   *Fact     // what Kubernetes took it away for; nil where nothing did
}

// launchersOf gathers the pods of one VM by their names, which Kubernetes makes unique.
func launchersOf(facts []Fact) map[string]*launcher {
	pods := map[string]*launcher{}
	byUID := map[string]*launcher{}
	for i := range facts {
		f := &facts[i]
		d, ok := f.Detail.(*PodDetail)
		if !ok {
			continue
		}
		p := byUID[f.Object.UID]
		if p == nil {
			p = &launcher{namespace: f.Namespace, vmi: f.VMI, name: d.Pod}
			byUID[f.Object.UID], pods[d.Pod] = p, p
		}
		p.addFact(f, d)
	}
	return pods
}

func (p *launcher) addFact(f *Fact, d *PodDetail) {
	if f.VMIUID != "" {
		p.vmiUID = f.VMIUID
	}
	if f.Node != "" {
		p.node = f.Node
	}
	if f.MigrationUID != "" {
		p.migrationUID = f.MigrationUID
	}
	if !d.CreatedAt.IsZero() {
		p.createdAt = d.CreatedAt
	}
	switch f.Reason {
	case ReasonPodEnded, ReasonPodGone:
		if p.endedAt.IsZero() || f.OccurredAt.Before(p.endedAt) {
			p.endedAt = f.OccurredAt
		}
	case ReasonDisrupted:
		p.disruption = f
	case ReasonPodTerminating:
		p.terminating = f.OccurredAt
	default:
	}
}

// podSubject is what requests about the pod belong to.
func (p *launcher) podSubject() Subject { return Subject{SubjectPod, p.namespace + "/" + p.name} }

// ranGuest reports whether the pod held the guest at a time: it had not ended, and the guest was on its node.
func (p *launcher) ranGuest(l *life, at time.Time) bool {
	ended := !p.endedAt.IsZero() && p.endedAt.Before(at)
	over := !l.endedAt.IsZero() && l.endedAt.Before(at)
	return !ended && !over && p.vmiUID == l.uid && p.node != "" && l.nodeAt(at) == p.node
}

// markTerminating says of the stays that go on since when their pods are being deleted.
func markTerminating(lives []*life, pods map[string]*launcher) {
	for _, l := range lives {
		for i := range l.placements {
			stay := &l.placements[i]
			for _, p := range pods {
				if stay.ToAt.IsZero() && p.vmiUID == l.uid && p.node == stay.Node && p.endedAt.IsZero() && !p.terminating.IsZero() {
					stay.TerminatingSince = minNonZeroTime(stay.TerminatingSince, p.terminating)
				}
			}
		}
	}
}

// lastPodEnd returns the time at which the last pod of a VMI had ended; zero where one lives, or none is known.
func lastPodEnd(pods map[string]*launcher, vmiUID string) time.Time {
	var last time.Time
	for _, p := range pods {
		switch {
		case p.vmiUID != vmiUID:
		case p.endedAt.IsZero():
			return time.Time{}
		default:
			last = maxTime(last, p.endedAt)
		}
	}
	return last
}

// launcherOn finds the pod of a VMI on a node at a time, nil where none was seen.
func launcherOn(pods map[string]*launcher, vmiUID, node string, at time.Time) *launcher {
	var found *launcher
	for _, p := range pods {
		switch {
		case p.vmiUID != vmiUID || p.node != node || !p.endedAt.IsZero() && p.endedAt.Before(at):
		case found == nil || p.createdAt.After(found.createdAt) || p.createdAt.Equal(found.createdAt) && p.name < found.name:
			if !p.createdAt.After(at.Add(time.Second)) {
				found = p
			}
		}
	}
	return found
}
