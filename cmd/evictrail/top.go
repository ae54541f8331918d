package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/evictrail/evictrail/trail"
)

// topFlags are those of top.
type topFlags struct {
	cluster, order, color string
	every                 time.Duration
	from                  readerFlags
}

// topTimeout bounds how long one look, or one answer, may take.
const topTimeout = 15 * time.Second

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use: "top", Short: "Show open problems, the worst first, and keep them up to date", GroupID: "ask", Args: asUsage(cobra.NoArgs),
		Long: `Show what is open in all clusters: loops, evacuations whose attempts fail, and drains, the worst first, with their age, failed attempts and when
KubeVirt tries again. Where a cluster is not recorded any more, ages count up to when it was last seen.

  q, Esc            quit, or close an answer
  Up, Down, k, j    select, or scroll an answer
  Enter             why: what happened to the VM or the node, and what to do
  o                 sort by severity, age or failed attempts
  /                 show only what has a text in its cluster, problem, VM or node

Without a terminal it prints one table and ends: with exit status 0, also when nothing is open, and 3 when nothing is open and a cluster
is not recorded as it should be.`,
		Example: `  evictrail top
  evictrail top --cluster prod --sort age
  evictrail top --server https://evictrail.example | cat   # one table`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.cluster, "cluster", "", "only this `cluster`")
	flags.StringVar(&f.order, "sort", sortSeverity, "`order` to begin with: severity, age or attempts")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(sortOrders, cobra.ShellCompDirectiveNoFileComp))
	addEveryFlag(cmd, &f.every)
	addColorFlag(cmd, &f.color)
	f.from.addFlags(cmd)
	completeNames(cmd, &f.from, &f.cluster)
	return cmd
}

func (f *topFlags) run(cmd *cobra.Command) error {
	if err := errors.Join(checkEvery(f.every), checkColor(f.color)); err != nil {
		return err
	}
	if !slices.Contains(sortOrders, f.order) {
		return usageErrorf("sort %q: expected severity, age or attempts", f.order)
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	f.from.notes = nil // the screen has them
	s, err := f.from.openSource(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	first, err := f.look(ctx, s)
	if err != nil {
		return err
	}
	if len(first.all) == 0 {
		if err := s.answer(ctx, func(ctx context.Context, r reader) error { return checkCluster(ctx, r, f.cluster) }); err != nil {
			return err
		}
	}
	on := detectTerminal(out, f.color)
	if in := int(os.Stdin.Fd()); !on.interactive || !term.IsTerminal(in) {
		return f.printOnce(first, on, out, cmd.ErrOrStderr())
	}
	model := newTopModel(first, f.order, f.every, on)
	model.load = func() (incidents, error) { return f.look(ctx, s) }
	model.ask = func(about incident) (string, error) { return f.askWhy(ctx, s, about) }
	return runScreen(ctx, model, os.Stdin, out.(*os.File))
}

// look reads what is open.
func (f *topFlags) look(ctx context.Context, s *source) (incidents, error) {
	ctx, cancel := context.WithTimeout(ctx, topTimeout)
	defer cancel()
	return answerOne(ctx, s, func(ctx context.Context, r reader) (incidents, error) {
		return loadIncidents(ctx, r, f.cluster, nowUTC())
	})
}

// askWhy returns the answer about the VM or node of an incident, as paragraphs.
func (f *topFlags) askWhy(ctx context.Context, s *source, about incident) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, topTimeout)
	defer cancel()
	a, err := answerOne(ctx, s, func(ctx context.Context, r reader) (trail.Answer, error) {
		return r.Why(ctx, trail.Question{Cluster: about.cluster, Of: about.subject()})
	})
	if err != nil {
		return "", err
	}
	var parts []string
	for _, part := range []string{a.Recorder.Notice(), a.Recorder.StandbyNotice(), a.Paragraph, trail.DescribeGaps(a.NotObserved)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if a.Advice != "" {
		parts = append(parts, "What to do:\n"+a.Advice)
	}
	command := "evictrail why " + about.vm
	if about.vm == "" {
		command = "evictrail why node " + about.node
	}
	return strings.Join(append(parts, "Evidence:\n  "+command+" --cluster "+about.cluster), "\n\n"), nil
}

// printOnce writes one table.
func (f *topFlags) printOnce(found incidents, on terminal, out, notes io.Writer) error {
	for _, notice := range found.listNotices() {
		printTextf(notes, "evictrail: %s\n", cleanText(notice))
	}
	if len(found.all) == 0 && len(found.notices) > 0 {
		return fmt.Errorf("top: %w: no problem is open as far as was recorded", trail.ErrNotFound)
	}
	sortIncidents(found.all, f.order)
	printTextf(out, "%s", found.render(len(found.all), on))
	return nil
}
