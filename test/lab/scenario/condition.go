package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/test/lab/truth"
)

// Condition is what the objects of the cluster may show of a VM. All that is stated must hold.
type Condition struct {
	VM       string `json:"vm"`
	Node     string `json:"node"`     // node on which its guest runs
	Stopped  *bool  `json:"stopped"`  // whether its guest runs nowhere
	Marked   *bool  `json:"marked"`   // whether it must leave its node
	Failed   int    `json:"failed"`   // how many of its migrations failed, at least
	Moved    int    `json:"moved"`    // how many of its migrations succeeded, at least
	Phase    string `json:"phase"`    // of one of its migrations
	Requests int    `json:"requests"` // how many evictions of its pods were asked for, at least
}

func (c Condition) checkAgainst(of Scenario) error {
	switch {
	case !of.hasVM(c.VM):
		return fmt.Errorf("until: no vm named %q", c.VM)
	case c.Node == "" && c.Stopped == nil && c.Marked == nil && c.Failed == 0 && c.Moved == 0 && c.Phase == "" && c.Requests == 0:
		return errors.New("until: one of node, stopped, marked, failed, moved, phase, requests is needed")
	case c.Node != "" && !slices.Contains(of.Nodes, c.Node):
		return fmt.Errorf("until: node %q is not one of %q", c.Node, of.Nodes)
	}
	return nil
}

// matchesHistory reports whether a history of the namespace shows it.
func (c Condition) matchesHistory(namespace string, h truth.History) bool {
	vm := namespace + "/" + c.VM
	on, marked, failed, moved, inPhase, requests := "", false, 0, 0, false, 0
	for _, s := range h.Stays {
		if s.VMI == vm && s.Until.IsZero() {
			on = s.Node
		}
	}
	for _, m := range h.Marks {
		marked = marked || m.VMI == vm && m.Until.IsZero()
	}
	for _, m := range h.Migrations {
		if m.VMI != vm {
			continue
		}
		switch m.Phase {
		case "Failed":
			failed++
		case "Succeeded":
			moved++
		}
		inPhase = inPhase || m.Phase == c.Phase
	}
	for _, r := range h.Requests {
		if r.Namespace == namespace && strings.HasPrefix(r.Pod, "virt-launcher-"+c.VM+"-") {
			requests++
		}
	}
	return (c.Node == "" || on == c.Node) && (c.Stopped == nil || (on == "") == *c.Stopped) && (c.Marked == nil || marked == *c.Marked) && failed >= c.Failed && moved >= c.Moved && (c.Phase == "" || inPhase) && requests >= c.Requests
}

// String is the condition in a line.
func (c Condition) String() string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(c.Node != "", "runs on %s", c.Node)
	add(c.Stopped != nil && *c.Stopped, "is stopped")
	add(c.Stopped != nil && !*c.Stopped, "is not stopped")
	add(c.Marked != nil && *c.Marked, "is marked")
	add(c.Marked != nil && !*c.Marked, "is not marked")
	add(c.Failed > 0, "has failed %d times", c.Failed)
	add(c.Moved > 0, "has moved %d times", c.Moved)
	add(c.Phase != "", "has a migration in %s", c.Phase)
	add(c.Requests > 0, "was asked to leave %d times", c.Requests)
	return c.VM + " " + strings.Join(parts, " and ")
}

func (s Step) timeoutOrDefault() time.Duration {
	if s.Within > 0 {
		return time.Duration(s.Within)
	}
	return defaultWithin
}
