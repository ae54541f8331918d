package trail_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

var update = flag.Bool("update", false, "rewrite the expected parts of testdata/*.txtar")

// TestStories runs the stories of testdata: observations as JSON lines in, facts and rows as one-line texts out, and, where
// a story has a file "why", the paragraph about each VM. Each names in its comment the trap or rule that it holds.
func TestStories(t *testing.T) {
	t.Parallel()
	for _, s := range readStories(t) {
		t.Run(strings.TrimSuffix(filepath.Base(s.file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			facts := s.observeFacts()
			got := map[string]string{"facts": factTexts(facts), "rows": s.rowTexts(facts), "why-not": whyNotTexts(facts, s.asked, s.now)}
			if _, wanted := s.want["settings"]; wanted {
				got["settings"] = settingsText(facts, s.now)
			}
			if _, asked := s.want["why"]; asked {
				got["why"] = whyTexts(facts, s.now)
			}
			if *update {
				s.rewriteFiles(t, got)
				return
			}
			require.Equal(t, s.want["facts"], got["facts"], "facts")
			require.Equal(t, s.want["rows"], got["rows"], "rows")
			require.Equal(t, s.want["settings"], got["settings"], "settings")
			require.Equal(t, s.want["why"], got["why"], "why")
			require.Equal(t, s.want["why-not"], got["why-not"], "why-not")
		})
	}
}

// TestStoriesInAnyOrder derives the facts of each story in random orders, with repetitions: the rows stay the same.
func TestStoriesInAnyOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range readStories(t) {
		facts := s.observeFacts()
		want := s.rowTexts(facts)
		for range 20 / shareOfWork() {
			shuffled := append(slices.Clone(facts), facts[:len(facts)/2]...)
			r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			require.Equal(t, want, s.rowTexts(shuffled), s.file)
		}
	}
}

// TestStoriesAgain observes each story a second time, with the same tracker, with a resumed one and with a new one:
// there is no new fact, or none with another identity.
func TestStoriesAgain(t *testing.T) {
	t.Parallel()
	for _, s := range readStories(t) {
		first := s.observeFacts()
		ids := map[trail.FactID]bool{}
		for _, f := range first {
			ids[f.ID] = true
		}
		for name, tr := range map[string]*tracker.Tracker{"new": tracker.New("test"), "resumed": newResumedTracker(first)} {
			for _, o := range s.observations {
				for _, f := range tr.Observe(o) {
					require.True(t, ids[f.ID], "%s, %s tracker: new fact %s", s.file, name, factText(f))
				}
			}
		}
	}
}

// TestStoriesResumed stops after each observation of each story and goes on with a tracker that knows only the facts:
// in the end the same facts are there.
func TestStoriesResumed(t *testing.T) {
	t.Parallel()
	for _, s := range readStories(t) {
		want := factTexts(s.observeFacts())
		for cut := 0; cut < len(s.observations); cut += shareOfWork() {
			tr := tracker.New("test")
			var facts []trail.Fact
			for i, o := range s.observations {
				if i == cut {
					tr = newResumedTracker(facts)
					observeEvents(tr, s.observations[:i])
				}
				facts = append(facts, tr.Observe(o)...)
			}
			require.Equal(t, want, factTexts(facts), "%s, resumed before observation %d", s.file, cut)
		}
	}
}

// observeEvents lists the Events again, as a restarted collector does: their facts have the identity that they had,
// but for those that still wait for their migration and so are no facts yet.
func observeEvents(tr *tracker.Tracker, observations []tracker.Observation) {
	for _, o := range observations {
		if e, ok := o.(tracker.KubeEventObservation); ok {
			tr.Observe(e)
		}
	}
}

// newResumedTracker returns a tracker with the last fact of each aspect of the objects that are not gone, as a store returns them.
func newResumedTracker(facts []trail.Fact) *tracker.Tracker {
	gone := map[string]bool{}
	last := map[[2]string]trail.Fact{}
	for _, f := range facts {
		if f.What == trail.WhatGone {
			gone[f.Object.UID] = true
		}
		last[[2]string{f.Object.UID, f.What}] = f
	}
	tr := tracker.New("test")
	for _, f := range last {
		if !gone[f.Object.UID] && f.Object.Kind != trail.ObjectSource && f.Object.Kind != trail.ObjectRequest {
			tr.Resume(f)
		}
	}
	return tr
}

// readStories reads all stories.
func readStories(t *testing.T) []*story {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := make([]*story, 0, len(files))
	for _, file := range files {
		out = append(out, readStory(t, file))
	}
	return out
}

// story is one file of testdata.
type story struct {
	file         string
	archive      *txtar.Archive
	observations []tracker.Observation
	now          time.Time      // what the file "now" says, else the time of the last observation
	accounts     trail.Accounts // of the file "requesters"
	asked        []string       // about whom why-not is asked: namespace/name, or the name of a node
	want         map[string]string
}

func readStory(t *testing.T, file string) *story {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	s := &story{file: file, archive: archive, want: map[string]string{}}
	for _, f := range archive.Files {
		switch f.Name {
		case "observations":
		case "now":
			s.now = momentOf(t, strings.TrimSpace(string(f.Data)))
			continue
		case "requesters":
			s.accounts, err = trail.ParseAccounts(string(f.Data))
			require.NoError(t, err, file)
			continue
		case "asked":
			s.asked = strings.Fields(string(f.Data))
			continue
		default:
			s.want[f.Name] = string(f.Data)
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(f.Data))
		for lines.Scan() {
			if text := strings.TrimSpace(lines.Text()); text != "" && !strings.HasPrefix(text, "#") {
				s.observations = append(s.observations, parseObservation(t, file, text))
			}
		}
	}
	if s.now.IsZero() {
		for _, o := range s.observations {
			s.now = trail.Later(s.now, o.SeenAt())
		}
	}
	return s
}

func (s *story) observeFacts() []trail.Fact {
	tr := tracker.New("test")
	var facts []trail.Fact
	for _, o := range s.observations {
		facts = append(facts, tr.Observe(o)...)
	}
	return facts
}

func (s *story) rewriteFiles(t *testing.T, got map[string]string) {
	t.Helper()
	kept := slices.DeleteFunc(s.archive.Files, func(f txtar.File) bool {
		return !slices.Contains([]string{"observations", "now", "requesters", "asked"}, f.Name)
	})
	for _, name := range []string{"facts", "rows", "settings", "why", "why-not"} {
		if text := got[name]; text != "" {
			kept = append(kept, txtar.File{Name: name, Data: []byte(text)})
		}
	}
	s.archive.Files = kept
	require.NoError(t, os.WriteFile(s.file, txtar.Format(s.archive), 0o644))
}

// day is the day of all stories; times in them are "minutes:seconds" from its begin, or "25h10:00" with hours.
var day = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// storyLine is one line of a story.
type storyLine struct {
	T      string
	Listed bool
	Gone   bool
	VMI    *struct {
		UID, Name, Node, Phase, Strategy, Mark, Source, Created, Deleted string
		RV                                                               int
		Outdated                                                         bool
		Times                                                            map[string]string
		Conditions                                                       map[string]string
		State                                                            *storyState
	}
	Migration *struct {
		UID, Name, VMI, Phase, Evacuation, Priority, Created, Deleted, SendTo, Receive string
		RV                                                                             int
		Update, Volume                                                                 bool
		Node                                                                           string
		Times                                                                          map[string]string
		Conditions                                                                     map[string]string
		State                                                                          *storyState
	}
	Pod *struct {
		UID, Name, VMI, VMIUID, Node, Phase, Migration, Unschedulable, Disruption, Created, Deleted string
		InProgress                                                                                  *string
		PreferNo                                                                                    bool
		RV                                                                                          int
		Grace                                                                                       int // seconds
	}
	Node *struct {
		Name     string
		RV       int
		Cordoned bool
		Taints   []struct{ Key, Value, Effect, Added string }
		Ready    *struct{ Status, Reason, Message, Since string }
	}
	KubeVirt *struct {
		RV                int
		Version, TaintKey string
		Cluster, Outbound *int64 // the limits of migrations at once
	}
	MigrationPolicy *struct {
		UID, Name, Created string
		RV                 int
		VMIs               map[string]string
		PostCopy           *bool
		Bandwidth          string
	}
	EvictionRequest *struct {
		UID, Name, Pod, By, Intent, Created string
		RV                                  int
		Conditions                          map[string]string
	}
	Eviction *struct {
		UID, Name, Pod string
		RV             int
		Requesters     map[string]string // intents
		Responders     []struct {
			Name, State, Message, Start, Heartbeat, Done string
			Priority                                     int32
		}
		Conditions map[string]string
	}
	Policy      string
	Descheduler *struct { // settings of its policy, as they are stored
		RV       int
		Settings trail.DeschedulerSettings
	}
	Event *struct {
		UID, About, Name, ObjectUID, Reason, Message, Type string
		RV                                                 int
		Count                                              int64
	}
	List *struct {
		Kind    trail.ObjectKind
		RV      int
		Present []string
	}
	Scrape *struct {
		Target, Started, Version string
		Plugin                   bool
		Blocks                   []string // "reason node count"
	}
	Gap     *struct{ Source, Key, From, To, Cause string }
	Request *struct {
		Source                                         trail.RequestSource
		ID, Action, Name, User, Agent, Asked, Answered string
		Impersonator, From                             string
		Code                                           int
		Message, By, Reason, Review                    string
		DryRun                                         bool
	}
}

type storyState struct {
	UID, Source, Target, Start, End, Mode, Reason, AbortStatus string
	Failed, Completed, AbortRequested                          bool
	PerGiB, Progress, Memory                                   int64
}

func parseObservation(t *testing.T, file, line string) tracker.Observation {
	t.Helper()
	var l storyLine
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&l), "%s: %s", file, line)
	seen := tracker.Seen{At: momentOf(t, l.T), Listed: l.Listed, Gone: l.Gone}
	meta := func(uid, name string, rv int, created string) tracker.Meta {
		return tracker.Meta{UID: uid, Namespace: "shop", Name: name, ResourceVersion: strconv.Itoa(rv), CreatedAt: momentOf(t, created)}
	}
	switch {
	case l.VMI != nil:
		v := l.VMI
		o := tracker.VMIObservation{
			Seen: seen, Meta: meta(v.UID, v.Name, v.RV, cmp.Or(v.Created, "00:00")), Node: v.Node, Phase: cmp.Or(v.Phase, "Running"), Strategy: v.Strategy,
			Mark: v.Mark, EvictionSource: v.Source, Outdated: v.Outdated, PhaseTimes: parsePhaseTimes(t, v.Times), Conditions: parseConditions(t, v.Conditions), State: v.State.newMigrationState(t),
		}
		o.DeletionAt = momentOf(t, v.Deleted)
		return o
	case l.Migration != nil:
		m := l.Migration
		o := tracker.MigrationObservation{
			Seen: seen, Meta: meta(m.UID, m.Name, m.RV, m.Created), VMI: m.VMI, Phase: m.Phase, PhaseTimes: parsePhaseTimes(t, m.Times),
			Conditions: parseConditions(t, m.Conditions), State: m.State.newMigrationState(t), EvacuationNode: m.Evacuation, Evacuation: m.Evacuation != "",
			WorkloadUpdate: m.Update, VolumeUpdate: m.Volume, Priority: m.Priority, SendTo: m.SendTo, Receive: m.Receive,
		}
		if o.Phase == "" && len(o.PhaseTimes) > 0 {
			o.Phase = o.PhaseTimes[len(o.PhaseTimes)-1].Phase
		}
		if m.Node != "" {
			o.NodeSelector = map[string]string{"kubernetes.io/hostname": m.Node}
		}
		o.DeletionAt = momentOf(t, m.Deleted)
		return o
	case l.Pod != nil:
		p := l.Pod
		o := tracker.PodObservation{
			Seen: seen, Meta: meta(p.UID, p.Name, p.RV, p.Created), VMI: p.VMI, VMIUID: p.VMIUID, Node: p.Node, Phase: p.Phase, MigrationUID: p.Migration,
			Unschedulable: p.Unschedulable, HasInProgress: p.InProgress != nil, PreferNoEviction: p.PreferNo,
		}
		if p.Disruption != "" {
			reason, message, _ := strings.Cut(p.Disruption, ": ")
			o.Disruption = tracker.Condition{Type: "DisruptionTarget", Status: "True", Reason: reason, Message: message, ChangedAt: seen.At}
		}
		o.DeletionAt, o.DeletionGrace = momentOf(t, p.Deleted), time.Duration(p.Grace)*time.Second
		if p.InProgress != nil {
			o.EvictionInProgress = *p.InProgress
		}
		return o
	case l.Node != nil:
		m := meta("uid-"+l.Node.Name, l.Node.Name, l.Node.RV, "")
		m.Namespace = ""
		o := tracker.NodeObservation{Seen: seen, Meta: m, Unschedulable: l.Node.Cordoned}
		for _, taint := range l.Node.Taints {
			o.Taints = append(o.Taints, tracker.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect, AddedAt: momentOf(t, taint.Added)})
		}
		if c := l.Node.Ready; c != nil {
			o.Ready = &tracker.Condition{Type: "Ready", Status: c.Status, Reason: c.Reason, Message: c.Message, ChangedAt: momentOf(t, c.Since)}
		}
		return o
	case l.KubeVirt != nil:
		return tracker.KubeVirtObservation{
			Seen: seen, Meta: meta("kv", "kubevirt", l.KubeVirt.RV, ""), Settings: trail.KubeVirtSettings{
				Version: l.KubeVirt.Version, DrainTaintKey: l.KubeVirt.TaintKey, ParallelPerCluster: l.KubeVirt.Cluster,
				ParallelOutboundPerNode: l.KubeVirt.Outbound,
			},
		}
	case l.MigrationPolicy != nil:
		p := l.MigrationPolicy
		m := meta(p.UID, p.Name, p.RV, p.Created)
		m.Namespace = ""
		return tracker.MigrationPolicyObservation{
			Seen: seen, Meta: m, Settings: trail.MigrationPolicySettings{VMIs: p.VMIs, AllowPostCopy: p.PostCopy, Bandwidth: p.Bandwidth},
		}
	case l.EvictionRequest != nil:
		r := l.EvictionRequest
		return tracker.EvictionRequestObservation{
			Seen: seen, Meta: meta(r.UID, r.Name, r.RV, r.Created), Pod: r.Pod, PodUID: "uid-" + r.Pod,
			EvictionIntent: tracker.EvictionIntent{Requester: r.By, Intent: r.Intent}, Conditions: parseConditions(t, r.Conditions),
		}
	case l.Eviction != nil:
		e := l.Eviction
		o := tracker.EvictionObservation{Seen: seen, Meta: meta(e.UID, e.Name, e.RV, ""), Pod: e.Pod, PodUID: "uid-" + e.Pod, Conditions: parseConditions(t, e.Conditions)}
		for _, name := range slices.Sorted(maps.Keys(e.Requesters)) {
			o.Requesters = append(o.Requesters, tracker.EvictionIntent{Requester: name, Intent: e.Requesters[name]})
		}
		for _, r := range e.Responders {
			o.Responders = append(o.Responders, tracker.EvictionResponder{
				Name: r.Name, Priority: r.Priority, State: r.State, Message: r.Message, StartedAt: momentOf(t, r.Start), HeartbeatAt: momentOf(t, r.Heartbeat),
				CompletedAt: momentOf(t, r.Done),
			})
		}
		return o
	case l.Descheduler != nil:
		return tracker.PolicyObservation{Seen: seen, Meta: meta("policy", "policy", l.Descheduler.RV, ""), Settings: &l.Descheduler.Settings}
	case l.Policy != "":
		return tracker.PolicyObservation{Seen: seen, Meta: meta("policy", "policy", 1, ""), Text: l.Policy}
	case l.Event != nil:
		e := l.Event
		return tracker.KubeEventObservation{
			Seen: seen, Meta: meta(e.UID, e.UID, e.RV, ""), About: tracker.Involved{Kind: e.About, Namespace: "shop", Name: e.Name, UID: e.ObjectUID},
			Reason: e.Reason, Message: e.Message, Type: cmp.Or(e.Type, "Warning"), Count: e.Count,
		}
	case l.List != nil:
		present := map[string]struct{}{}
		for _, uid := range l.List.Present {
			present[uid] = struct{}{}
		}
		return tracker.ListObservation{Seen: seen, Kind: l.List.Kind, ResourceVersion: strconv.Itoa(l.List.RV), Present: present}
	case l.Request != nil:
		q := l.Request
		o := tracker.RequestObservation{
			Seen: seen, Source: cmp.Or(q.Source, trail.SourceAudit), ID: q.ID, Action: trail.Action(cmp.Or(q.Action, string(trail.ActionEvict))), Namespace: "shop", Name: q.Name,
			AskedAt: momentOf(t, q.Asked), Detail: trail.RequestDetail{
				User: q.User, Impersonator: q.Impersonator, SourceIP: q.From, Agent: q.Agent, AnsweredAt: momentOf(t, q.Answered), Code: q.Code, Message: q.Message, RequestedBy: q.By,
				StatedReason: q.Reason, Review: q.Review, DryRun: q.DryRun,
			},
		}
		if o.Source == trail.SourceAudit {
			o.Stage = "ResponseComplete"
		}
		if o.Action == trail.ActionChangeNode {
			o.Namespace = ""
		}
		return o
	case l.Scrape != nil:
		s := l.Scrape
		o := tracker.ScrapeObservation{
			Seen: seen, Target: cmp.Or(s.Target, "descheduler"), StartedAt: momentOf(t, s.Started), Version: s.Version, Plugin: s.Plugin,
		}
		for _, text := range s.Blocks {
			b := tracker.BlockCount{Namespace: "shop"}
			_, err := fmt.Sscan(text, &b.Reason, &b.Node, &b.Count)
			require.NoError(t, err, text)
			o.Blocks = append(o.Blocks, b)
		}
		return o
	case l.Gap != nil:
		g := l.Gap
		return tracker.GapObservation{Seen: seen, GapReport: trail.GapReport{
			Source: g.Source, Key: g.Key, OpenedAt: momentOf(t, g.From), ClosedAt: momentOf(t, g.To), Cause: trail.Reason(g.Cause),
		}}
	}
	t.Fatalf("%s: no observation in %s", file, line)
	return nil
}

func momentOf(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	minutes, seconds, ok := strings.Cut(text, ":")
	require.True(t, ok, "time %q: expected minutes:seconds, with hours as in 25h10:00", text)
	d, err := time.ParseDuration(minutes + "m" + seconds + "s")
	require.NoError(t, err)
	return day.Add(d)
}

func parsePhaseTimes(t *testing.T, in map[string]string) []trail.PhaseTime {
	t.Helper()
	var out []trail.PhaseTime
	for phase, at := range in {
		out = append(out, trail.PhaseTime{Phase: phase, At: momentOf(t, at)})
	}
	trail.LastPhase(out)
	return out
}

// parseConditions reads {"Type": "Status:Reason@time"}.
func parseConditions(t *testing.T, in map[string]string) []tracker.Condition {
	t.Helper()
	var out []tracker.Condition
	for typ, text := range in {
		text, at, _ := strings.Cut(text, "@")
		status, reason, _ := strings.Cut(text, ":")
		out = append(out, tracker.Condition{Type: typ, Status: status, Reason: reason, ChangedAt: momentOf(t, at)})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Type < out[j].Type })
	return out
}

func (s *storyState) newMigrationState(t *testing.T) *tracker.MigrationState {
	t.Helper()
	if s == nil {
		return nil
	}
	return &tracker.MigrationState{
		UID: s.UID, SourceNode: s.Source, TargetNode: s.Target, StartedAt: momentOf(t, s.Start), EndedAt: momentOf(t, s.End), Mode: s.Mode,
		Completed: s.Completed, Failed: s.Failed, FailureReason: s.Reason, AbortRequested: s.AbortRequested, AbortStatus: s.AbortStatus,
		CompletionTimeoutPerGiB: s.PerGiB, ProgressTimeout: s.Progress, GuestMemory: s.Memory << 30,
	}
}

// formatShortTime writes a time as stories do.
func formatShortTime(at time.Time) string {
	d := at.Sub(day)
	switch {
	case at.IsZero():
		return "-"
	case d < 0:
		return d.String()
	}
	text := fmt.Sprintf("%02d:%02d", d/time.Minute%60, d/time.Second%60)
	if d >= time.Hour {
		text = fmt.Sprintf("%dh", d/time.Hour) + text
	}
	if part := d % time.Second; part > 0 {
		text += strings.TrimRight(fmt.Sprintf(".%09d", part), "0")
	}
	return text
}

func factTexts(facts []trail.Fact) string {
	var b strings.Builder
	for _, f := range facts {
		b.WriteString(factText(f) + "\n")
	}
	return b.String()
}

func factText(f trail.Fact) string {
	late := ""
	if f.Late {
		late = " late"
	}
	return fmt.Sprintf("%s %s/%s %s %s=%q %s%s", formatShortTime(f.OccurredAt), f.Kind, f.Reason, f.Subject, f.What, f.Value, f.Clock, late)
}
