package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/lab/cluster"
	"github.com/evictrail/evictrail/test/lab/scenario"
	"github.com/evictrail/evictrail/test/lab/truth"
)

// options are the flags.
type options struct {
	kubeVirt string
	scenario string
	test     string
	dir      string
	record   string
	list     bool
	ifBuilt  bool
	parallel int
}

func main() {
	klog.SetLogger(logr.Discard()) // client-go says there that a watch ended, as each does at the end
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runLab(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		os.Exit(1)
	}
}

func runLab(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	flags.StringVar(&o.kubeVirt, "kubevirt", "v1.8.4", "`version` of KubeVirt")
	flags.StringVar(&o.scenario, "scenario", "dual-retry-loop", "`name` of the scenario to play; everything then runs until it is interrupted")
	flags.StringVar(&o.test, "test", "", "`names` of scenarios to play one after the other, with commas, or all that are not long: each is compared with the components, and ended")
	flags.StringVar(&o.dir, "dir", "", "empty `folder` for all that is written; by default a new one among the temporary files, which is removed")
	flags.StringVar(&o.record, "record", "", "`folder` in which each scenario is recorded as well, for evictrail play, with what the components said beside it")
	flags.BoolVar(&o.list, "list", false, "list the scenarios and the versions of KubeVirt")
	flags.IntVar(&o.parallel, "parallel", 2, "with -test, `how` many scenarios are played at once: each has a cluster of its own, which takes 1.2 GB")
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
		missing, err := missingPrograms(o)
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
	if !s.RunsOn(o.kubeVirt) {
		return fmt.Errorf("scenario %s needs KubeVirt %s", s.Name, strings.Join(s.KubeVirt, " or "))
	}
	_, err = playScenario(ctx, o, s, out, keepRunning)
	return err
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

// missingPrograms names the programs that the scenarios would have to build; empty: none.
func missingPrograms(o options) (string, error) {
	programs, err := cluster.Programs(o.kubeVirt)
	if err != nil {
		return "", err
	}
	scenarios, err := loadScenarios(cmp.Or(o.test, o.scenario))
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(scenarios, func(s scenario.Scenario) bool { return s.Descheduler != nil }) {
		programs = append(programs, build.Descheduler())
	}
	for _, s := range scenarios {
		programs = append(programs, userPrograms(s)...)
	}
	return build.Missing(programs...)
}

// loadScenarios loads scenarios by their names, with commas, or all that are not long.
func loadScenarios(names string) ([]scenario.Scenario, error) {
	list, all := strings.Split(names, ","), names == "all"
	if all {
		list = scenario.Names()
	}
	var scenarios []scenario.Scenario
	for _, name := range list {
		s, err := scenario.Load(name)
		if err != nil {
			return nil, err
		}
		if !all || !s.Long {
			scenarios = append(scenarios, s)
		}
	}
	return scenarios, nil
}

// testScenarios plays scenarios, some at once, each in a cluster of its own. The error names those in which something differed.
func testScenarios(ctx context.Context, o options, out io.Writer) error {
	scenarios, err := loadScenarios(o.test)
	if err != nil {
		return err
	}
	var (
		group  errgroup.Group
		mu     sync.Mutex
		failed []string
	)
	group.SetLimit(max(o.parallel, 1))
	shared := &sharedWriter{to: out}
	for _, s := range scenarios {
		group.Go(func() error {
			if ctx.Err() == nil && !reportScenario(ctx, o, s, shared.newPrefixedWriter(s.Name)) {
				mu.Lock()
				failed = append(failed, s.Name)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(failed) > 0:
		return fmt.Errorf("%d of %d scenarios failed: %s", len(failed), len(scenarios), strings.Join(failed, ", "))
	}
	return nil
}

// reportScenario plays a scenario, prints how it ended, and reports whether nothing differed.
func reportScenario(ctx context.Context, o options, s scenario.Scenario, out io.Writer) bool {
	if !s.RunsOn(o.kubeVirt) {
		_, _ = fmt.Fprintf(out, "LEFT OUT on KubeVirt %s: it needs %s\n", o.kubeVirt, strings.Join(s.KubeVirt, " or "))
		return true
	}
	began := time.Now()
	err := testScenario(ctx, o, s, out)
	result := "ok"
	if err != nil {
		_, _ = fmt.Fprintf(out, "%v\n", err)
		result = "FAIL"
	}
	_, _ = fmt.Fprintf(out, "%s on KubeVirt %s, %s\n", result, o.kubeVirt, time.Since(began).Round(time.Second))
	return err == nil
}

// testScenario plays a scenario. One that says so is played a second time without kills, and evictrail must have recorded the same.
func testScenario(ctx context.Context, o options, s scenario.Scenario, out io.Writer) error {
	dir := o.dir
	within := func(name string) options {
		if dir != "" {
			o.dir = filepath.Join(dir, name)
		}
		return o
	}
	had, err := playScenario(ctx, within(s.Name), s, out, nil)
	if err != nil || !s.Undisturbed {
		return err
	}
	_, _ = fmt.Fprintln(out, "once more, and nothing is killed")
	o.record = ""
	calm, err := playScenario(ctx, within(s.Name+"-undisturbed"), s.WithoutKills(), out, nil)
	if err != nil {
		return err
	}
	want, got := truth.Outline(calm), truth.Outline(had)
	_, _ = fmt.Fprintf(out, "compared %d facts with those of the undisturbed run\n", len(want))
	if !slices.Equal(want, got) {
		return fmt.Errorf("recorded undisturbed:\n  %s\nand with kills:\n  %s", strings.Join(want, "\n  "), strings.Join(got, "\n  "))
	}
	return nil
}

// playScenario starts a lab, plays a scenario, compares, and returns what evictrail recorded. Then, which may be nil, does what is left to be done before all
// ends.
func playScenario(ctx context.Context, o options, s scenario.Scenario, out io.Writer, then func(context.Context, *stage, io.Writer) error) (had truth.History, err error) {
	s = s.For(o.kubeVirt)
	h, err := cluster.NewHost(ctx, o.dir, out)
	if err != nil {
		return had, err
	}
	if o.dir == "" {
		defer func() { _ = os.RemoveAll(h.Dir) }()
	}
	defer h.Stop()
	_, _ = fmt.Fprintf(out, "folder: %s\n", h.Dir)
	on, err := newStage(ctx, h, o, s)
	if err != nil {
		return had, err
	}
	_, _ = fmt.Fprintf(out, "page: %s (the certificate is of the lab's own CA)\n", on.recorder.URL())
	if err := scenario.Run(ctx, s, on, out); err != nil {
		return had, err
	}
	v, err := verifyScenario(ctx, s, on)
	if err != nil {
		return had, err
	}
	_, _ = fmt.Fprintf(out, "compared %d facts with the components: %d differences\n", v.compared, len(v.differences))
	if len(v.differences) > 0 {
		err = errors.New(strings.Join(v.differences, "\n"))
	}
	err = errors.Join(err, on.finishRecording(s, o.kubeVirt))
	if then != nil {
		err = errors.Join(err, then(ctx, on, out))
	}
	return v.recorded, err
}

// keepRunning keeps everything running until it is interrupted.
func keepRunning(ctx context.Context, on *stage, out io.Writer) error {
	kubeconfig, err := on.Kubeconfig(on.Admin(), namespace)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\nall runs until it is interrupted (Ctrl-C)\n  page        %s\n", on.recorder.URL())
	if on.alerts != nil {
		_, _ = fmt.Fprintf(out, "  prometheus  %s\n", on.alerts.URL())
	}
	_, _ = fmt.Fprintf(out, "  database    %s\n  cluster     kubectl --kubeconfig %s\n", on.recorder.DatabaseURL(), kubeconfig)
	<-ctx.Done()
	return nil
}
