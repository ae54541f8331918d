package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail"
)

func newWhy() *cobra.Command {
	var db databaseFlags
	var cluster, at, output string
	cmd := &cobra.Command{
		Use: "why NAMESPACE/VM", Short: "Say why a VM moved, and on what that rests", GroupID: "ask", Args: asUsage(cobra.ExactArgs(1)),
		Long: `Say in one paragraph why a VM moved, is to move, or was shut down instead: who asked, with which words and who asked again, as
far as the audit log or the observer saw it; what KubeVirt tried, why that failed, where the guest is now. Below it stand the facts that the answer rests on. With --at the answer is the one that
the facts up to that moment give. Exit status 3 when the VM is not known.`,
		Example: `  evictrail why shop/db-1
  evictrail why shop/db-1 --at 2026-11-21T00:40:00Z
  evictrail why shop/db-1 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, vm, ok := strings.Cut(args[0], "/")
			if !ok || namespace == "" || vm == "" {
				return usagef("%q: expected NAMESPACE/VM, such as shop/db-1", args[0])
			}
			if output != "text" && output != "json" {
				return usagef("output %q: expected text or json", output)
			}
			now, err := parseTime("at", at, time.Now())
			if err != nil {
				return err
			}
			if now.IsZero() {
				now = time.Now()
			}
			s, err := db.open(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			answer, err := why(cmd, s, cluster, namespace, vm, now)
			if err != nil {
				return err
			}
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), answer)
			}
			return writeAnswer(cmd.OutOrStdout(), answer)
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "the VM's `cluster`, where several are recorded")
	cmd.Flags().StringVar(&at, "at", "", "answer as of this `time` (2026-11-21T00:40:00Z) or this long ago (90m, 7d)")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`format`: text or json")
	db.add(cmd)
	return cmd
}

// why asks the store for the VM's history and puts it into words.
func why(cmd *cobra.Command, s *store.Store, cluster, namespace, vm string, now time.Time) (trail.Answer, error) {
	clusters, err := s.ClustersOf(cmd.Context(), cluster, namespace, vm)
	if err != nil {
		return trail.Answer{}, err
	}
	if len(clusters) > 1 {
		return trail.Answer{}, usagef("%s/%s is known in several clusters: choose one with --cluster: %s", namespace, vm, strings.Join(clusters, ", "))
	}
	if len(clusters) == 1 {
		d, err := s.History(cmd.Context(), clusters[0], namespace, vm, now)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return trail.Answer{}, err
		}
		if err == nil {
			seen, err := s.Coverage(cmd.Context(), clusters[0])
			return trail.Why(namespace, vm, d, seen, now), err
		}
	}
	return trail.Answer{}, fmt.Errorf("VM %s/%s: %w: `evictrail timeline` lists the VMs that are known", namespace, vm, store.ErrNotFound)
}

func writeAnswer(out io.Writer, a trail.Answer) error {
	_, err := fmt.Fprintf(out, "%s\n\nEvidence:\n", wrap(a.Paragraph, 100))
	for _, l := range a.Evidence {
		if err == nil {
			_, err = fmt.Fprintf(out, "  %s  %s  [%s]\n", l.At.UTC().Format("2006-01-02 15:04:05"), tableCell(&l.Sentence), l.EventID)
		}
	}
	return err
}

// wrap breaks a paragraph into lines of about the width.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
