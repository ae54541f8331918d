package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// whatIf asks what would have been different of a database with one recording.
func whatIf(t *testing.T, url string, args ...string) whatif.Answer {
	t.Helper()
	code, out, stderr := runCommand(t, append([]string{"whatif", "-o", "json", "--database-url", url}, args...)...)
	require.Equal(t, exitFound, code, stderr)
	var a whatif.Answer
	require.NoError(t, json.Unmarshal([]byte(out), &a))
	return a
}

// inForce returns the policy that was in force, said in full.
func inForce(a whatif.Answer) string {
	p := whatif.Policy{}
	if a.Rules != nil {
		p.Cooldown, p.NodeLimit, p.TotalLimit = a.Rules.Cooldown, a.Rules.NodeLimit, a.Rules.TotalLimit
	}
	return p.String()
}

// TestWhatIfAsRecorded replays every recording under the policy that was in force, said and not said.
func TestWhatIfAsRecorded(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Sample(listRecordings(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := playedURL(t, name)
			if name == "e-user-migrations" { // nobody evicts anything
				code, _, stderr := runCommand(t, "whatif", "--database-url", url)
				require.Equal(t, exitNotFound, code, stderr)
				require.Contains(t, stderr, "no evacuation began then")
				return
			}
			a := whatIf(t, url, "--policy", whatif.WordRecorded)
			b := whatIf(t, url, "--policy", inForce(a))
			for _, r := range []whatif.Result{a.Policies[0], b.Policies[0]} {
				require.False(t, r.Changed, "%s: %+v", r.Name, r)
				require.Equal(t, a.Recorded, r.Would)
			}
			require.Empty(t, a.Policies[0].Unknown)
			raw, err := fs.ReadFile(evictrail.Recordings(), name+"/expected.json")
			require.NoError(t, err)
			var want truth
			require.NoError(t, json.Unmarshal(raw, &want))
			require.Len(t, want.Evacuations, a.Recorded.Evacuations)
			require.Len(t, queryRows[loopTruth](t, url, "SELECT * FROM evictrail_v1.loops WHERE "+judgedLoops), len(want.Loops))
			require.Len(t, queryRows[loopTruth](t, url, "SELECT * FROM evictrail_v1.loops WHERE closed_by IS DISTINCT FROM 'refuted'"), a.Recorded.Loops)
		})
	}
}

// TestWhatIfTriedOnce has KubeVirt try the evictions of both dual retry loops once: the later attempts are saved, and nothing else, and the VM
// that they moved in the end would have stayed.
func TestWhatIfTriedOnce(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		vm, node      string
		saved, failed int
		elsewhere     bool
	}{
		"b-dual-retry-loop":      {vm: "vm-a", node: "worker-1", saved: 4, failed: 3, elsewhere: true},
		"b-dual-retry-loop-v1.8": {vm: "vm-d", node: "worker-1", saved: 5, failed: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := playedURL(t, name)
			r := whatIf(t, url, "--try-once").Policies[0]
			require.Equal(t, "try-once", r.Name)
			require.Equal(t, want.saved, r.MigrationsSaved)
			require.Equal(t, want.failed, r.FailedSaved)
			require.Equal(t, map[trail.LoopKind]int{trail.LoopDualRetry: 1}, r.LoopsAvoided)
			require.Equal(t, []int{1, 1, 1, 1, 0, 0}, []int{r.GaveUp, r.Stays, r.StaysHot, r.VMsStaying, r.HeldBack, r.Sooner})
			require.Len(t, r.Changes, 1)
			c := r.Changes[0]
			require.Equal(t, "demo/"+want.vm+" "+want.node, c.Namespace+"/"+c.VMI+" "+c.Node)
			require.Equal(t, []any{whatif.ChangeGaveUp, want.saved, want.failed, true}, []any{c.Kind, c.Migrations, c.Failed, c.Stays})
			require.Contains(t, c.Sentence, "it would have stayed there instead of leaving at 2026-11-21 00:")
			if want.elsewhere { // what came of its late move, on the node to which it would not have come
				require.Len(t, r.Unknown, 1)
				require.Equal(t, whatif.UnknownElsewhere, r.Unknown[0].Reason)
			} else {
				require.Empty(t, r.Unknown)
			}
		})
	}
}

// TestWhatIfTheMarkIsKept keeps the mark that KubeVirt v1.6 takes off: the only slot is taken until the evacuation ends.
func TestWhatIfTheMarkIsKept(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "b-dual-retry-loop")
	r := whatIf(t, url, "--keep-mark").Policies[0]
	var held []string
	for _, c := range r.Changes {
		require.Equal(t, []any{whatif.ChangeHeldBack, whatif.RuleNodeSlots}, []any{c.Kind, c.Rule})
		require.WithinDuration(t, time.Date(2026, 11, 21, 0, 37, 29, 0, time.UTC), c.Until, time.Second, "until the evacuation of vm-a ends")
		held = append(held, c.VMI)
	}
	require.Equal(t, []string{"vm-c", "vm-b", "vm-d"}, held)
	require.Equal(t, []int{3, 3, 0, 3}, []int{r.HeldBack, r.MigrationsSaved, r.FailedSaved, r.Stays})
	require.Equal(t, map[trail.LoopKind]int{trail.LoopDualRetry: 1}, r.LoopsAvoided)
	again := playedURL(t, "b2-dual-retry-same-vm")
	require.Equal(t, 4, whatIf(t, again, "--keep-mark").Policies[0].RequestsSaved, "the descheduler leaves alone what bears the mark")
}

// plugin is KubevirtMigrationAware as reference: descheduler-signals §1.5 writes it down: it knows the ends of migrations of each VM.
type plugin struct {
	off               bool
	base, cap, window time.Duration
	ends              map[string][]stretch
}

// stretch is from when to when something went on.
type stretch struct{ from, to time.Time }

// findCooldownEnd returns the end of the cooldown of a VM at a time.
func (p *plugin) findCooldownEnd(vm string, now time.Time) time.Time {
	all := p.ends[vm]
	if p.off || len(all) == 0 {
		return time.Time{}
	}
	last := all[len(all)-1]
	effective := p.base
	if d := last.to.Sub(last.from); d > effective {
		effective = d
	}
	count := 0
	for _, x := range all {
		if x.to.After(now.Add(-p.window)) {
			count++
		}
	}
	for i := 1; i < count && effective < p.cap; i++ {
		effective *= 2
	}
	return last.to.Add(min(effective, p.cap))
}

// wish is that the descheduler wants a VM to leave a node: it asked, or its counter shows that it was kept from it.
type wish struct {
	at       time.Time
	vm, node string
	since    time.Time     // of the counter; zero: it asked
	took     time.Duration // of the migration; zero where there was none
	ran      stretch       // when its data moved
}

// TestWhatIfTheCooldownWereAnother compares the evictions of a churning VM under other cooldowns with a plain simulation of the plugin, fed with the
// truth of the recording and with what the counters of the descheduler said.
func TestWhatIfTheCooldownWereAnother(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	const name = "g-churn-cooldown"
	url := playedURL(t, name)
	wishes := wishesOf(t, name)
	recorded := whatIf(t, url, "--policy", "recorded").Recorded.Evictions
	require.Equal(t, 10, recorded)
	for policy, p := range map[string]plugin{
		"cooldown=off":              {off: true},
		"base=2m cap=10m window=1h": {base: 2 * time.Minute, cap: 10 * time.Minute, window: time.Hour},
		"base=10s cap=1m window=1h": {base: 10 * time.Second, cap: time.Minute, window: time.Hour},
		"base=5m":                   {base: 5 * time.Minute, cap: 5 * time.Minute, window: time.Hour},
		"base=30s cap=4m window=1h": {base: 30 * time.Second, cap: 4 * time.Minute, window: time.Hour},
	} {
		p.ends = map[string][]stretch{}
		r := whatIf(t, url, "--policy", policy).Policies[0]
		want := simulatePlugin(&p, wishes)
		require.Equal(t, want, r.Would.Evictions, "%s: %+v", policy, r)
		if p.off {
			require.Empty(t, r.LoopsAvoided, "what comes sooner is no less of a loop")
		}
		require.Equal(t, policy == "base=30s cap=4m window=1h", want == recorded, "%s: the recorded cooldown alone changes nothing", policy)
	}
}

// simulatePlugin returns how many evictions the plugin lets through, one at a time from each node.
func simulatePlugin(p *plugin, wishes []wish) int {
	recorded := plugin{base: 30 * time.Second, cap: 4 * time.Minute, window: time.Hour, ends: map[string][]stretch{}}
	type move struct {
		wish
		done time.Time
	}
	var under []move
	last := map[string]time.Duration{}
	evictions := 0
	begun := map[string][]move{} // that the history has, by VM
	for _, w := range wishes {
		under = slices.DeleteFunc(under, func(m move) bool {
			if m.done.After(w.at) {
				return false
			}
			p.ends[m.vm] = append(p.ends[m.vm], m.ran)
			last[m.vm] = m.took
			return true
		})
		for vm, moves := range begun {
			begun[vm] = slices.DeleteFunc(moves, func(m move) bool {
				if m.done.After(w.at) {
					return false
				}
				recorded.ends[vm] = append(recorded.ends[vm], m.ran)
				return true
			})
		}
		busy := slices.ContainsFunc(under, func(m move) bool { return m.vm == w.vm || m.node == w.node })
		if w.since.IsZero() { // it asked, and the history let it
			ran := w.ran
			if w.took > 0 {
				begun[w.vm] = append(begun[w.vm], move{w, w.ran.to})
			}
			if !busy && !w.at.Before(p.findCooldownEnd(w.vm, w.at)) {
				evictions++
				under = append(under, move{w, cmp.Or(ran.to, w.at.Add(time.Hour))})
			}
			continue
		}
		latest := w.at // when it was kept from it, at the latest
		if held := recorded.findCooldownEnd(w.vm, w.at); held.Before(latest) {
			latest = held
		}
		ends := recorded.ends[w.vm]
		earliest := w.since
		if began := ends[len(ends)-1].to; began.After(earliest) {
			earliest = began
		}
		if until := p.findCooldownEnd(w.vm, w.at); busy || until.After(earliest) || !until.Before(latest) {
			continue
		}
		evictions++
		took := last[w.vm]
		under = append(under, move{wish{vm: w.vm, node: w.node, took: took, ran: stretch{w.at, w.at.Add(took)}}, w.at.Add(took)})
	}
	return evictions
}

// wishesOf returns the wishes of the descheduler in a recording, in the order of their times: its requests, and the times that a counter of
// blocks rose when only one VM of its node was in a cooldown.
func wishesOf(t *testing.T, name string) []wish {
	t.Helper()
	raw, err := fs.ReadFile(evictrail.Recordings(), name+"/expected.json")
	require.NoError(t, err)
	var want truth
	require.NoError(t, json.Unmarshal(raw, &want))
	var out []wish
	on := map[string][]stretch{} // nodes of VMs, by "vm node"
	for _, q := range want.Requests {
		w := wish{at: q.RequestedAt, vm: q.VMI, node: q.Node}
		for _, m := range want.Migrations {
			if m.VMI == q.VMI && m.FinishedAt != nil && m.CreatedAt.Sub(q.RequestedAt).Abs() < 3*time.Second {
				w.took = m.FinishedAt.Sub(*m.CreatedAt)
				w.ran = stretch{m.FinishedAt.Add(-time.Second), *m.FinishedAt}
			}
		}
		out = append(out, w)
	}
	for _, c := range want.Cooldowns { // who is in a cooldown where, and from when to when
		for _, m := range want.Migrations {
			if m.VMI == c.VMI && m.FinishedAt != nil && m.FinishedAt.Sub(c.DecidedAt).Abs() <= 2*time.Second {
				key := c.VMI + " " + *m.TargetNode
				on[key] = append(on[key], stretch{c.DecidedAt, c.DecidedAt.Add(time.Duration(c.Seconds * float64(time.Second)))})
			}
		}
	}
	before, seen := map[string]int{}, time.Time{}
	for _, s := range scrapesOf(t, name) {
		for line := range strings.SplitSeq(s.Text, "\n") {
			labels, value, ok := strings.Cut(strings.TrimPrefix(line, "descheduler_kubevirt_eviction_blocks_total{"), "} ")
			if !ok || labels == line || !strings.Contains(labels, `reason="cooldown"`) {
				continue
			}
			n, err := strconv.Atoi(value)
			require.NoError(t, err)
			if n == before[labels] {
				continue
			}
			before[labels] = n
			_, rest, _ := strings.Cut(labels, `node="`)
			node, _, _ := strings.Cut(rest, `"`)
			var who []string
			for key, stretches := range on {
				vm, there, _ := strings.Cut(key, " ")
				if there == node && slices.ContainsFunc(stretches, func(x stretch) bool { return !x.from.After(s.At) && !x.to.Before(seen) }) {
					who = append(who, vm)
				}
			}
			if len(who) == 1 {
				out = append(out, wish{at: s.At, vm: who[0], node: node, since: seen})
			}
		}
		seen = s.At
	}
	slices.SortStableFunc(out, func(a, b wish) int { return a.at.Compare(b.at) })
	return out
}

// scraped is one reading of a descheduler's metrics.
type scraped struct {
	At   time.Time `json:"t"`
	Text string    `json:"text"`
}

func scrapesOf(t *testing.T, name string) []scraped {
	t.Helper()
	t.Helper()
	f, err := evictrail.Recordings().Open(name + "/scrapes.jsonl.gz")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 10<<20)
	var out []scraped
	for lines.Scan() {
		var s scraped
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		if strings.Contains(s.Text, "descheduler_") {
			out = append(out, s)
		}
	}
	require.NoError(t, lines.Err())
	return out
}

// TestWhatIfInEveryForm asks the same in every form, and what must be refused.
func TestWhatIfInEveryForm(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "b-dual-retry-loop-v1.8")
	code, out, stderr := runCommand(t, "whatif", "--database-url", url, "--policy", "node-limit=1", "--try-once")
	require.Equal(t, exitFound, code, stderr)
	for _, want := range []string{
		"Recorded of b-dual-retry-loop-v1.8 from 2026-11-14", "8 evictions of the descheduler, 8 evacuations, 13 migrations (5 failed, 8 moves), 1 loop.",
		"The descheduler had no cooldown, 2 at a time from a node, 5 at a time in total.", "POLICY", "node-limit=1 ", "try-once ",
		"KubeVirt would have given up moving demo/vm-d away from worker-1", "Loops avoided: 1 dual retry loop.", "migrations, 4 of which failed", "node-limit=1 saves up to 8 of 13 migrations", "maxNoOfPodsToEvictPerNode: 1",
		"What the history does not show:",
	} {
		require.Contains(t, out, want)
	}
	code, out, stderr = runCommand(t, "whatif", "--database-url", url, "--sweep", "give-up-after=1..4", "-o", "csv")
	require.Equal(t, exitFound, code, stderr)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 5)
	require.True(t, strings.HasPrefix(lines[0], "policy,evictions,migrations_saved,failed_attempts_saved,"), lines[0])
	for i, saved := range []string{"5,4", "4,3", "3,2", "2,1"} {
		require.True(t, strings.HasPrefix(lines[i+1], "give-up-after="+strconv.Itoa(i+1)+",8,"+saved+","), lines[i+1])
	}
	a := whatIf(t, url)
	require.Equal(t, []string{"keep-mark", "try-once", "give-up-after=3"}, []string{a.Policies[0].Name, a.Policies[1].Name, a.Policies[2].Name})
	require.Len(t, whatIf(t, url, "--sweep", "base=5m..60m").Policies, 5)
	code, out, stderr = runCommand(t, "whatif", "--database-url", url, "--sweep", "give-up-after=1..5")
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "give-up-after=1 saves up to 5 of 13 migrations; it costs 1 evacuation given up")
	require.Contains(t, out, "No release of KubeVirt gives up an evacuation")
	code, out, stderr = runCommand(t, "whatif", "--database-url", url, "--sweep", "base=1m..10m")
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, out, "base=1m to 10m ", "equal rows are joined")
	node := whatIf(t, url, "--try-once", "--node", "worker-2")
	require.Less(t, node.Recorded.Evictions, 8)
	require.False(t, node.Policies[0].Changed, "what would have been different is on another node")
	require.Equal(t, 1, whatIf(t, url, "--try-once", "-n", "demo").Policies[0].Stays)

	for _, args := range [][]string{
		{"--policy", "faster"}, {"--policy", "base=2h cap=1h"}, {"--cooldown", "5m"}, {"--sweep", "base=5m"}, {"--node-limit", "-1"}, {"-o", "yaml"},
		{"--since", "yesterday"}, {"--since", "2026-11-22", "--until", "2026-11-21"}, {"extra"},
	} {
		code, _, stderr := runCommand(t, append([]string{"whatif", "--database-url", url}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, stderr)
	}
	for _, args := range [][]string{{"--since", "2020-01-01", "--until", "2020-02-01"}, {"--cluster", "elsewhere"}, {"-n", "elsewhere"}} {
		code, _, stderr := runCommand(t, append([]string{"whatif", "--database-url", url}, args...)...)
		require.Equal(t, exitNotFound, code, "%v: %s", args, stderr)
	}
	playBuiltin(t, url, "k-blocked-slot")
	code, _, stderr = runCommand(t, "whatif", "--database-url", url)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "--cluster: b-dual-retry-loop-v1.8, k-blocked-slot")
}
