package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/evictrail/evictrail/test/lab/build"
	"github.com/evictrail/evictrail/test/lab/cluster"
	"github.com/evictrail/evictrail/test/lab/scenario"
)

// options are the flags.
type options struct {
	kubeVirt string
	scenario string
	test     string
	dir      string
	list     bool
	ifBuilt  bool
}

func main() {
	klog.SetOutput(io.Discard) // client-go says there that a watch ended, as each does at the end
	klog.LogToStderr(false)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	flags.StringVar(&o.kubeVirt, "kubevirt", "v1.8.4", "`version` of KubeVirt")
	flags.StringVar(&o.scenario, "scenario", "dual-retry-loop", "`name` of the scenario to play; everything then runs until it is interrupted")
	flags.StringVar(&o.test, "test", "", "`names` of scenarios to play one after the other, with commas, or all: each is compared with the components, and ended")
	flags.StringVar(&o.dir, "dir", "", "empty `folder` for all that is written; by default a new one among the temporary files, which is removed")
	flags.BoolVar(&o.list, "list", false, "list the scenarios and the versions of KubeVirt")
	flags.BoolVar(&o.ifBuilt, "if-built", false, "do nothing, and say so, where a program would have to be built first")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: see -help", flags.Arg(0))
	case o.list:
		return printList(out)
	}
	if o.ifBuilt {
		missing, err := missingPrograms(o.kubeVirt)
		if err != nil {
			return err
		}
		if missing != "" {
			_, err = fmt.Fprintf(out, "lab: LEFT OUT, as these are not built: %s (make lab-test builds them)\n", missing)
			return err
		}
	}
	if o.test != "" {
		return testScenarios(ctx, o, out)
	}
	s, err := scenario.Load(o.scenario)
	if err != nil {
		return err
	}
	return playScenario(ctx, o, s, out, keepRunning)
}

// printList prints what there is.
func printList(out io.Writer) error {
	for _, name := range scenario.Names() {
		s, err := scenario.Load(name)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%-20s %s\n", name, strings.Join(strings.Fields(s.About), " "))
	}
	versions, err := build.KubeVirtVersions()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "KubeVirt: %s\n", strings.Join(versions, ", "))
	return err
}

// missingPrograms names the programs that a lab would have to build; empty: none.
func missingPrograms(kubeVirt string) (string, error) {
	programs, err := cluster.Programs(kubeVirt)
	if err != nil {
		return "", err
	}
	return build.Missing(programs...)
}

// testScenarios plays scenarios one after the other, each in a new cluster. The error names those in which something differed.
func testScenarios(ctx context.Context, o options, out io.Writer) error {
	names := strings.Split(o.test, ",")
	if o.test == "all" {
		names = scenario.Names()
	}
	var failed []string
	for _, name := range names {
		s, err := scenario.Load(name)
		if err != nil {
			return err
		}
		began := time.Now()
		_, _ = fmt.Fprintf(out, "=== %s, KubeVirt %s\n", name, o.kubeVirt)
		err = playScenario(ctx, o, s, out, func(context.Context, *stage, io.Writer) error { return nil })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		result := "ok  "
		if err != nil {
			result = "FAIL"
			failed = append(failed, name)
			_, _ = fmt.Fprintf(out, "%v\n", err)
		}
		_, _ = fmt.Fprintf(out, "%s %s, KubeVirt %s, %s\n", result, name, o.kubeVirt, time.Since(began).Round(time.Second))
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d scenarios failed: %s", len(failed), len(names), strings.Join(failed, ", "))
	}
	return nil
}

// playScenario starts a lab, plays a scenario and compares. Then does what is left to be done before all ends.
func playScenario(ctx context.Context, o options, s scenario.Scenario, out io.Writer, then func(context.Context, *stage, io.Writer) error) error {
	h, err := cluster.NewHost(ctx, o.dir, out)
	if err != nil {
		return err
	}
	if o.dir == "" {
		defer func() { _ = os.RemoveAll(h.Dir) }()
	}
	defer h.Stop()
	_, _ = fmt.Fprintf(out, "folder: %s\n", h.Dir)
	on, err := newStage(ctx, h, o.kubeVirt, s)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "page: %s (the certificate is of the lab's own CA)\n", on.recorder.URL())
	if err := scenario.Run(ctx, s, on, out); err != nil {
		return err
	}
	v, err := verify(ctx, s, on.recorder, namespace, on.History)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "compared %d facts with the components: %d differences\n", v.compared, len(v.differences))
	if len(v.differences) > 0 {
		err = errors.New(strings.Join(v.differences, "\n"))
	}
	return errors.Join(err, then(ctx, on, out))
}

// keepRunning keeps everything running until it is interrupted.
func keepRunning(ctx context.Context, on *stage, out io.Writer) error {
	kubeconfig, err := on.Kubeconfig(on.Admin(), namespace)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\nall runs until it is interrupted (Ctrl-C)\n  page      %s\n  database  %s\n  cluster   %s --kubeconfig %s\n",
		on.recorder.URL(), on.recorder.DatabaseURL(), on.kubectl, kubeconfig)
	<-ctx.Done()
	return nil
}
