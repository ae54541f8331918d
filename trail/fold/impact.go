package fold

import (
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Impact names what new facts change for other subjects than their own. It is the only definition of these dependencies; a Source
// finds the subjects among all that are recorded.
type Impact struct {
	// Nodes whose state changed, or Everywhere for rules in force and gaps: affected are VMs with an evacuation_marked, a migration_seen or a
	// migration_completed there, or a launcher_pod that was disrupted there, since Since. Readiness names those nodes that became ready or
	// not ready: affected are VMs with migrations to them that had not finished by Since.
	Nodes      []string
	Readiness  []string
	Everywhere bool
	Since      time.Time // zero: ever

	AllNodes bool       // settings changed: nodes, and the cluster as a whole, are derived by them
	Settings *time.Time // since when other settings are in force: affected are the subjects of requests since then

	Pods       []trail.Subject // about which something was requested: affected is the VM whose launcher pod it is
	Migrations []MigrationLife // the same of migrations by name or, where the API server had yet to choose it, created within a minute of Created
	Requested  time.Time       // the earliest of these requests
}

// Affected are subjects that an Impact names.
type Affected struct {
	VMs        []trail.Subject // by Nodes, Readiness and Everywhere: dirty since Impact.Since
	Nodes      []trail.Subject // by AllNodes: dirty since Impact.Since
	Requesters []trail.Subject // by Settings: dirty since then
	Owners     []trail.Subject // VMs, by Pods and Migrations: dirty since Impact.Requested
	Owned      []trail.Subject // those of Pods that are a launcher pod of a VM
}

func (i *Impact) isEmpty() bool {
	return len(i.Nodes) == 0 && !i.Everywhere && i.Settings == nil && len(i.Pods) == 0 && len(i.Migrations) == 0
}

// AskedAround is how far what is asked of a node may be from what becomes of it.
//
// Source: trail.actionSlack, and the API server's --request-timeout of a minute.
const AskedAround = 2 * time.Minute

// isNodeChange reports whether a fact says what became of a node that a user may have asked for.
func isNodeChange(f *trail.Fact) bool {
	return f.Kind == trail.KindNodeCordoned || f.Kind == trail.KindNodeUncordoned || f.Kind == trail.KindNodeTainted || f.Kind == trail.KindNodeUntainted
}

// hasNoEffect reports whether a fact changes nothing: that a user patched a node only says who caused what became of it then.
func hasNoEffect(f *trail.Fact, known []trail.Fact) bool {
	return f.Subject.Kind == trail.SubjectNode && f.Kind == trail.KindActionRequested && !slices.ContainsFunc(known, func(other trail.Fact) bool {
		return isNodeChange(&other) && other.OccurredAt.Sub(f.OccurredAt).Abs() <= AskedAround
	})
}

// dirtySince returns from when on a fact changes the rows of its own subject; zero: it may be ever. What a cordon or a taint means may have begun
// at any time; that a user asked for one only says who that was.
func dirtySince(f *trail.Fact) time.Time {
	switch d, counter := f.Detail.(*trail.BlocksDetail); {
	case counter:
		return minDueTime(f.OccurredAt, d.Since)
	case f.Kind == trail.KindActionRequested || f.Subject.Kind == trail.SubjectNamespace:
		return f.OccurredAt
	case f.Subject.Kind == trail.SubjectVMI:
		return f.Since()
	}
	return time.Time{}
}

// impactOf returns what new facts change for others. facts returns all facts of a subject that is in memory.
func impactOf(fresh []trail.Fact, facts func(trail.Subject) []trail.Fact) Impact {
	var i Impact
	bounded := false
	since := func(at time.Time) {
		if !bounded || at.Before(i.Since) {
			i.Since, bounded = at, true
		}
	}
	for n := range fresh {
		f := &fresh[n]
		switch f.Subject.Kind {
		case trail.SubjectPod:
			i.addRequest(f.OccurredAt, MigrationLife{}, f.Subject)
		case trail.SubjectNamespace:
			i.addRequest(f.OccurredAt, MigrationLife{f.Namespace, f.Migration, f.OccurredAt, f.OccurredAt}, trail.Subject{})
		case trail.SubjectNode:
			if f.Kind == trail.KindBlocksObserved { // what the counters say changes no mark
				continue
			}
			if !slices.Contains(i.Nodes, f.Subject.Name) {
				i.Nodes = append(i.Nodes, f.Subject.Name)
			}
			if f.OfOutage() && !slices.Contains(i.Readiness, f.Subject.Name) {
				i.Readiness = append(i.Readiness, f.Subject.Name)
			}
			since(timeBefore(f, facts(f.Subject)))
		case trail.SubjectSource:
			i.Everywhere = true
			since(f.OccurredAt.Add(-time.Second))
		case trail.SubjectConfig:
			i.Everywhere, i.AllNodes = true, true
			switch before := timeBefore(f, facts(f.Subject)); {
			case f.Kind == trail.KindDeschedulerStarted && !before.IsZero(): // its memory begins again; the first says who may have asked before
				since(f.OccurredAt.Add(-time.Second))
			default:
				since(before)
			}
			if f.Kind == trail.KindConfigSeen {
				at := trail.SettingsSince(*f, facts(f.Subject))
				if since(at); i.Settings == nil || at.Before(*i.Settings) {
					i.Settings = &at
				}
			}
		case trail.SubjectVMI, trail.SubjectUnknown, trail.SubjectCluster:
		}
	}
	return i
}

// addRequest adds a request, made at a time, about a migration or a pod.
func (i *Impact) addRequest(at time.Time, about MigrationLife, pod trail.Subject) {
	if len(i.Pods)+len(i.Migrations) == 0 || at.Before(i.Requested) {
		i.Requested = at
	}
	if about.Namespace != "" {
		i.Migrations = append(i.Migrations, about)
	} else if !slices.Contains(i.Pods, pod) {
		i.Pods = append(i.Pods, pod)
	}
}

// timeBefore returns the time of the last fact of the same subject that is older than f; zero where there is none. The counters of the descheduler,
// and what is asked of a node, stand beside the state of the subject and do not count.
func timeBefore(f *trail.Fact, known []trail.Fact) time.Time {
	var last time.Time
	for i := range known {
		other := &known[i]
		if other.Kind == trail.KindBlocksObserved || f.Subject.Kind == trail.SubjectNode && other.Kind == trail.KindActionRequested {
			continue
		}
		if other.OccurredAt.Before(f.OccurredAt) && other.OccurredAt.After(last) {
			last = other.OccurredAt
		}
	}
	return last
}

// AskedSlack is how long before a migration was created or deleted, and after, requests for that are looked for.
const AskedSlack = time.Minute

// podSubject returns what requests about the pod that a fact is about belong to.
func podSubject(f *trail.Fact, d *trail.PodDetail) trail.Subject {
	return trail.Subject{Kind: trail.SubjectPod, Name: f.Namespace + "/" + d.Pod}
}

// podsOf returns the pods that facts of a VM name.
func podsOf(facts []trail.Fact) []trail.Subject {
	var out []trail.Subject
	for i := range facts {
		if d, ok := facts[i].Detail.(*trail.PodDetail); ok {
			if s := podSubject(&facts[i], d); !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// livesOf returns the migrations among facts of a VM that a user may have created or deleted, by UID.
func livesOf(facts []trail.Fact) map[string]MigrationLife {
	out := map[string]MigrationLife{}
	for i := range facts {
		f := &facts[i]
		end, ended := f.Detail.(*trail.EndDetail)
		if f.Subject.Kind != trail.SubjectVMI || f.Kind != trail.KindMigrationSeen && (!ended || end.Final) {
			continue
		}
		l, known := out[f.MigrationUID]
		if !known {
			l = MigrationLife{Namespace: f.Namespace, Name: strings.Clone(f.Migration), Created: f.OccurredAt, Deleted: f.OccurredAt}
		}
		if f.OccurredAt.Before(l.Created) {
			l.Created = f.OccurredAt
		}
		l.Deleted = maxTime(l.Deleted, f.OccurredAt)
		out[f.MigrationUID] = l
	}
	return out
}
