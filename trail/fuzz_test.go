package trail_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// FuzzRequests makes a history of one VM out of bytes: marks, pods, requests seen by the audit log, the observer or
// both, at times that overlap. Whatever it is, deriving it does not panic, has each request once, lets each mark have
// one request at most, and returns the same rows in any order.
func FuzzRequests(f *testing.F) {
	f.Add([]byte{0, 10, 3, 1, 5, 7, 2, 5, 9, 0, 20, 0, 3, 5, 1})
	f.Add([]byte{3, 0, 0, 3, 0, 1, 4, 1, 2, 4, 1, 3, 0, 2, 3, 5, 5, 5})
	f.Add([]byte{6, 1, 1, 0, 1, 0, 2, 1, 1, 1, 1, 1, 7, 9, 9})
	f.Fuzz(func(t *testing.T, in []byte) {
		facts := historyOf(in)
		env := trail.NewEnv(facts)
		subject := trail.VMISubject("shop", "db")
		own := slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool { return f.Subject != subject })
		d := trail.Derive(subject, own, env, day.Add(time.Hour))
		all := slices.Clone(d.Requests)
		for pod, asked := range env.Asked() {
			all = append(all, trail.Derive(pod, asked, env, day.Add(time.Hour)).Requests...) // those of pods that were not seen
		}
		audits, reviews := map[string]bool{}, map[string]bool{}
		for _, f := range facts {
			if q, ok := f.Detail.(*trail.RequestDetail); ok && q.Action == trail.ActionEvict && q.Source == trail.SourceAudit {
				audits[f.Object.UID] = true
			} else if ok && q.Action == trail.ActionEvict {
				reviews[f.Object.UID] = true
			}
		}
		seen, both, marks := 0, 0, map[trail.FactID]int{}
		for _, r := range all {
			switch r.Source {
			case string(trail.SourceAudit), string(trail.SourceAdmission):
				seen++
			case "admission+audit":
				both++
			}
			if r.Effect == trail.EffectEvacuation {
				marks[*r.EvacuationID]++
			}
			require.False(t, r.DryRun && r.EvacuationID != nil, "a dry run ties to nothing")
		}
		require.Equal(t, len(audits)+len(reviews), seen+2*both, "each request has one row")
		for id, n := range marks {
			require.Equal(t, 1, n, "requests of mark %s", id)
		}
		require.Len(t, marks, len(d.Evacuations), "each mark has a request, seen or inferred")
		r := rand.New(rand.NewPCG(uint64(len(in)), 3))
		for range 3 {
			again := append(slices.Clone(own), own...)
			r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			around := slices.Clone(facts)
			r.Shuffle(len(around), func(i, j int) { around[i], around[j] = around[j], around[i] })
			require.Equal(t, d, trail.Derive(subject, again, trail.NewEnv(around), day.Add(time.Hour)))
		}
	})
}

// historyOf reads three bytes a step: what happens, how long after the step before, and to or by whom.
func historyOf(in []byte) []trail.Fact {
	tr := tracker.New("fuzz")
	at, rv := day, 10
	var facts []trail.Fact
	users := []string{"alice", "bob", "system:serviceaccount:x:descheduler", ""}
	answers := []string{`Eviction triggered evacuation of VMI "shop/db"`, `Evacuation in progress: Eviction triggered evacuation of VMI "shop/db"`, "VMI db " + notMigratableText, ""}
	for len(in) >= 3 {
		what, wait, who := in[0], in[1], in[2]
		in = in[3:]
		rv++
		at = at.Add(time.Duration(wait) * 100 * time.Millisecond)
		meta := tracker.Meta{UID: "v1", Namespace: "shop", Name: "db", ResourceVersion: strconv.Itoa(rv), CreatedAt: day}
		seen := tracker.Seen{At: at, Listed: what&128 != 0}
		pod := "virt-launcher-db-" + strconv.Itoa(int(who>>4&1))
		request := func(source trail.RequestSource, id string, d trail.RequestDetail) {
			o := tracker.RequestObservation{Seen: tracker.Seen{At: at}, Source: source, ID: id, Action: trail.ActionEvict, Namespace: "shop", Name: pod, AskedAt: at, Detail: d}
			if source == trail.SourceAudit {
				o.Stage = "ResponseComplete"
				o.At = at.Add(time.Duration(who) * time.Second)
			}
			facts = append(facts, tr.Observe(o)...)
		}
		detail := trail.RequestDetail{
			User: users[who&3], AnsweredAt: at.Add(time.Duration(what>>4&3) * 50 * time.Millisecond), Code: 429, Message: answers[who>>2&3], DryRun: who&64 != 0,
		}
		if detail.Message == "" {
			detail.Code = 201
		}
		review := trail.RequestDetail{User: detail.User, DryRun: detail.DryRun}
		switch what & 7 {
		case 0:
			facts = append(facts, tr.Observe(tracker.VMIObservation{Seen: seen, Meta: meta, Node: "n1", Phase: "Running", Mark: "n1", Strategy: "LiveMigrate"})...)
		case 1:
			facts = append(facts, tr.Observe(tracker.VMIObservation{Seen: seen, Meta: meta, Node: "n1", Phase: "Running"})...)
		case 2:
			meta.UID, meta.Name = pod, pod
			facts = append(facts, tr.Observe(tracker.PodObservation{Seen: seen, Meta: meta, VMI: "db", VMIUID: "v1", Node: "n1", Phase: cmp.Or(map[bool]string{true: "Succeeded"}[who&32 != 0], "Running")})...)
		case 3:
			request(trail.SourceAudit, "a"+strconv.Itoa(rv), detail)
		case 4:
			request(trail.SourceAdmission, "r"+strconv.Itoa(rv), review)
		case 5:
			request(trail.SourceAdmission, "r"+strconv.Itoa(rv), review)
			request(trail.SourceAudit, "a"+strconv.Itoa(rv), detail)
		case 6:
			detail.Review = "r" + strconv.Itoa(rv)
			request(trail.SourceAdmission, detail.Review, review)
			request(trail.SourceAudit, "a"+strconv.Itoa(rv), detail)
		case 7:
			facts = append(facts, tr.Observe(tracker.VMIObservation{Seen: seen, Meta: meta, Node: "n1", Phase: "Failed"})...)
		}
	}
	return facts
}
