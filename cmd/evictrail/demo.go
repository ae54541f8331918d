package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/standby"
	"github.com/evictrail/evictrail/trail"
)

// demoFlags are those of "evictrail demo".
type demoFlags struct {
	db         databaseFlags
	log        logFlags
	listen     listenFlags
	recordings string
	once       bool
}

// demoFirst is played first: the incident that the first answer is about.
const demoFirst = "b-dual-retry-loop-v1.8"

func newDemo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use: "demo", Short: "Play recorded incidents of real clusters, no cluster needed", GroupID: "record", Args: asUsage(cobra.NoArgs),
		Long: `Start a Postgres of our own, play recorded incidents of real KubeVirt clusters through the collector into it, show what
to ask, and stay until you press Ctrl-C. Each recording is a cluster of its own: --cluster distinguishes them, and the label cluster in /metrics. The API is served on
--listen: /docs describes it.`,
		Example: `  evictrail demo
  evictrail demo --once   # leave when everything is played`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.db.addFlags(cmd)
	f.db.addEmbedded(cmd, "demo")
	f.log.addFlags(cmd, "warn")
	f.listen.addFlags(cmd)
	cmd.Flags().StringVar(&f.recordings, "recordings", "", "`directory` with recordings, one folder each; by default those built in")
	cmd.Flags().BoolVar(&f.once, "once", false, "leave when everything is played")
	return cmd
}

func (f *demoFlags) run(cmd *cobra.Command) (err error) {
	started := time.Now()
	log, err := f.log.newLogger(cmd)
	if err != nil {
		return err
	}
	recs, err := f.openRecordings()
	if err != nil {
		return err
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if f.listen.auth == authKubernetes {
		return usageErrorf("auth kubernetes: the demo has no cluster that could say who callers are")
	}
	web, err := f.listen.bindAddress(ctx, log)
	if err != nil {
		return err
	}
	printTextf(out, "Starting a Postgres ...\n")
	db, err := f.db.openOrEmbed(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close(ctx)) }()
	if err := prepareDatabase(ctx, db.Store, log); err != nil {
		return err
	}
	if db.reads, err = f.db.openReads(ctx, db.Store, standby.Options{}); err != nil {
		return err
	}
	g, serving := errgroup.WithContext(ctx)
	serving, stop := context.WithCancel(serving)
	g.Go(func() error {
		return web.serve(serving, func(ctx context.Context) trail.RecorderStatus {
			if err := db.DB.Ping(ctx); err != nil {
				return trail.RecorderStatus{State: trail.RecorderNotRecording, Since: nowUTC(), Why: []string{"The database does not answer."}, Details: []string{err.Error()}, Unready: true}
			}
			return trail.RecorderStatus{State: trail.RecorderRecording, Since: started}
		}, f.listen.newServer(serving, db.Store, db.reads, log))
	})
	g.Go(func() error {
		defer stop()
		return f.playRecordings(serving, db, web, recs, out, log, started)
	})
	return g.Wait()
}

// openRecordings reads the recordings, the one that the first answer is about first.
func (f *demoFlags) openRecordings() ([]*recording.Recording, error) {
	from := evictrail.Recordings()
	if f.recordings != "" {
		from = os.DirFS(f.recordings)
	}
	folders, err := fs.ReadDir(from, ".")
	if err != nil {
		return nil, fmt.Errorf("read recordings: %w", err)
	}
	var out []*recording.Recording
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		rec, err := recording.Open(from, folder.Name(), collector.Check)
		switch {
		case err != nil:
			return nil, err
		case rec.Name == demoFirst:
			out = append([]*recording.Recording{rec}, out...)
		default:
			out = append(out, rec)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read recordings: no folder in %s: expected one for each recording", f.recordings)
	}
	return out, nil
}

// playRecordings plays everything, prints what to try after the first, and waits for the end.
func (f *demoFlags) playRecordings(ctx context.Context, db *database, web *service, recs []*recording.Recording, out io.Writer, log *slog.Logger, started time.Time) error {
	p := player{thresholds: trail.DefaultThresholds(), store: db.Store, log: log, progress: io.Discard}
	for i, rec := range recs {
		p.metrics = web.clusters.addCluster(rec.Name) // each has a node worker-1, and its own descheduler
		if err := p.playRecording(ctx, rec, rec.Name); err != nil {
			return ignoreCancel(ctx, err)
		}
		printTextf(out, "Played %s: %s, %d lines.\n", rec.Name, rec.End().Sub(rec.Start()).Round(time.Second), len(rec.Lines))
		if i > 0 {
			continue
		}
		if err := firstAnswer(ctx, db.Store, rec, out); err != nil {
			return ignoreCancel(ctx, err)
		}
		printTextf(out, "\n(The first answer took %s.)", time.Since(started).Round(100*time.Millisecond))
		if !f.once {
			printTextf(out, " In a browser: http://%s/\nOr try, in another shell:\n\n%s", web.listener.Addr(), whatToTry(db.url, web.listener.Addr().String()))
		}
		printTextf(out, "\n")
	}
	printTextf(out, "\nAll %d recordings are in, %s after the start.", len(recs), time.Since(started).Round(100*time.Millisecond))
	if f.once {
		printTextf(out, " Without --once the demo stays: pages, API and database to ask.\n")
		return nil
	}
	printTextf(out, " Press Ctrl-C to leave.\n")
	<-ctx.Done()
	return nil
}

// firstAnswer answers why for the VM of a recording that was tried most often.
func firstAnswer(ctx context.Context, s *store.Store, rec *recording.Recording, out io.Writer) error {
	namespace, vm, err := s.MostTried(ctx, rec.Name)
	if errors.Is(err, trail.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	h, err := s.History(ctx, rec.Name, trail.VMISubject(namespace, vm), rec.End())
	if err != nil {
		return err
	}
	printTextf(out, "\n$ %s why %s/%s --cluster %s --at %s\n\n%s", os.Args[0], namespace, vm, rec.Name, rec.End().Format(time.RFC3339),
		briefText(h.Why(namespace, vm)))
	return nil
}

// whatToTry returns commands to paste, with the program named as it was called.
func whatToTry(url, addr string) string {
	return fmt.Sprintf(`  export EVICTRAIL_DATABASE_URL='%[1]s'
  %[2]s requests
  %[2]s evacuations
  %[2]s migrations --cluster %[3]s
  %[2]s timeline --cluster %[3]s --vm demo/vm-d
  %[2]s loops
  %[2]s drains
  %[2]s cooldowns --cluster g-churn-cooldown
  %[2]s why-not demo/nbr-1 --cluster k-blocked-slot
  psql "$EVICTRAIL_DATABASE_URL" -c 'SELECT vmi, failure_class, count(*) FROM evictrail_v1.migrations GROUP BY 1, 2 ORDER BY 3 DESC'
  %[2]s why demo/vm-d --cluster %[3]s --server http://%[4]s
  curl 'http://%[4]s/api/v1/loops?open=true'
  curl http://%[4]s/metrics
  claude mcp add --transport http evictrail http://%[4]s/mcp
`, url, os.Args[0], demoFirst, addr)
}

func printTextf(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
