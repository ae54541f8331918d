package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/collector"
)

// doctorFlags are those of "evictrail doctor": those of "run", and how its findings are written.
type doctorFlags struct {
	runFlags
	output string
}

func newDoctor() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what evictrail needs, and say what to do", GroupID: "keep", Args: asUsage(cobra.NoArgs),
		Long: `Check everything that "run" would need with the same flags: the cluster and what its versions of KubeVirt and the descheduler report, each
right, each source of what is recorded, the database with its schema, rights and room, and the three clocks. Put "doctor" where "run" stands in a
command line or a manifest. It changes nothing, neither in the cluster nor in the database, and goes on where one of them is away.

One line for each check: ok, warn (it works, but something is not seen or will not last) or fail, then what was found, then what to do. Exit status
0 when nothing fails, 1 when something does, 2 where the command line cannot be understood.`,
		Example: `  evictrail doctor
  evictrail doctor --kubeconfig prod.yaml --cluster prod --database-url postgres://evictrail@db.example/evictrail
  evictrail doctor --descheduler-metrics-url https://descheduler.kube-system.svc:10258/metrics --descheduler-metrics-insecure
  kubectl -n evictrail exec evictrail-0 -- evictrail doctor      # as its own service account
  evictrail doctor -o json | jq '.checks[] | select(.status != "ok")'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.addFlags(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "`format`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// health is how a check ended.
type health string

const (
	healthOK   health = "ok"
	healthWarn health = "warn" // it works, but something is not seen or will not last
	healthFail health = "fail"
)

// check is what was found about one thing.
type check struct {
	Status  health `json:"status"`
	Subject string `json:"subject"`
	Finding string `json:"finding"`
	Advice  string `json:"advice,omitempty"` // what to do; empty where there is nothing to do
}

// doctor collects findings.
type doctor struct {
	f      *runFlags
	checks []check
	probe  *collector.Probe // nil: no cluster is known
	name   string           // under which the cluster is recorded; empty where that is not known
}

func (d *doctor) addCheck(status health, subject, finding, advice string) {
	d.checks = append(d.checks, check{status, subject, finding, advice})
}

func (d *doctor) addOKf(subject, format string, args ...any) {
	d.addCheck(healthOK, subject, fmt.Sprintf(format, args...), "")
}

// checkTimeout bounds one question.
const checkTimeout = 10 * time.Second

// askWithTimeout asks one question, in a time of its own.
func askWithTimeout[T any](ctx context.Context, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return question(ctx)
}

func (f *doctorFlags) run(cmd *cobra.Command) error {
	if !slices.Contains([]string{"text", "json"}, f.output) {
		return usageErrorf("output %q: expected text or json", f.output)
	}
	d := f.runChecks(cmd.Context(), cmd)
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	if err := d.writeChecks(cmd.OutOrStdout(), f.output); err != nil {
		return err
	}
	if failed := d.countChecks(healthFail); failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(d.checks))
	}
	return nil
}

// runChecks makes all checks.
func (f *runFlags) runChecks(ctx context.Context, cmd *cobra.Command) *doctor {
	d := &doctor{f: f}
	d.checkCommandLine(cmd)
	d.checkAPIServer(ctx)
	d.checkSources(ctx)
	d.checkSpool()
	d.checkDatabase(ctx)
	return d
}

// checkCommandLine checks the command line itself, as "run" does before it starts.
func (d *doctor) checkCommandLine(cmd *cobra.Command) {
	for _, err := range d.f.listMistakes(cmd) {
		if err != nil {
			d.addCheck(healthFail, "command line", err.Error(), "correct it: `run` would not start with it")
		}
	}
}

func (d *doctor) countChecks(status health) int {
	n := 0
	for _, c := range d.checks {
		if c.Status == status {
			n++
		}
	}
	return n
}

// writeChecks writes the findings: a line each, or all as JSON.
func (d *doctor) writeChecks(out io.Writer, format string) error {
	if format == "json" {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"checks": d.checks, "failed": d.countChecks(healthFail), "warned": d.countChecks(healthWarn)})
	}
	width := 0
	for _, c := range d.checks {
		width = max(width, len(c.Subject))
	}
	for _, c := range d.checks {
		line := c.Finding
		if c.Advice != "" {
			line += " -> " + c.Advice
		}
		line = strings.Join(strings.Fields(line), " ") // an error may have several lines
		if _, err := fmt.Fprintf(out, "%-4s  %-*s  %s\n", c.Status, width, c.Subject, line); err != nil {
			return err
		}
	}
	return nil
}
