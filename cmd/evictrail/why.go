package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/trail"
)

// question is what why and why-not have in common: about whom, where, as of when, and how the answer is written.
type question struct {
	from                readerFlags
	cluster, at, output string
}

func (q *question) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&q.at, "at", "", "answer as of this `time` (2026-11-21T00:40:00Z) or this long ago (90m, 7d); by default as of now, or of when the cluster was last seen")
	q.addPresentFlags(cmd)
}

// addPresentFlags adds those of a question that is about now.
func (q *question) addPresentFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.cluster, "cluster", "", "the `cluster`, where several are recorded")
	f.StringVarP(&q.output, "output", "o", "text", "`format`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	q.from.addFlags(cmd)
	completeNames(cmd, &q.from, &q.cluster)
}

// checkOutput refuses formats that answers do not have.
func (q *question) checkOutput() error {
	if q.output != "text" && q.output != "json" {
		return usageErrorf("output %q: expected text or json", q.output)
	}
	return nil
}

// askReader reads what the flags say of a VM or a node, and hands the question on to where answers come from.
func (q *question) askReader(ctx context.Context, of trail.Subject, answer func(context.Context, reader, trail.Question) error) error {
	if err := q.checkOutput(); err != nil {
		return err
	}
	at, err := parseTime("at", q.at, time.Now())
	if err != nil {
		return err
	}
	s, err := q.from.openSource(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.answer(ctx, func(ctx context.Context, r reader) error {
		return inCluster(ctx, r, q.cluster, answer(ctx, r, trail.Question{Cluster: q.cluster, Of: of, At: at}))
	})
}

// inCluster says how a cluster is chosen where that has to be, and which there are where one that is not recorded was named.
func inCluster(ctx context.Context, s api.Reader, cluster string, err error) error {
	if errors.Is(err, trail.ErrNotFound) {
		return cmp.Or(checkCluster(ctx, s, cluster), err)
	}
	var ambiguous *trail.AmbiguousError
	if errors.As(err, &ambiguous) {
		return usageErrorf("%s is known in several clusters: choose one with --cluster: %s", ambiguous.Name, strings.Join(ambiguous.Clusters, ", "))
	}
	return err
}

// answerForm is how much of an answer is printed.
type answerForm struct {
	verbose  bool // the full account, too
	evidence int  // the latest lines of evidence; 0: all
}

func newWhy() *cobra.Command {
	var q question
	var form answerForm
	cmd := &cobra.Command{
		Use: "why {NAMESPACE/VM | node NODE}", Short: "Say why a VM moved, or VMs left a node, and on what that rests", GroupID: "ask",
		Args: asUsage(cobra.RangeArgs(1, 2)), ValidArgsFunction: completeVMOrNode(&q),
		Long: `Say in four lines why a VM moved, is to move, or was shut down instead: where it is and what keeps it there, who asked and in which
words, how often it was tried and why that failed, and whether the move was needed. Then what to do, and the latest facts that the answer rests on.
The full account (--verbose) also says who asked again, what holds the VM now and which loop it is part of.
For a node: who drained it and how far that is or how it ended, how many VMs were to leave it and what became of that, and its loops.
With --at the answer is the one that the facts up to that moment give. Exit status 3 when the VM or the node is not known.`,
		Example: `  evictrail why shop/db-1
  evictrail why node worker-2
  evictrail why shop/db-1 --verbose --evidence 0   # the full account, and all that it rests on
  evictrail why shop/db-1 --at 2026-11-21T00:40:00Z
  evictrail why shop/db-1 -o json
  evictrail why shop/db-1 --server https://evictrail.example   # ask an evictrail that serves, instead of its database`,
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := parseVMOrNode(args)
			if err != nil {
				return err
			}
			if form.evidence < 0 {
				return usageErrorf("evidence %d: must not be negative", form.evidence)
			}
			return q.askReader(cmd.Context(), of, func(ctx context.Context, r reader, asked trail.Question) error {
				answer, err := r.Why(ctx, asked)
				if err != nil {
					return err
				}
				if q.output == "json" {
					return api.WriteJSON(cmd.OutOrStdout(), answer)
				}
				return writeAnswer(cmd.OutOrStdout(), answer, form)
			})
		},
	}
	q.addFlags(cmd)
	cmd.Flags().BoolVar(&form.verbose, "verbose", false, "print the full account of a VM, too")
	cmd.Flags().IntVar(&form.evidence, "evidence", 20, "print the latest `number` of facts that the answer rests on; 0: all")
	return cmd
}

func newWhyNot() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use: "why-not {NAMESPACE/VM | node NODE}", Short: "Say what keeps a VM, or the VMs of a node, from moving", GroupID: "ask",
		Args: asUsage(cobra.RangeArgs(1, 2)), ValidArgsFunction: completeVMOrNode(&q),
		Long: `Say what keeps a VM where it is: that it cannot be live-migrated, that its migrations fail and when KubeVirt tries again, for what
a migration waits, the descheduler's cooldown, the slots that others hold, its eviction strategy, a drain that waits for it; or that nothing does.
For a node: how far its drain is, and the same for each of its VMs. Exit status 3 when the VM or the node is not known.`,
		Example: `  evictrail why-not shop/db-1
  evictrail why-not node worker-2
  evictrail why-not shop/db-1 --at 2026-11-21T00:40:00Z -o json
  evictrail why-not shop/db-1 --server https://evictrail.example`,
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := parseVMOrNode(args)
			if err != nil {
				return err
			}
			return q.askReader(cmd.Context(), of, func(ctx context.Context, r reader, asked trail.Question) error {
				answer, err := r.WhyNot(ctx, asked)
				if err != nil {
					return err
				}
				if q.output == "json" {
					return api.WriteJSON(cmd.OutOrStdout(), answer)
				}
				return writeNotAnswer(cmd.OutOrStdout(), answer)
			})
		},
	}
	q.addFlags(cmd)
	return cmd
}

// nodeWord says that a question is about a node.
const nodeWord = "node"

// parseVMOrNode reads about whom why and why-not are asked.
func parseVMOrNode(args []string) (trail.Subject, error) {
	if len(args) == 2 {
		if args[0] != nodeWord || !isName(args[1]) {
			return trail.Subject{}, usageErrorf("%q: expected NAMESPACE/VM or node NODE", strings.Join(args, " "))
		}
		return trail.Subject{Kind: trail.SubjectNode, Name: args[1]}, nil
	}
	namespace, vm, err := parseVM(args[0])
	return trail.VMISubject(namespace, vm), err
}

// parseVM reads NAMESPACE/VM.
func parseVM(text string) (namespace, vm string, err error) {
	namespace, vm, ok := cutName(text)
	if !ok {
		return "", "", usageErrorf("%q: expected NAMESPACE/VM, such as shop/db-1", text)
	}
	return namespace, vm, nil
}

// cutName cuts NAMESPACE/NAME.
func cutName(text string) (namespace, name string, ok bool) {
	namespace, name, _ = strings.Cut(text, "/")
	return namespace, name, isName(namespace) && isName(name)
}

// isName reports whether a text can be the name of an object.
//
// Source: IsValidPathSegmentName, api/validate/content (k8s.io/apimachinery).
func isName(text string) bool {
	return text != "" && text != "." && text != ".." && !strings.ContainsAny(text, "/%")
}

func writeAnswer(out io.Writer, a trail.Answer, form answerForm) error {
	account := wrapParagraph(a.Paragraph) + "\n"
	switch {
	case a.Brief.Status != "" && form.verbose:
		account = briefText(a) + "\n" + account
	case a.Brief.Status != "":
		account = briefText(a)
	}
	account += attemptsText(a)
	heading, lines := "Evidence:", a.Evidence
	if cut := len(lines) - form.evidence; form.evidence > 0 && cut > 0 {
		heading, lines = fmt.Sprintf("Evidence, the latest %d of %d lines (--evidence 0 prints all):", form.evidence, len(lines)), lines[cut:]
	}
	_, err := fmt.Fprintf(out, "%s%s%s%s\n%s\n", asOf(a.AsOf), account, recordingText(a.Recorder, a.NotObserved), adviceText(a.Advice), heading)
	for _, l := range lines {
		if err == nil {
			_, err = fmt.Fprintf(out, "  %s  %s  [%s]\n", l.At.UTC().Format("2006-01-02 15:04:05"), tableCell(&l.Sentence), l.EventID)
		}
	}
	if err == nil {
		_, err = io.WriteString(out, restsText(a.Rests))
	}
	return err
}

// attemptsText lists the attempts of a VM that was tried to move more than once.
func attemptsText(a trail.Answer) string {
	if len(a.Attempts) == 0 {
		return ""
	}
	text := "\nAttempts, newest first:\n"
	for _, l := range a.Attempts {
		text += "  " + wrapText(l.Text, lineWidth, 4) + "\n"
	}
	if a.AttemptsOlder > 0 {
		text += fmt.Sprintf("  %d older: evictrail migrations --vm %s/%s\n", a.AttemptsOlder, a.Namespace, a.VMI)
	}
	return text
}

// briefText writes the answer about a VM in a few labelled lines, below its name.
func briefText(a trail.Answer) string {
	const labels = len("Attempts:  ")
	text := a.Namespace + "/" + a.VMI + "\n"
	for _, l := range a.Brief.Lines() {
		text += fmt.Sprintf("%-*s%s\n", labels, l.Label+":", wrapText(l.Text, briefWidth, labels))
	}
	return text
}

func writeNotAnswer(out io.Writer, a trail.NotAnswer) error {
	_, err := fmt.Fprintf(out, "%s%s\n%s%s", asOf(a.AsOf), wrapParagraph(a.Paragraph), recordingText(a.Recorder, a.NotObserved), adviceText(a.Advice))
	for _, o := range a.Obstacles {
		if a.VMI == "" && err == nil { // of a VM the paragraph has them
			_, err = fmt.Fprintf(out, "\n%s\n", wrapParagraph(fmt.Sprintf("%s/%s: %s.", o.Namespace, o.VMI, o.Text)))
		}
	}
	if err == nil {
		_, err = io.WriteString(out, restsText(a.Rests))
	}
	return err
}

// recordingText says what an answer must not be taken for: where the cluster is not recorded as it should be, and what could not be observed.
func recordingText(note *trail.RecorderNote, gaps []trail.Gap) string {
	text := ""
	for _, line := range trail.DescribeRecording(note, gaps) {
		text += "\n" + wrapParagraph(line) + "\n"
	}
	return text
}

// asOf says for which moment an answer speaks, where that is not now.
func asOf(at time.Time) string {
	if time.Since(at) < read.StillWatched {
		return ""
	}
	return "As of " + trail.FormatClock(at) + ":\n"
}

// adviceText writes what to do below a paragraph: prose is wrapped, what can be pasted stays whole.
func adviceText(advice string) string {
	if advice == "" {
		return ""
	}
	text := "\nWhat to do:\n"
	for line := range strings.SplitSeq(advice, "\n") {
		if !strings.HasPrefix(line, " ") {
			line = wrapParagraph(line)
		}
		text += line + "\n"
	}
	return text
}

// How long lines are, about.
const (
	lineWidth  = 100 // of a paragraph
	briefWidth = 80  // of what is read at a glance, on the narrowest terminal
)

// wrapParagraph breaks a paragraph into lines.
func wrapParagraph(text string) string { return wrapText(text, lineWidth, 0) }

// wrapText breaks a text into lines of a width. All but the first are indented; the first is taken to begin there.
func wrapText(text string, width, indent int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+length > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}
