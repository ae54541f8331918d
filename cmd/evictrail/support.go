package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/cmd/evictrail/bundle"
	"github.com/evictrail/evictrail/cmd/evictrail/config"
	"github.com/evictrail/evictrail/cmd/evictrail/mask"
	"github.com/evictrail/evictrail/trail"
)

// supportFlags are those of "evictrail support-bundle": those of "run", and what is collected.
type supportFlags struct {
	runFlags
	output  string
	force   bool
	logFile string // path of a log; -: standard input
	vm, at  string
	metrics metricsFlags
}

func newSupportBundle() *cobra.Command {
	var f supportFlags
	cmd := &cobra.Command{
		Use: "support-bundle", Short: "Collect what a bug report needs into one archive, without secrets", GroupID: "keep",
		Args: asUsage(cobra.NoArgs), ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Write one .tar.gz to send with a bug report: version, settings in force, the findings of "doctor", the schema
with sizes and counts, and how it is other than expected; the metrics of the evictrail that runs with these settings;
with --log the end of its log (10,000 lines, 5 MiB); with --vm what is known of one VM. README.txt in it says what each
file is, what was left out, and why. Put "support-bundle" where "run" stands in a command line or a manifest. It changes
nothing.

Passwords, tokens and keys are hidden, in all files: those of the settings, the environment, files and the kubeconfig,
wherever they stand, and what looks like one. Names of clusters, namespaces, VMs, nodes and users are not: README.txt
says where they stand. Look through it before you send it. The file is readable by you alone.

Parts that fail do not keep others out. Exit status 0 when the bundle is written, also without some of them: standard
error names these. 1 when it could not be written.`,
		Example: `  evictrail support-bundle --database-url postgres://evictrail@db.example/evictrail?sslmode=verify-full
  evictrail support-bundle --vm shop/db-1 --at 2026-11-21T00:40:00Z    # an answer that is wrong
  journalctl -u evictrail -n 10000 | evictrail support-bundle --log -
  kubectl -n evictrail logs evictrail-0 --tail 10000 > evictrail.log   # in a cluster: the log first, then
  kubectl -n evictrail exec -i evictrail-0 -- evictrail support-bundle --log - --output - < evictrail.log > b.tar.gz`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.addFlags(cmd)
	return cmd
}

func (f *supportFlags) addFlags(cmd *cobra.Command) {
	f.runFlags.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.output, "output", "", "`file` to write; '-' is standard output; by default "+
		"evictrail-support-CLUSTER-TIME.tar.gz, with the name of the host where --cluster is not set")
	flags.BoolVar(&f.force, "force", false, "overwrite the file")
	flags.StringVar(&f.logFile, "log", "", "`file` with the log of evictrail, whose end is added; '-' is standard input")
	flags.StringVar(&f.vm, "vm", "", "add what is known of this VM: `NAMESPACE/VM`")
	flags.StringVar(&f.at, "at", "", "with --vm: as of this `time` (2026-11-21T00:40:00Z) or this long ago (90m, 7d)")
	f.metrics.addFlags(cmd)
	for _, own := range []string{
		"output", "force", "log", "vm", "at", "metrics-url", "metrics-ca-file", "metrics-token-file",
	} {
		config.LeaveToCommandLine(flags, own)
	}
	_ = cmd.MarkFlagFilename("output", "tar.gz", "tgz")
	_ = cmd.RegisterFlagCompletionFunc("vm", func(
		cmd *cobra.Command, _ []string, typed string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		from := &readerFlags{database: f.db, changed: cmd.Flags().Changed}
		return findCompletions(cmd, from, trail.NameQuery{Kind: trail.NameVM, Cluster: f.cluster, Prefix: typed}, "")
	})
}

// toStandardOutput reports whether the bundle goes to standard output.
func (f *supportFlags) toStandardOutput() bool { return f.output == "-" }

// partTimeout bounds one part of a bundle; doctor asks much, and waits up to 10 s for each answer.
const partTimeout = 2 * time.Minute

func (f *supportFlags) run(cmd *cobra.Command) (err error) {
	made := nowUTC().Truncate(time.Second)
	of, err := f.parseSubject(made)
	if err != nil {
		return err
	}
	if err := f.metrics.checkFlags(); err != nil {
		return err
	}
	if f.toStandardOutput() && detectTerminal(cmd.OutOrStdout(), colorNever).interactive {
		return usageErrorf("output -: a terminal cannot show an archive: redirect it into a file")
	}
	name := nameBundle(f.cluster, made)
	out, path := cmd.OutOrStdout(), cmp.Or(f.output, name+".tar.gz")
	if !f.toStandardOutput() {
		file, err := createPrivate(path, f.force)
		if err != nil {
			return err
		}
		defer func() {
			if err = errors.Join(err, file.Close()); err != nil {
				_ = os.Remove(path)
			}
		}()
		out = file
	}
	s := &support{supportFlags: f, cmd: cmd, of: of}
	defer s.close()
	b, err := bundle.Collect(cmd.Context(), s.listParts(), bundle.Options{
		Name: name, Made: made, Timeout: partTimeout, Notes: bundleNotes,
		Mask: mask.New(f.listSecrets(cmd)).Mask,
		Progress: func(p bundle.Part, err error) {
			said := "collected"
			if err != nil {
				said = err.Error()
			}
			printTextf(cmd.ErrOrStderr(), "%s: %s\n", p.File, said)
		},
	})
	if err != nil {
		return err
	}
	if err := b.Write(out); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	printTextf(cmd.ErrOrStderr(), "wrote %s: look through it before you send it\n", path)
	return nil
}

// parseSubject reads about which VM, and as of when, something is added.
func (f *supportFlags) parseSubject(now time.Time) (q trail.Question, err error) {
	if f.vm == "" && f.at != "" {
		return q, usageErrorf("at: name the VM that it is about with --vm")
	}
	if f.vm == "" {
		return q, nil
	}
	namespace, vm, err := parseVM(f.vm)
	if err != nil {
		return q, err
	}
	q = trail.Question{Cluster: f.cluster, Of: trail.VMISubject(namespace, vm)}
	q.At, err = parseTime("at", f.at, now)
	return q, err
}

// unfit finds what the name of a file should not have.
var unfit = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// nameBundle returns the name of a bundle of a cluster, or else of this host.
func nameBundle(cluster string, made time.Time) string {
	if cluster == "" {
		cluster, _ = os.Hostname()
	}
	cluster = unfit.ReplaceAllString(cmp.Or(cluster, "unknown"), "-")
	return "evictrail-support-" + cluster + "-" + made.Format("20060102T150405Z")
}

// createPrivate makes a file that its owner alone may read. One that is there is overwritten by force alone, and does
// not leave its mode.
func createPrivate(path string, force bool) (io.WriteCloser, error) {
	if force {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("overwrite the bundle: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("%s is there already: choose another --output, or say --force", path)
	case err != nil:
		return nil, fmt.Errorf("write the bundle: %w (--output names another file, '-' is standard output)", err)
	}
	return file, nil
}
