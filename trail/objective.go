package trail

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Objectives say within what time of its mark an evacuation is to have moved its guest, by the class of who asked (AnyRequester for those
// that are not named), by CLASS@NAMESPACE for the VMs of one namespace, or by CLASS@pool/POOL for those on the nodes of one pool. Durations
// are stored in nanoseconds. Those that are in use are not changed; none where it is empty.
type Objectives map[string]time.Duration

// AnyRequester stands for every class of requesters that has no objective of its own.
const AnyRequester RequesterClass = "any"

// NoObjectives states, alone, that there are none.
const NoObjectives = "none"

// DefaultObjectives are those where none are stated: maintenance plans for a quarter of an hour per guest.
func DefaultObjectives() Objectives {
	return Objectives{string(RequesterNodeMaintenance): 15 * time.Minute}
}

// ParseObjectives reads objectives as they are stated, CLASS=DURATION, CLASS@NAMESPACE=DURATION or
// CLASS@pool/POOL=DURATION each, or NoObjectives alone. They stand instead of the default ones.
func ParseObjectives(stated []string) (Objectives, error) {
	if len(stated) == 1 && strings.TrimSpace(stated[0]) == NoObjectives {
		return Objectives{}, nil
	}
	o, classes := Objectives{}, append(Requesters(), AnyRequester)
	for _, text := range stated {
		of, value, _ := strings.Cut(text, "=")
		of = strings.TrimSpace(of)
		class, scope, scoped := strings.Cut(of, "@")
		switch d, err := time.ParseDuration(strings.TrimSpace(value)); {
		case class == NoObjectives:
			return nil, fmt.Errorf("%s: stands alone", NoObjectives)
		case !slices.Contains(classes, RequesterClass(class)):
			return nil, fmt.Errorf("%s: expected CLASS=DURATION with one of %s, or %s", text, classNames(classes), NoObjectives)
		case scoped && !isScope.MatchString(scope):
			return nil, fmt.Errorf("%s: expected a namespace or a pool after @, such as %s@shop=15m or %s@%sgpu=15m", text, class, class, poolScope)
		case err != nil || d <= 0:
			return nil, fmt.Errorf("%s: expected a positive duration, such as %s=15m", text, of)
		case o[of] != 0:
			return nil, fmt.Errorf("%s: %s has one already, %s", text, of, formatBriefDuration(o[of]))
		default:
			o[of] = d
		}
	}
	return o, nil
}

// poolScope begins what an objective is for where it is for a pool.
const poolScope = "pool/"

// isScope matches a namespace, and the pool of a node after poolScope (LabelsDetail.Pool).
//
// Source: k8s.io/apimachinery pkg/util/validation, IsDNS1123Label.
var isScope = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?|pool/[^=@\s]+)$`)

// String writes objectives as ParseObjectives takes them, in the order of Requesters, those of namespaces behind that of all.
func (o Objectives) String() string {
	var out []string
	keys := slices.Sorted(maps.Keys(o))
	for _, class := range append(Requesters(), AnyRequester) {
		for _, of := range keys {
			if of == string(class) || strings.HasPrefix(of, string(class)+"@") {
				out = append(out, of+"="+formatBriefDuration(o[of]))
			}
		}
	}
	if len(out) == 0 {
		return NoObjectives
	}
	return strings.Join(out, ", ")
}

func classNames(classes []RequesterClass) string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

// findObjective returns the objective of a class of requesters for a VM of a namespace on a node of a pool, zero where there is none. What is
// stated of the namespace goes before what is stated of the pool, and that before what is stated of all.
func (o Objectives) findObjective(class RequesterClass, namespace, pool string) time.Duration {
	for _, scope := range []string{"@" + namespace, "@" + poolScope + pool, ""} {
		for _, of := range []RequesterClass{class, AnyRequester} {
			if d, stated := o[string(of)+scope]; stated {
				return d
			}
		}
	}
	return 0
}

// evaluateObjective reports whether the evacuation kept to its objective: yes once the guest was moved in time, no from the moment on at which the time is over and it
// was not. One that was called off in time, or whose VMI ended in time, was not put to the test: nothing is said of it.
func (e *Evacuation) evaluateObjective(env *Env, now *moment) {
	within := env.thresholds.Objectives.findObjective(e.RequesterClass, e.Namespace, env.findLabels(e.Node, e.MarkedAt).Pool)
	if within == 0 {
		return
	}
	e.Objective = Span(within)
	switch due := e.computeDeadline(); {
	case e.EndedAt.IsZero() || e.EndedAt.After(due):
		if now.hasReached(due) {
			e.ObjectiveMet = new(false)
		}
	case e.Outcome == OutcomeMigrated:
		e.ObjectiveMet = new(true)
	}
}

// computeDeadline returns until when the guest is to be moved, inclusive.
func (e *Evacuation) computeDeadline() time.Time { return e.MarkedAt.Add(time.Duration(e.Objective)) }

// JudgedAt returns when it was decided whether the evacuation kept to its objective; zero while it is not.
func (e *Evacuation) JudgedAt() time.Time {
	switch {
	case e.ObjectiveMet == nil:
		return time.Time{}
	case *e.ObjectiveMet:
		return e.EndedAt
	}
	return e.computeDeadline()
}

// hasMissedObjective reports whether the time was over before the guest was moved.
func (e *Evacuation) hasMissedObjective() bool { return e.ObjectiveMet != nil && !*e.ObjectiveMet }

// describeDelay says by how much the evacuation was late; empty where it was not, or has no objective.
func (e *Evacuation) describeDelay() string {
	switch {
	case !e.hasMissedObjective():
		return ""
	case e.Outcome == OutcomeMigrated:
		return fmt.Sprintf("It was to leave within %s; it took %s.", formatBriefDuration(time.Duration(e.Objective)), formatSpan(e.EndedAt.Sub(e.MarkedAt)))
	}
	return fmt.Sprintf("It was to leave within %s, by %s.", formatBriefDuration(time.Duration(e.Objective)), FormatClock(e.computeDeadline()))
}
