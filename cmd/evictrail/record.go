package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/collector/recording"
)

// recordFlags are those of "evictrail record".
type recordFlags struct {
	log         logFlags
	kube        kubeFlags
	descheduler deschedulerFlags
	auditFile   string
	redact      bool
	sourceIPs   bool
	lasts       time.Duration // 0: until it is stopped
}

func newRecord() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use: "record DIR", Short: "Record a cluster into files that can be played", GroupID: "record", Args: asUsage(cobra.ExactArgs(1)),
		Long: `Watch a cluster as "run" does and write what it says into the new folder DIR, for "play": to ask about it elsewhere, to test with it, to
share it. No database is needed, and no right but those of "run". It ends with --for or Ctrl-C; what was written up to two seconds before can be
played whatever ends it.

Of each object only the fields are written that evictrail reads: no environment, no volumes, no cloud-init, no labels or annotations but those of
KubeVirt and the descheduler that it goes by; of Kubernetes Events those about VMs; of the audit log what is about evictions and migrations. Names are
written: of VMs, namespaces, nodes and users. With --redact they are replaced by pseudonyms, the same name by the same, so that the story stays the
same, and the addresses from which users asked are left out; the key of the pseudonyms is not kept. Times stay as they are. docs/record.md says more. Look into the files before you share them.`,
		Example: `  evictrail record rec --for 1h
  evictrail record rec --redact --audit-file /var/log/kubernetes/audit/audit.log   # on a control-plane node: who asked, too
  evictrail record rec --descheduler-configmap openshift-kube-descheduler-operator/descheduler
  evictrail play rec --database-url postgres:///evictrail                           # then, anywhere
  zcat rec/trace.jsonl.gz | less`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	f.kube.addFlags(cmd)
	f.log.addFlags(cmd, "warn")
	f.descheduler.addSources(cmd)
	cmd.Flags().StringVar(&f.auditFile, "audit-file", "", "follow the audit log of a kube-apiserver at this `path`, through its rotation, from now on")
	cmd.Flags().BoolVar(&f.redact, "redact", false, "replace names by pseudonyms")
	cmd.Flags().BoolVar(&f.sourceIPs, "keep-source-ips", false,
		"with --redact, leave the addresses from which users asked as they are, instead of leaving them out")
	cmd.Flags().DurationVar(&f.lasts, "for", 0, "`duration` to record; 0: until it is stopped")
	return cmd
}

func (f *recordFlags) run(cmd *cobra.Command, dir string) error {
	log, err := f.log.newLogger(cmd)
	if err != nil {
		return err
	}
	if f.lasts < 0 {
		return usageErrorf("for %s: must not be negative", f.lasts)
	}
	if f.sourceIPs && !f.redact {
		return usageErrorf("keep-source-ips says what --redact leaves: without it nothing is left out")
	}
	if err := f.descheduler.checkFlags(cmd); err != nil {
		return err
	}
	config := collector.RecorderConfig{Log: log, Clock: nowUTC, Policy: f.descheduler.policyMap(), AuditFile: f.auditFile, Scrape: f.descheduler.newScrapeTarget()}
	if config.REST, err = f.kube.restConfig(); err != nil {
		return err
	}
	if f.redact {
		config.Redactor = collector.NewRedactor()
		config.Redactor.SourceIPs = f.sourceIPs
	}
	policy, err := f.readPolicy()
	if err != nil {
		return err
	}
	tape, err := recording.Create(dir, nowUTC)
	if err != nil {
		return err
	}
	config.Tape = tape
	recorder, err := collector.NewRecorder(config)
	if err != nil {
		return err
	}
	if policy != nil {
		err = recorder.PolicyText(policy)
	}
	ctx, stop := cmd.Context(), func() {}
	if f.lasts > 0 {
		ctx, stop = context.WithTimeout(ctx, f.lasts)
	}
	defer stop()
	started := time.Now()
	progress := progress{tape: tape, recorder: recorder, out: cmd.ErrOrStderr(), started: started}
	if err == nil {
		err = recordCluster(ctx, recorder, progress)
	}
	err = errors.Join(err, tape.Close())
	problems := recorder.Problems()
	objects, unreadable := recorder.Seen()
	switch {
	case err != nil:
		return err
	case objects == 0:
		return fmt.Errorf("nothing was recorded: %s", strings.Join(problems, "; "))
	}
	printTextf(cmd.OutOrStdout(), "recorded %s in %s into %s\n", progress.formatCounts(), time.Since(started).Round(time.Second), dir)
	for _, problem := range problems {
		printTextf(cmd.OutOrStdout(), "not recorded: %s\n", problem)
	}
	if unreadable > 0 {
		printTextf(cmd.OutOrStdout(), "not recorded: %d states of objects that could not be read\n", unreadable)
	}
	printTextf(cmd.OutOrStdout(), "Play it with:\n  evictrail play %s --database-url URL\n", filepath.Clean(dir))
	return nil
}

// readPolicy reads the descheduler's policy from its file; nil where none is named.
func (f *recordFlags) readPolicy() ([]byte, error) {
	if f.descheduler.policy == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.descheduler.policy)
	if err != nil {
		return nil, fmt.Errorf("read descheduler policy: %w", err)
	}
	return text, nil
}

// recordCluster records until ctx ends and says how it goes.
func recordCluster(ctx context.Context, recorder *collector.Recorder, p progress) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return recorder.Run(ctx) })
	g.Go(func() error { p.run(ctx); return nil })
	return g.Wait()
}

// progress says how a recording goes.
type progress struct {
	tape     *recording.Writer
	recorder *collector.Recorder
	out      io.Writer
	started  time.Time
}

// progressEvery is the time between two reports.
const progressEvery = 10 * time.Second

func (p progress) run(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		printTextf(p.out, "%s: %s\n", time.Since(p.started).Round(time.Second), p.formatCounts())
		for _, problem := range p.recorder.Problems() {
			printTextf(p.out, "  not recorded: %s\n", problem)
		}
	}
}

// formatCounts says how much was recorded.
func (p progress) formatCounts() string {
	w := p.tape.Written()
	objects, _ := p.recorder.Seen()
	text := fmt.Sprintf("%d lines about %d objects", w.Lines, objects)
	for _, c := range []struct {
		n    int
		what string
	}{{w.Audit, "audit events"}, {w.Scrapes, "scrapes"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	if w.Policy {
		text += ", the descheduler's policy"
	}
	return text + fmt.Sprintf(", %.1f KiB", float64(w.Bytes)/1024)
}
