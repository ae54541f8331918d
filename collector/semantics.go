package collector

import (
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// semantics is what the rules that are followed depend on, as it was seen last. It is the owner goroutine's.
type semantics struct {
	kubevirt    *trail.KubeVirtSettings
	descheduler *trail.DeschedulerSettings
	process     *trail.DeschedulerDetail
	logged      string
}

// logSemantics takes an observation in and logs which rules are followed, once KubeVirt was seen and whenever others are.
func (c *Collector) logSemantics(o tracker.Observation) {
	s := &c.semantics
	switch o := o.(type) {
	case tracker.KubeVirtObservation:
		if !o.Gone {
			s.kubevirt = &o.Settings
		}
	case tracker.PolicyObservation:
		if o.Settings != nil {
			s.descheduler = o.Settings
		}
	case tracker.ScrapeObservation:
		s.process = &trail.DeschedulerDetail{Target: o.Target, Version: o.Version, Plugin: o.Plugin}
	default:
		return
	}
	if s.kubevirt == nil {
		return
	}
	if text := trail.DescribeSemantics(s.kubevirt, s.descheduler, s.process); text != s.logged {
		s.logged = text
		c.Log.Info("rules in use", "semantics", text)
	}
}
