package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// whatIfFlags say what is asked, and how the answer is written.
type whatIfFlags struct {
	from               readerFlags
	question           whatif.Question
	since, until       string
	policies           []string
	cooldown, sweep    string
	nodeLimit          int
	totalLimit, giveUp int
	keepMark, tryOnce  bool
	output             string
}

func newWhatIf() *cobra.Command {
	var w whatIfFlags
	cmd := &cobra.Command{
		Use: "whatif", Short: "Say what would have been different under other policies", GroupID: "ask", Args: asUsage(cobra.NoArgs),
		Long: `Replay what was recorded of a period under policies that were not in force, and say what would have been different: migrations that
would not have happened, failed attempts saved, evictions held back and for how long, VMs that would have stayed on a hot node, loops avoided.

A policy is words: ` + strings.Join(whatif.Words(), ", ") + `.
What it leaves out is as it was recorded. --policy can be given several times; --cooldown, --node-limit, --total-limit, --keep-mark, --try-once and
--give-up-after make one more. Without any, the three proposals are compared that were discussed for KubeVirt: ` + whatif.Names(whatif.Proposals()) + `.

--sweep replays one setting from one value to another, on top of that one more policy: in round steps, or in those after a slash. Each answer
recommends one of the policies, or says why none, and shows how to set it where that can be set today. It says what it assumes, and counts what
the history does not show. The answer comes from the database, or with --server from an evictrail that serves it. Exit status 3 when no evacuation
began in the period.`,
		Example: `  evictrail whatif --since 30d
  evictrail whatif --cooldown base=5m,cap=1h,window=24h --since 7d
  evictrail whatif --policy cooldown=off --policy "try-once node-limit=1" -o json
  evictrail whatif --sweep base=5m..60m --namespace shop
  evictrail whatif --sweep give-up-after=1..5 --server https://evictrail.example`,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd) },
	}
	w.addFlags(cmd)
	return cmd
}

func (w *whatIfFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.question.Cluster, "cluster", "", "the `cluster`, where several are recorded")
	f.StringVarP(&w.question.Namespace, "namespace", "n", "", "report only VMs of this `namespace`; the others are replayed, too")
	f.StringVar(&w.question.Node, "node", "", "report only this `node`; the others are replayed, too")
	f.StringVar(&w.since, "since", "", "from when on: a `time` (2026-11-21 or 2026-11-21T00:30:00Z) or an age (90m, 24h, 7d); by default a week")
	f.StringVar(&w.until, "until", "", "until when: a `time` or an age; by default now, or when the cluster was last seen")
	f.StringArrayVar(&w.policies, "policy", nil, "a policy: `words` such as \"base=5m cap=1h\"; can be given several times")
	f.StringVar(&w.cooldown, "cooldown", "", "another `cooldown` of the descheduler: base=5m,cap=1h,window=24h, or off, or on")
	f.IntVar(&w.nodeLimit, "node-limit", 0, "let the descheduler have `N` evictions under way from one node")
	f.IntVar(&w.totalLimit, "total-limit", 0, "let the descheduler have `N` evictions under way from all nodes")
	f.BoolVar(&w.keepMark, "keep-mark", false, "keep the in-progress mark on the pod until the evacuation ends")
	f.BoolVar(&w.tryOnce, "try-once", false, "have KubeVirt try an eviction of the descheduler once")
	f.IntVar(&w.giveUp, "give-up-after", 0, "have KubeVirt give up any evacuation after `N` attempts")
	f.StringVar(&w.sweep, "sweep", "", "a `setting` from one value to another: base=5m..60m, window=12h..72h/12h, node-limit=1..5")
	f.StringVarP(&w.output, "output", "o", "table", "`format`: table, json or csv")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "csv"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions([]string{
		"keep-mark", "try-once", "give-up-after=3", "cooldown=off", "cooldown=on", "base=15m", "node-limit=1", "total-limit=5",
	}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("cooldown", cobra.FixedCompletions([]string{"off", "on", "base=15m,cap=6h,window=48h"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("sweep", cobra.FixedCompletions(whatif.UsualSweeps(), cobra.ShellCompDirectiveNoFileComp))
	w.from.addFlags(cmd)
	completeNames(cmd, &w.from, &w.question.Cluster)
}

// parseFlags reads what the flags say, now being the moment from which ages count.
func (w *whatIfFlags) parseFlags(now time.Time) error {
	if !slices.Contains([]string{"table", "json", "csv"}, w.output) {
		return usageErrorf("output %q: expected table, json or csv", w.output)
	}
	var err error
	if w.question.Since, err = parseTime("since", w.since, now); err != nil {
		return err
	}
	if w.question.Until, err = parseTime("until", w.until, now); err != nil {
		return err
	}
	if w.question.Policies, err = whatif.ParsePolicies(w.policies); err != nil {
		return usageErrorf("%w", err)
	}
	one, said, err := w.parsePolicyFlags()
	if err != nil {
		return usageErrorf("%w", err)
	}
	if w.sweep != "" {
		s, err := whatif.ParseSweep(w.sweep, one)
		if err != nil {
			return usageErrorf("%w", err)
		}
		w.question.Sweep = &s
	} else if said {
		w.question.Policies = append(w.question.Policies, one)
	}
	if err := w.question.Validate(); err != nil {
		return usageErrorf("%w", err)
	}
	return nil
}

// parsePolicyFlags returns the policy that the flags make, and whether any of them is given.
func (w *whatIfFlags) parsePolicyFlags() (p whatif.Policy, said bool, err error) {
	var words []string
	switch {
	case w.cooldown == "":
	case strings.Contains(w.cooldown, "="):
		words = append(words, w.cooldown)
	default:
		words = append(words, "cooldown="+w.cooldown)
	}
	for _, n := range []struct {
		word  string
		value int
	}{{"node-limit", w.nodeLimit}, {"total-limit", w.totalLimit}, {"give-up-after", w.giveUp}} {
		if n.value != 0 {
			words = append(words, n.word+"="+strconv.Itoa(n.value))
		}
	}
	if w.keepMark {
		words = append(words, "keep-mark")
	}
	if w.tryOnce {
		words = append(words, "try-once")
	}
	if len(words) == 0 {
		return p, false, nil
	}
	p, err = whatif.ParsePolicy(strings.Join(words, " "))
	return p, true, err
}

func (w *whatIfFlags) run(cmd *cobra.Command) error {
	if err := w.parseFlags(time.Now()); err != nil {
		return err
	}
	s, err := w.from.openSource(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	w.question.Progress = sayHowFar(cmd.ErrOrStderr())
	a, err := answerOne(cmd.Context(), s, func(ctx context.Context, r reader) (whatif.Answer, error) {
		a, err := r.WhatIf(ctx, w.question)
		return a, inCluster(ctx, r, w.question.Cluster, err)
	})
	if err != nil {
		return err
	}
	switch out := cmd.OutOrStdout(); w.output {
	case "json":
		return api.WriteJSON(out, a)
	case "csv":
		return writeWhatIfCSV(out, &a)
	default:
		return writeWhatIf(out, &a)
	}
}

// progressAfter is after how long it is said how far a replay is, and how often from then on.
const progressAfter = 2 * time.Second

// sayHowFar says now and then how far a replay is, if it takes long.
func sayHowFar(out io.Writer) func(time.Time) {
	say := printNowAndThen(out)
	return func(at time.Time) { say(func() string { return "replayed up to " + trail.FormatClock(at) }) }
}

// printNowAndThen returns what prints a line if the last one was printed some time ago, and else does not make it.
func printNowAndThen(out io.Writer) func(line func() string) {
	last := time.Now()
	return func(line func() string) {
		if time.Since(last) >= progressAfter {
			last = time.Now()
			_, _ = fmt.Fprintln(out, line())
		}
	}
}

// whatIfColumns are those of the table and of CSV.
var whatIfColumns = []struct {
	head, name string // of the table, of CSV
	of         func(r *whatif.Result) string
}{
	{"POLICY", "policy", func(r *whatif.Result) string { return r.Name }},
	{"EVICTIONS", "evictions", func(r *whatif.Result) string { return strconv.Itoa(r.Would.Evictions) }},
	{"MIGRATIONS SAVED", "migrations_saved", func(r *whatif.Result) string { return strconv.Itoa(r.MigrationsSaved) }},
	{"FAILED SAVED", "failed_attempts_saved", func(r *whatif.Result) string { return strconv.Itoa(r.FailedSaved) }},
	{"HELD BACK", "evictions_held_back", func(r *whatif.Result) string { return strconv.Itoa(r.HeldBack) }},
	{"WAIT", "wait_mean_seconds", func(r *whatif.Result) string { return strconv.FormatFloat(r.WaitMean().Seconds(), 'f', -1, 64) }},
	{"LONGEST", "wait_longest_seconds", func(r *whatif.Result) string {
		return strconv.FormatFloat(time.Duration(r.WaitLongest).Seconds(), 'f', -1, 64)
	}},
	{"SOONER", "evictions_sooner", func(r *whatif.Result) string { return strconv.Itoa(r.Sooner) }},
	{"GAVE UP", "gave_up", func(r *whatif.Result) string { return strconv.Itoa(r.GaveUp) }},
	{"STAY", "vms_staying", func(r *whatif.Result) string { return strconv.Itoa(r.VMsStaying) }},
	{"STAY HOT", "stays_hot", func(r *whatif.Result) string { return strconv.Itoa(r.StaysHot) }},
	{"LOOPS AVOIDED", "loops_avoided", func(r *whatif.Result) string { return strconv.Itoa(r.LoopsSaved()) }},
	{"UNKNOWN", "unknown", func(r *whatif.Result) string { return strconv.Itoa(r.UnknownCount()) }},
}

func writeWhatIfCSV(out io.Writer, a *whatif.Answer) error {
	w := csv.NewWriter(out)
	var head []string
	for _, c := range whatIfColumns {
		head = append(head, c.name)
	}
	_ = w.Write(head)
	for i := range a.Policies {
		var row []string
		for _, c := range whatIfColumns {
			row = append(row, api.SpreadsheetCell(c.of(&a.Policies[i])))
		}
		_ = w.Write(row)
	}
	w.Flush()
	return w.Error()
}

// writeWhatIf writes the table, and what it rests on.
func writeWhatIf(out io.Writer, a *whatif.Answer) error {
	var b strings.Builder
	t := a.Recorded
	fmt.Fprintf(&b, "Recorded of %s from %s to %s: %s of the descheduler, %s, %s (%d failed, %s), %s.\n",
		a.Cluster, a.Since.UTC().Format("2006-01-02 15:04:05"), a.Until.UTC().Format("2006-01-02 15:04:05"), trail.FormatCount(t.Evictions, "eviction"),
		trail.FormatCount(t.Evacuations, "evacuation"), trail.FormatCount(t.Migrations, "migration"), t.Failed, trail.FormatCount(t.Moves, "move"), trail.FormatCount(t.Loops, "loop"))
	fmt.Fprintf(&b, "%s\n\n", a.RulesText())
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	var head []string
	for _, c := range whatIfColumns {
		head = append(head, c.head)
	}
	_, _ = fmt.Fprintln(w, strings.Join(head, "\t"))
	rows := whatif.JoinRows(a.Policies)
	for i := range rows {
		var row []string
		for _, c := range whatIfColumns {
			cell := c.of(&rows[i].Result)
			if c.name == "policy" {
				cell = rows[i].Label(a.SweepOf)
			}
			if strings.HasSuffix(c.name, "_seconds") {
				seconds, _ := strconv.ParseFloat(cell, 64)
				cell = time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
			}
			row = append(row, cell)
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	writeRecommendation(&b, a)
	others, _ := a.Swept()
	for i := range others {
		writeChanges(&b, &others[i])
	}
	writeUnknown(&b, a.Policies)
	b.WriteString("\nAssumptions:\n")
	for _, x := range a.Assumptions {
		fmt.Fprintf(&b, "%s\n", indentParagraph(x.Text))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeRecommendation writes which policy to take, and how it is set.
func writeRecommendation(b *strings.Builder, a *whatif.Answer) {
	r := a.Recommend()
	fmt.Fprintf(b, "\n%s\n", wrapParagraph(r.Text))
	for _, c := range r.Caveats {
		fmt.Fprintf(b, "%s\n", wrapParagraph(c))
	}
	if r.Result == nil {
		return
	}
	for _, o := range r.Result.Policy.Obstacles() {
		fmt.Fprintf(b, "%s\n", wrapParagraph(o))
	}
	for _, p := range r.Result.Policy.Patches(a.Rules) {
		fmt.Fprintf(b, "\n%s:\n\n    %s\n\n%s\n", p.Of, strings.ReplaceAll(p.Text, "\n", "\n    "), indentParagraph(p.Note))
	}
}

// changesShown is how many differences of a policy a table shows.
const changesShown = 10

// writeChanges writes the first differences that a policy makes.
func writeChanges(b *strings.Builder, r *whatif.Result) {
	fmt.Fprintf(b, "\n%s:\n", r.Name)
	if !r.Changed {
		b.WriteString("  Nothing would have been different.\n")
		return
	}
	for i, c := range r.Changes {
		if i == changesShown {
			break
		}
		fmt.Fprintf(b, "%s\n", indentParagraph(*tableText(c.Sentence)))
	}
	if more := len(r.Changes) + r.ChangesMore - changesShown; more > 0 {
		fmt.Fprintf(b, "  And %d more; -o json shows %d of them.\n", more, len(r.Changes)-changesShown)
	}
	if n := r.RequestsSaved; n > 0 {
		fmt.Fprintf(b, "  The descheduler would not have repeated %d of its requests.\n", n)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.LoopsAvoided)) {
		fmt.Fprintf(b, "  Loops avoided: %d %s.\n", r.LoopsAvoided[kind], kind.Label())
	}
}

// writeUnknown writes what the history does not show, each reason once.
func writeUnknown(b *strings.Builder, results []whatif.Result) {
	texts := map[whatif.UnknownReason]string{}
	counts := map[whatif.UnknownReason][]string{}
	for i := range results {
		for _, u := range results[i].Unknown {
			texts[u.Reason] = u.Text
			counts[u.Reason] = append(counts[u.Reason], fmt.Sprintf("%d with %s", u.Count, results[i].Name))
		}
	}
	if len(texts) == 0 {
		return
	}
	b.WriteString("\nWhat the history does not show:\n")
	for _, reason := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(b, "%s\n", indentParagraph(texts[reason]+" ("+strings.Join(counts[reason], ", ")+")."))
	}
}

// tableText is a text without control characters.
func tableText(text string) *string {
	cell := tableCell(&text)
	return &cell
}

// indentParagraph wraps a paragraph and sets it apart.
func indentParagraph(text string) string {
	return "  " + strings.ReplaceAll(wrapParagraph(text), "\n", "\n  ")
}
