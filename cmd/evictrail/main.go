// Command evictrail is the flight recorder for VM evictions on KubeVirt clusters. See docs/architecture.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/trail"
)

// The exit statuses.
const (
	exitFound    = 0
	exitError    = 1
	exitUsage    = 2
	exitNotFound = 3
)

// exitStatuses describes them to people.
var exitStatuses = []struct {
	status  int
	meaning string
}{
	{exitFound, "Done. Of a question: there is an answer."},
	{exitError, "Something failed; standard error says what, and what to do."},
	{exitUsage, "The command line cannot be run: an unknown command or flag, or a value that is refused."},
	{exitNotFound, "There is nothing to show: no row, or a VM, node or cluster that is not known."},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := executeCommand(ctx, normalizeArguments(os.Args), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// normalizeArguments returns those of the command line. Under the name that kubectl calls to complete a plugin's we are asked to complete.
func normalizeArguments(command []string) []string {
	if filepath.Base(command[0]) == "kubectl_complete-evictrail" {
		return append([]string{cobra.ShellCompRequestCmd}, command[1:]...)
	}
	return command[1:]
}

// executeCommand runs one command line and returns its exit status.
func executeCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return exitFound
	case errors.Is(err, trail.ErrNotFound):
		_, _ = fmt.Fprintln(stderr, "evictrail:", err)
		return exitNotFound
	case errors.As(err, &usage), strings.HasPrefix(err.Error(), "unknown command"):
		_, _ = fmt.Fprintf(stderr, "evictrail: %v\nSee '%s --help'.\n", err, root.CommandPath())
		return exitUsage
	}
	_, _ = fmt.Fprintln(stderr, "evictrail:", err)
	return exitError
}

// usageError is a command line that cannot be run.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usageErrorf(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// asUsage makes cobra's complaints about arguments usage errors.
func asUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{err}
		}
		return nil
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "evictrail",
		Short: "The flight recorder for VM evictions on KubeVirt clusters",
		Long: `evictrail records why VMs move: every mark, migration attempt and failure of a KubeVirt cluster becomes a reasoned,
timestamped row in Postgres. Ask it why a VM moved, what was tried and why that failed.

Each flag may also stand in the environment: EVICTRAIL_DATABASE_URL is --database-url of every command that has it. The
command line wins.`,
		Example: `  evictrail demo                          # recorded incidents, no cluster needed
  evictrail run                           # watch the cluster of your kubeconfig
  evictrail why shop/db-1                 # why did this VM move?
  evictrail evacuations --since 24h       # what was evacuated since yesterday
  evictrail top                           # what is wrong now, kept up to date`,
		Version:           version.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              refuseUnknownCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return completeFlags(cmd) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl evictrail"}
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddGroup(
		&cobra.Group{ID: "record", Title: "Record:"},
		&cobra.Group{ID: "ask", Title: "Ask:"},
		&cobra.Group{ID: "keep", Title: "Upkeep:"},
	)
	root.AddCommand(newRun(), newRecord(), newDemo(), newPlay(), newAudit())
	root.AddCommand(
		withNodeHint(newWhy()), withNodeHint(newWhyNot()), newDrainPreview(), newLimits(), newWeekly(), newWhatIf(), newAdvise(), newAlerts(), newSettings(), newTop(), newSearch(), newClusters(), newCompare(), newMCP(), newHub(),
	)
	for _, l := range []list{
		requestsList, evacuationsList, migrationsList, downtimesList, cooldownsList, loopsList, drainsList, upgradeWavesList, gapsList, loadsList, consequencesList, outagesList, timelineList,
	} {
		root.AddCommand(newList(l))
	}
	root.AddCommand(newAck())
	root.AddCommand(newConfig(), newDoctor(), newSupportBundle())
	root.AddCommand(newSchema(), newSpool(), newExport(), newVerify(), newGenerate(), newVersion())
	root.SetHelpCommandGroupID("keep")
	root.SetCompletionCommandGroupID("keep")
	return root
}
