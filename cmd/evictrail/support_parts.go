package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/cmd/evictrail/bundle"
	"github.com/evictrail/evictrail/cmd/evictrail/config"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/store/embedded"
	"github.com/evictrail/evictrail/trail"
)

// bundleNotes is the last section of the README.txt of a bundle.
const bundleNotes = `Secrets: passwords, tokens and private keys are replaced by xxxxx, those that evictrail knows
wherever they stand, others where they look like one. Addresses of servers are not replaced.

Personal data: names are as they are. config.yaml and doctor.* name the cluster, the user of the database, and files;
metrics.txt and log.txt name VMs, namespaces and nodes; log.txt may name users. The files in vm name the VM, its nodes,
and the users and service accounts who asked for its evictions, with the addresses that they asked from and what they
wrote. "evictrail record --redact" records a cluster with pseudonyms instead, for a report that is to be played.

Look through all files before you send them.`

// support is a bundle that is being collected.
type support struct {
	*supportFlags
	cmd    *cobra.Command
	of     trail.Question // about a VM; zero: about none
	doctor *doctor        // nil: it has not looked yet
	opened *openedStore   // nil: nobody has asked for it yet
	why    *whyAnswer     // nil: nobody has asked yet
}

// openedStore is the database, or why it cannot be asked.
type openedStore struct {
	*store.Store
	err error
}

// whyAnswer is why the VM moved, or why that is not known.
type whyAnswer struct {
	trail.Answer
	err error
}

// listParts returns the parts of the bundle, in their order.
func (s *support) listParts() []bundle.Part {
	parts := []bundle.Part{
		{File: "version.txt", About: "version of the evictrail that made this", Write: writeVersion},
		{File: "config.yaml", About: `settings, as "evictrail config print --all" has them`, Write: s.writeConfig},
		{File: "doctor.txt", About: `findings of "evictrail doctor"`, Write: func(ctx context.Context, out io.Writer) error {
			return s.askDoctor(ctx).writeChecks(out, "text")
		}},
		{File: "doctor.json", About: "the same, for programs", Write: func(ctx context.Context, out io.Writer) error {
			return s.askDoctor(ctx).writeChecks(out, "json")
		}},
		{File: "schema.txt", About: `"evictrail schema status": version, sizes, rows`, Write: s.withStore(
			func(ctx context.Context, db *store.Store, out io.Writer) error {
				return showSchemaStatus(ctx, db, out, "table", s.retention.newPolicy(), 0)
			})},
		{File: "schema-diff.txt", About: `"evictrail schema validate": what is other than expected`, Write: s.withStore(
			func(ctx context.Context, db *store.Store, out io.Writer) error {
				return validateSchema(ctx, db, out, "text")
			})},
		{File: "metrics.txt", About: "metrics of the evictrail that runs", Write: s.writeMetrics},
		{File: "log.txt", About: "the end of its log", Write: s.writeLog},
	}
	return append(parts, s.listVMParts()...)
}

// listVMParts returns the parts about a VM.
func (s *support) listVMParts() []bundle.Part {
	if s.vm == "" {
		return nil
	}
	return []bundle.Part{
		{File: "vm/why.txt", About: `"evictrail why": the whole answer`, Write: s.withStore(
			func(ctx context.Context, db *store.Store, out io.Writer) error {
				answer, err := s.askWhy(ctx, db)
				if err != nil {
					return err
				}
				return writeAnswer(out, answer, answerForm{verbose: true})
			})},
		{File: "vm/why.json", About: "the same, for programs", Write: s.withStore(
			func(ctx context.Context, db *store.Store, out io.Writer) error {
				answer, err := s.askWhy(ctx, db)
				if err != nil {
					return err
				}
				return api.WriteJSON(out, answer)
			})},
		{File: "vm/why-not.json", About: `"evictrail why-not"`, Write: s.withStore(
			func(ctx context.Context, db *store.Store, out io.Writer) error {
				answer, err := db.WhyNot(ctx, s.of)
				if err != nil {
					return inCluster(ctx, answers.Reader{Reader: db.Reader}, s.cluster, err)
				}
				return api.WriteJSON(out, answer)
			})},
		{
			File: "vm/events.jsonl", About: "facts about the VM, newest first: of the week before, and the day after",
			Write: s.withStore(s.writeEvents),
		},
		{
			File: "vm/facts.jsonl", About: `the facts behind "why": "evictrail play facts.jsonl" leads to the same answer`,
			Write: s.withStore(s.writeFacts),
		},
	}
}

// withStore returns what writes a part that is about the database, which is opened once.
func (s *support) withStore(
	write func(context.Context, *store.Store, io.Writer) error,
) func(context.Context, io.Writer) error {
	return func(ctx context.Context, out io.Writer) error {
		if s.opened == nil {
			db, err := s.openStore(ctx)
			s.opened = &openedStore{db, err}
		}
		if s.opened.err != nil {
			return s.opened.err
		}
		return write(ctx, s.opened.Store, out)
	}
}

// openStore opens the database that the flags name, or the one that an evictrail with these settings has started.
func (s *support) openStore(ctx context.Context) (*store.Store, error) {
	flags := s.db
	if flags.url == "" {
		_, url, err := embedded.Find(ctx, flags.dataDir, "evictrail")
		if err != nil {
			return nil, err
		}
		if url == "" {
			return nil, fmt.Errorf("no --database-url, and no evictrail runs with a Postgres in %s", flags.dataDir)
		}
		flags.url = url
	}
	return flags.openStore(ctx)
}

// close closes the database where it was opened.
func (s *support) close() {
	if s.opened != nil && s.opened.err == nil {
		s.opened.Close()
	}
}

func writeVersion(_ context.Context, out io.Writer) error {
	_, err := fmt.Fprintln(out, version.Print("evictrail"))
	return err
}

func (s *support) writeMetrics(ctx context.Context, out io.Writer) error {
	return s.metrics.fetchMetrics(ctx, &s.listen, &s.intake.tls, out)
}

// writeConfig writes the settings. Its error is what is wrong with them.
func (s *support) writeConfig(_ context.Context, out io.Writer) error {
	text, err := config.Write(s.cmd.Flags(), true)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	if err := s.checkConfig(s.cmd); err != nil {
		return fmt.Errorf("run would not start with this: %w", err)
	}
	return nil
}

// askDoctor has the checks made, once.
func (s *support) askDoctor(ctx context.Context) *doctor {
	if s.doctor == nil {
		s.doctor = s.runChecks(ctx, s.cmd)
	}
	return s.doctor
}

// How much of a log is added.
const (
	mostLogLines = 10_000
	mostLogBytes = 5 << 20
)

// writeLog writes the end of the log that the flag names.
func (s *support) writeLog(_ context.Context, out io.Writer) error {
	from := s.cmd.InOrStdin()
	switch s.logFile {
	case "":
		return fmt.Errorf("%w: --log FILE adds it: kubectl -n evictrail logs evictrail-0 --tail 10000 > FILE",
			bundle.ErrLeftOut)
	case "-":
	default:
		file, err := os.Open(s.logFile)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	text, err := bundle.ReadTail(from, mostLogLines, mostLogBytes)
	if err == nil && len(text) == 0 {
		err = errors.New("it is empty, or one line is longer than all that is added")
	}
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// askWhy asks why the VM moved, once.
func (s *support) askWhy(ctx context.Context, db *store.Store) (trail.Answer, error) {
	if s.why == nil {
		answer, err := db.Why(ctx, s.of)
		if err != nil {
			err = inCluster(ctx, answers.Reader{Reader: db.Reader}, s.cluster, err)
		}
		s.why = &whyAnswer{answer, err}
	}
	return s.why.Answer, s.why.err
}

// The facts of a VM that are added.
const (
	eventsBefore = 7 * 24 * time.Hour
	eventsAfter  = 24 * time.Hour
	mostEvents   = 5_000
)

// writeEvents writes facts about the VM around the time that was asked about, as the API has them.
func (s *support) writeEvents(ctx context.Context, db *store.Store, out io.Writer) error {
	answer, err := s.askWhy(ctx, db)
	if err != nil {
		return err
	}
	namespace, vm := s.of.Of.VM()
	page, err := db.ListJSON(ctx, trail.ViewEvents, trail.Query{
		Cluster: s.cluster, Namespace: namespace, VMI: vm, Limit: mostEvents,
		Since: answer.AsOf.Add(-eventsBefore), Until: answer.AsOf.Add(eventsAfter),
	})
	if err != nil {
		return err
	}
	for _, row := range page.Rows {
		if _, err := fmt.Fprintf(out, "%s\n", row); err != nil {
			return err
		}
	}
	if page.Next != nil {
		return fmt.Errorf("the newest %d: --at chooses a time with others", mostEvents)
	}
	return nil
}

// writeFacts writes the facts of which the answer is derived, for "evictrail play".
func (s *support) writeFacts(ctx context.Context, db *store.Store, out io.Writer) error {
	answer, err := s.askWhy(ctx, db)
	if err != nil {
		return err
	}
	facts, err := db.FactsBehind(ctx, trail.Question{Cluster: s.cluster, Of: s.of.Of, At: answer.AsOf})
	if err != nil {
		return err
	}
	for _, f := range facts {
		text, err := trail.WriteFact(f)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", text); err != nil {
			return err
		}
	}
	return nil
}
