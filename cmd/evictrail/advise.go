package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// adviseFlags are those of "evictrail advise".
type adviseFlags struct {
	from         readerFlags
	cluster      string
	until        string
	weeks, learn int
	policies     []string
	sweep        string
	output       string
}

func newAdvise() *cobra.Command {
	var f adviseFlags
	cmd := &cobra.Command{
		Use:     "advise",
		Short:   "Recommend settings from your history, and check that advice week by week",
		GroupID: "ask",
		Args:    asUsage(cobra.NoArgs),
		Long: `Recommend one of some policies from the last weeks, as 'evictrail whatif' does, and check for each
of the weeks before what the same advice, knowing only what came before that week, would have been worth in it: how many
migrations it would have saved, how many the best policy in hindsight, and how many more the advice (regret) and
the settings that were in force cost than that. An advice that changes from week to week, or regrets much, is
none to follow.

Compared are the usual values of each setting that can be set today: ` + strings.Join(listSweeps(), ", ") + `;
--policy and --sweep name others. Every week is replayed once, from the database, or with --server by an evictrail
that serves it. Exit status 3 when no evacuation began in any of the weeks.`,
		Example: `  evictrail advise
  evictrail advise --weeks 12 --learn 2
  evictrail advise --sweep base=5m..1h --policy node-limit=1 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "the `cluster`, where several are recorded")
	flags.StringVar(&f.until, "until", "", "when the last week ends: a `time` or an age; by default now, or when "+
		"the cluster was last seen")
	flags.IntVar(&f.weeks, "weeks", whatif.UsualAdvised, "check the advice in the last `N` weeks")
	flags.IntVar(&f.learn, "learn", whatif.UsualLearn, "rest each advice on `N` weeks")
	flags.StringArrayVar(&f.policies, "policy", nil,
		"compare this policy: `words` such as \"base=5m cap=1h\"; can be given several times")
	flags.StringVar(&f.sweep, "sweep", "", "compare a `setting` from one value to another: base=5m..60m")
	flags.StringVarP(&f.output, "output", "o", "table", "`format`: table or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"},
		cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("sweep", cobra.FixedCompletions(whatif.UsualSweeps(),
		cobra.ShellCompDirectiveNoFileComp))
	f.from.addFlags(cmd)
	completeNames(cmd, &f.from, &f.cluster)
	return cmd
}

// listSweeps returns the usual sweeps of settings that can be set today.
func listSweeps() []string {
	return slices.DeleteFunc(whatif.UsualSweeps(), func(text string) bool {
		s, err := whatif.ParseSweep(text, whatif.Policy{})
		return err != nil || !s.Policies[0].Possible()
	})
}

// parseFlags reads what the flags ask.
func (f *adviseFlags) parseFlags(now time.Time) (q whatif.AdviceQuestion, err error) {
	if !slices.Contains([]string{"table", "json"}, f.output) {
		return q, usageErrorf("output %q: expected table or json", f.output)
	}
	if f.weeks < 1 || f.learn < 1 { // zero stands for the usual number elsewhere
		return q, usageErrorf("weeks %d, learn %d: expected 1 or more of each", f.weeks, f.learn)
	}
	q = whatif.AdviceQuestion{Cluster: f.cluster, Weeks: f.weeks, Learn: f.learn}
	if q.Until, err = parseTime("until", f.until, now); err != nil {
		return q, err
	}
	if q.Policies, err = whatif.ParsePolicies(f.policies); err != nil {
		return q, usageErrorf("%w", err)
	}
	if f.sweep != "" {
		s, err := whatif.ParseSweep(f.sweep, whatif.Policy{})
		if err != nil {
			return q, usageErrorf("%w", err)
		}
		q.Sweep = &s
	}
	if err := q.Bound(); err != nil {
		return q, usageErrorf("%w", err)
	}
	return q, nil
}

func (f *adviseFlags) run(cmd *cobra.Command) error {
	q, err := f.parseFlags(time.Now())
	if err != nil {
		return err
	}
	s, err := f.from.openSource(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	q.Progress = sayHowFar(cmd.ErrOrStderr())
	a, err := answerOne(cmd.Context(), s, func(ctx context.Context, r reader) (whatif.Advice, error) {
		a, err := api.Advise(ctx, r, q)
		return a, inCluster(ctx, r, f.cluster, err)
	})
	if err != nil {
		return err
	}
	if f.output == "json" {
		return api.WriteJSON(cmd.OutOrStdout(), a)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), renderAdvice(&a))
	return err
}

// renderAdvice returns the recommendation, how stable it is, and a table of weeks.
func renderAdvice(a *whatif.Advice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Advice for %s from %s up to %s:\n", a.Cluster, trail.FormatCount(a.LearnedFrom, "week"),
		trail.FormatClock(a.Until))
	writeRecommendation(&b, &a.Learned)
	fmt.Fprintf(&b, "\n%s\n\n", wrapParagraph(a.Stability()))
	t := textTable{columns: []tableColumn{
		{head: "WEEK FROM"}, {head: "MIGRATIONS"}, {head: "ADVISED BEFORE"}, {head: "SAVED"}, {head: "MEAN " +
			"WAIT"}, {head: "BEST IN HINDSIGHT"}, {head: "SAVED"},
		{head: "MEAN WAIT"}, {head: "REGRET"}, {head: "REGRET OF PRESENT"},
	}}
	for _, w := range a.Weeks {
		t.rows = append(t.rows, tableRow{cells: []string{
			w.Since.Format(time.DateOnly), strconv.Itoa(w.Migrations), w.Advised.Policy,
			strconv.Itoa(w.Advised.Saved), trail.Age(w.Advised.WaitMean()),
			w.Best.Policy, strconv.Itoa(w.Best.Saved), trail.Age(w.Best.WaitMean()), strconv.Itoa(w.Regret),
			strconv.Itoa(w.RegretPresent),
		}})
	}
	table, _ := t.render(0, false)
	b.WriteString(table)
	b.WriteString("\n" + wrapParagraph(a.Legend()) + "\n")
	return b.String()
}
