package tracker

import (
	"encoding/json"
	"strconv"

	"github.com/evictrail/evictrail/trail"
)

// KubeVirtObservation is what is read of the KubeVirt CR: the rules in force.
type KubeVirtObservation struct {
	Seen
	Meta
	Settings trail.KubeVirtSettings
}

// PolicyObservation is the descheduler's policy, or settings of it that were stated by hand. Its presence says that a
// descheduler is at work. One that was not read from the cluster has no ResourceVersion.
type PolicyObservation struct {
	Seen
	Meta
	Text     string                     // the policy as it was read; empty where the settings were stated by hand
	Settings *trail.DeschedulerSettings // nil where the text could not be read as a policy
	Problem  string                     // why Settings is nil; else empty
}

// whatSettings is the aspect under which the rules in force are recorded.
const whatSettings = "settings"

func (t *Tracker) observeKubeVirt(o KubeVirtObservation) []trail.Fact {
	return t.recordConfig(trail.ObjectKubeVirt, o.Meta, o.Seen, trail.ReasonKubeVirtSettings, trail.ConfigDetail{KubeVirt: &o.Settings}, "spec.configuration")
}

// observePolicy records a policy. One without a resourceVersion gets the next number after its last change, so that a
// policy that comes back is a change too, and reading the same again is none.
func (t *Tracker) observePolicy(o PolicyObservation) []trail.Fact {
	if o.ResourceVersion == "" {
		o.ResourceVersion = t.nextVersion(trail.ObjectPolicy, o.UID)
	}
	d := trail.ConfigDetail{Policy: o.Text, Descheduler: o.Settings, Problem: o.Problem}
	return t.recordConfig(trail.ObjectPolicy, o.Meta, o.Seen, trail.ReasonDeschedulerPolicy, d, "policy.yaml")
}

func (t *Tracker) nextVersion(kind trail.ObjectKind, uid string) string {
	last := uint64(0)
	if o := t.objects[objectKey{kind, uid}]; o != nil {
		_, version := trail.SplitVersion(o.rv)
		last, _ = strconv.ParseUint(version, 10, 64)
	}
	return strconv.FormatUint(last+1, 10)
}

func (t *Tracker) recordConfig(kind trail.ObjectKind, m Meta, seen Seen, reason trail.Reason, d trail.ConfigDetail, evidence string) []trail.Fact {
	r := t.openRecorder(kind, m, seen, trail.Subject{Kind: trail.SubjectConfig, Name: string(kind)})
	if r == nil || seen.Gone {
		return nil
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic("marshal settings: " + err.Error()) // plain strings, numbers and lists: cannot fail
	}
	if r.changeAspect(whatSettings, trail.Digest(string(text))) {
		value, _ := r.object.aspectValue(whatSettings)
		r.recordChange(trail.KindConfigSeen, reason, whatSettings, value).withEvidence(evidence).withDetail(&d)
	}
	return r.facts
}
