package storetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// SourceFacts is what three sources report about the same days: the watches, the observer and the audit log.
type SourceFacts struct {
	r       *rand.Rand
	tracker *tracker.Tracker
	rv, ids int
	at      time.Time

	Watched, Reviewed, Audited []trail.Fact
}

// GenerateSourceFacts makes up an incident: VMs that several ask to evict, once and again, also as dry runs; attempts, migrations by
// users, aborts, cancellations, cordons, some of it as another user. Each request is seen by the audit log, the observer, both or neither.
func GenerateSourceFacts(seed uint64) *SourceFacts {
	s := &SourceFacts{r: rand.New(rand.NewPCG(seed, 1)), tracker: tracker.New("c1"), rv: 100, at: Start}
	s.addObservation(tracker.KubeVirtObservation{Meta: s.nextMeta("kv", "kubevirt"), Seen: s.seenNow(), Settings: trail.KubeVirtSettings{Version: []string{"v1.6.0", "v1.8.4"}[s.r.IntN(2)]}})
	s.addObservation(tracker.NodeObservation{Meta: s.nextMeta("node-1", "n1"), Seen: s.seenNow()})
	for i := range 1 + s.r.IntN(3) {
		vm := fmt.Sprintf("db-%d", i)
		s.addObservation(tracker.VMIObservation{Meta: s.nextMeta("uid-"+vm, vm), Seen: s.seenNow(), Node: "n1", Phase: "Running", Strategy: "LiveMigrate"})
		s.addObservation(tracker.PodObservation{Meta: s.nextMeta("pod-"+vm, "virt-launcher-"+vm), Seen: s.seenNow(), VMI: vm, VMIUID: "uid-" + vm, Node: "n1", Phase: "Running"})
		for range 1 + s.r.IntN(4) {
			s.addStep(vm)
		}
	}
	return s
}

func (s *SourceFacts) addStep(vm string) {
	users := []string{"alice", "bob", "system:serviceaccount:kube-system:descheduler-sa"}
	user := users[s.r.IntN(len(users))]
	vmi := tracker.VMIObservation{Meta: s.nextMeta("uid-"+vm, vm), Seen: s.seenNow(), Node: "n1", Phase: "Running", Strategy: "LiveMigrate"}
	switch s.r.IntN(6) {
	case 0: // evicted, asked again, cancelled
		asked := s.at
		vmi.Mark = "n1"
		s.addObservation(vmi)
		s.addRequest(trail.ActionEvict, "virt-launcher-"+vm, user, asked, 429, `Eviction triggered evacuation of VMI "shop/`+vm+`"`)
		s.addFailedAttempt(vm)
		for range s.r.IntN(4) {
			s.addRequest(trail.ActionEvict, "virt-launcher-"+vm, users[s.r.IntN(len(users))], s.advanceClock(), 429, `Evacuation in progress: Eviction triggered evacuation of VMI "shop/`+vm+`"`)
		}
		vmi.Meta, vmi.Mark = s.nextMeta("uid-"+vm, vm), ""
		vmi.Seen = s.seenNow()
		s.addObservation(vmi)
		s.addRequest(trail.ActionCancel, vm, user, s.at.Add(-50*time.Millisecond), 200, "")
	case 1: // refused
		s.addRequest(trail.ActionEvict, "virt-launcher-"+vm, user, s.advanceClock(), 429, "VMI "+vm+" is configured with an eviction strategy but is not live-migratable")
	case 2: // made and deleted by a user
		m := s.addMigration(vm, false)
		s.addRequest(trail.ActionCreateMigration, []string{m.Name, ""}[s.r.IntN(2)], user, m.CreatedAt, 201, "")
		if s.r.IntN(2) == 0 {
			return
		}
		m.Meta = tracker.Meta{UID: m.UID, Namespace: "shop", Name: m.Name, ResourceVersion: s.nextMeta("", "").ResourceVersion, CreatedAt: m.CreatedAt, DeletionAt: s.at}
		m.Seen = s.seenNow()
		s.addObservation(m)
		s.addRequest(trail.ActionDeleteMigration, m.Name, users[0], s.at, 200, "")
	case 3:
		s.addMigration(vm, false)
		s.addRequest(trail.ActionMigrate, vm, user, s.at, 202, "")
	case 4:
		s.addObservation(tracker.NodeObservation{Meta: s.nextMeta("node-1", "n1"), Seen: s.seenNow(), Unschedulable: s.r.IntN(2) == 0})
		s.addRequest(trail.ActionChangeNode, "n1", user, s.at, 200, "")
	case 5: // allowed: the guest goes down
		s.addRequest(trail.ActionEvict, "virt-launcher-"+vm, user, s.advanceClock(), 201, "")
		vmi.Phase = "Failed"
		vmi.Meta = s.nextMeta("uid-"+vm, vm)
		vmi.Seen = s.seenNow()
		s.addObservation(vmi)
	}
}

func (s *SourceFacts) advanceClock() time.Time {
	s.at = s.at.Add(time.Duration(1+s.r.IntN(20_000)) * time.Millisecond)
	return s.at
}

func (s *SourceFacts) nextMeta(uid, name string) tracker.Meta {
	s.rv++
	s.advanceClock()
	return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: strconv.Itoa(s.rv), CreatedAt: s.at.Truncate(time.Second)}
}

// seenNow is how an object is seen live at this moment.
func (s *SourceFacts) seenNow() tracker.Seen { return tracker.Seen{At: s.at} }

// addObservation watches an object change.
func (s *SourceFacts) addObservation(o tracker.Observation) {
	s.Watched = append(s.Watched, s.tracker.Observe(o)...)
}

func (s *SourceFacts) addMigration(vm string, evacuation bool) tracker.MigrationObservation {
	s.ids++
	name := fmt.Sprintf("m-%d", s.ids)
	m := tracker.MigrationObservation{Meta: s.nextMeta("uid-"+name, name), Seen: s.seenNow(), VMI: vm, Evacuation: evacuation, Phase: trail.PhasePending}
	if evacuation {
		m.EvacuationNode = "n1"
	}
	s.addObservation(m)
	return m
}

func (s *SourceFacts) addFailedAttempt(vm string) {
	m := s.addMigration(vm, true)
	created := m.CreatedAt
	m.Meta = s.nextMeta(m.UID, m.Name)
	m.CreatedAt, m.Phase, m.Seen = created, trail.PhaseFailed, s.seenNow()
	s.addObservation(m)
	value, threshold := s.r.Float64(), 0.5
	s.addObservation(tracker.LoadObservation{
		Seen: s.seenNow(), Origin: trail.OriginPrometheus, Of: trail.Occasion{Namespace: "shop", VMI: vm, MigrationUID: m.UID, SourceNode: "n1", Moment: trail.MomentAttempt, At: s.at},
		Readings: []trail.Reading{{Node: "n1", Metric: "cpu", Sample: trail.SampleBefore, At: s.at, Value: &value, Threshold: &threshold}},
	})
}

// addRequest is seen by the audit log, by the observer, by both or by nobody; evictions alone have an observer.
func (s *SourceFacts) addRequest(action trail.Action, name, user string, asked time.Time, code int, message string) {
	s.ids++
	review, seen := fmt.Sprintf("review-%d", s.ids), s.r.IntN(4)
	o := tracker.RequestObservation{
		Source: trail.SourceAudit, ID: fmt.Sprintf("audit-%d", s.ids), Stage: "ResponseComplete", Action: action, Namespace: "shop", Name: name, AskedAt: asked,
		Detail: trail.RequestDetail{User: user, Agent: "kubectl/v1", AnsweredAt: asked.Add(80 * time.Millisecond), Code: code, Message: message, DryRun: s.r.IntN(8) == 0},
	}
	if o.Detail.SourceIP = "203.0.113.7, 10.0.0.5"; s.ids%3 == 0 {
		o.Detail.Impersonator = "carol"
	}
	o.At = asked.Add(30 * time.Second)
	if action == trail.ActionEvict && seen&2 != 0 {
		r := o
		r.Source, r.ID, r.Stage, r.At = trail.SourceAdmission, review, "", asked.Add(10*time.Millisecond)
		r.Detail = trail.RequestDetail{User: user, DryRun: o.Detail.DryRun, StatedReason: "because"}
		s.Reviewed = append(s.Reviewed, s.tracker.Observe(r)...)
		if s.r.IntN(2) == 0 {
			o.Detail.Review = review
		}
	}
	if seen&1 != 0 || action != trail.ActionEvict {
		s.Audited = append(s.Audited, s.tracker.Observe(o)...)
	}
}
