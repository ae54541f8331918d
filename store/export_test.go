package store

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/evictrail/evictrail/trail"
)

func init() {
	derive = func(s trail.Subject, facts []trail.Fact, env *trail.Env, now time.Time) trail.Derived {
		if strings.HasSuffix(s.Name, "/buggy") && !BugFixed.Load() {
			panic("a bug")
		}
		return trail.Derive(s, facts, env, now)
	}
	leaderStill = 10 * time.Millisecond
}

// BugFixed is whether VMs of the name "buggy" can be derived.
var BugFixed atomic.Bool
