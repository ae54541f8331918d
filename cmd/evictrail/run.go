package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/trail"
)

// runFlags are those of "evictrail run".
type runFlags struct {
	db          databaseFlags
	log         logFlags
	listen      listenFlags
	intake      intakeFlags
	descheduler deschedulerFlags
	prometheus  prometheusFlags
	notify      notifyFlags
	loops       thresholdFlags
	leader      leaderFlags
	spool       spoolFlags
	retention   retentionFlags
	evidence    evidenceFlags
	kube        kubeFlags
	profiling   profiling
	config      string // the file with settings; empty: there is none
	cluster     string
	retained    atomic.Pointer[retention.Policy] // how long what is recorded is kept, as a reload left it
	maxVMSeries int
	patience    patience
}

func newRun() *cobra.Command {
	return newRunWith(defaultPatience)
}

func newRunWith(p patience) *cobra.Command {
	f := runFlags{patience: p}
	cmd := &cobra.Command{
		Use: "run", Short: "Watch a cluster and record its evictions and migrations", GroupID: "record", Args: asUsage(cobra.NoArgs),
		Long: `Watch the cluster of your kubeconfig, or the one it runs in, and record what happens to its VMs until it is stopped.
Without --database-url it starts a Postgres of its own and prints how to reach it.

It needs list and watch on kubevirts, virtualmachineinstances and virtualmachineinstancemigrations (kubevirt.io), on migrationpolicies
(migrations.kubevirt.io), on evictionrequests and evictions (lifecycle.k8s.io), on nodes, pods and events, and get on the namespace kube-system;
it writes nothing to the cluster but what you ask for with --kubernetes-events.

With --auth=kubernetes who reads sends a token of the cluster, or signs in with one on the web page. It then asks the cluster whose that is and
what they may see: who may get virtualmachineinstances everywhere sees everything of this cluster, others the VMs of the namespaces in which they
may (docs/access.md). That needs create on tokenreviews and subjectaccessreviews. Tokens are to be made for evictrail, as by 'kubectl create token
SERVICEACCOUNT --audience=evictrail', so that they are of no use elsewhere; --auth-audience and --auth-api-tokens accept others.

Only audit events or the observer say who asked for an eviction, with which words, and what was refused: kube-apiservers
send audit events to /audit, or --audit-file follows their log; --eviction-observer serves an admission webhook on
--admission-listen that allows everything, to API servers that know its path or show a certificate. 'evictrail generate manifests' writes what the cluster needs for either.

What decides an eviction beforehand, and what was held back, only the descheduler knows: its policy comes from --descheduler-policy,
from --descheduler-configmap, which needs list and watch on that ConfigMap, or from --migration-cooldown and its like;
--descheduler-metrics-url reads its metrics, at port 10258 of its pod. The load of nodes shows whether a move was needed and what came of it:
that of OpenShift's descheduler has its own view of it in these metrics, and --prometheus-url asks a Prometheus.

What is seen is kept on disk first, in --spool-dir, until the database has it. So evictrail starts and records while the database is away, and
keeps what it has not stored through a crash. When the spool is filling up (--spool-size) repeats of refused requests are left out first, then
what the descheduler counts, then all else; each loss is counted and recorded as a gap. One process has a spool.

Facts are kept for --keep-facts and then dropped by whole months; what they came to (evacuations, migrations, loops, timelines) stays for --keep-rows, so that lists
still show them. --keep-requesters erases the names of people who asked sooner (docs/retention.md). The replica that derives does that, every hour.
It also seals the facts of each day after midnight (UTC) with a digest, so that 'evictrail verify' shows what was changed since; --audit-anchor
keeps the digests outside of the database, too (docs/evidence.md).

Several replicas may record one cluster into one database: each stores what it sees, and with --leader-elect the holder of a lease, which
needs create, get and update on leases in its namespace, derives what that means. The others take over within 20 s.

It can tell other programs of loops, stuck evacuations, lost guests and drains: by CloudEvents (--cloudevents-url), and as Events on VMIs and Nodes
(--kubernetes-events). --otlp-url sends a trace of each evacuation (docs/notify.md).

--listen serves the web page, the API below /api/v1, /metrics, /livez and /readyz, which says which watch is not working. So is the API: 'evictrail why' and the lists ask
it with --server, programs at /api/v1; /docs describes it.`,
		Example: `  evictrail run
  evictrail run --kubeconfig prod.yaml --cluster prod --database-url 'postgres://evictrail@db.example/evictrail?sslmode=verify-full'
  evictrail run --audit-file /var/log/kubernetes/audit/audit.log   # on a control-plane node
  evictrail run --descheduler-configmap openshift-kube-descheduler-operator/descheduler
  evictrail run --loop-threshold failing_for=20m --loop-threshold moves=6
  evictrail run --evacuation-objective node_maintenance=15m --evacuation-objective any=1h
  evictrail run --requesters requesters.txt   # which service accounts are whose
  evictrail run --leader-elect --leader-lease evictrail/evictrail   # one of several replicas
  evictrail run --cloudevents-url https://events.example/evictrail --otlp-url http://otel-collector.observability:4318
  evictrail run --audit-anchor /var/lib/evictrail/anchors.jsonl   # proof that facts were not changed afterwards
  evictrail run --spool-dir /var/spool/evictrail --spool-size 20GiB   # a database that may be away for days
  evictrail run --descheduler-metrics-url https://descheduler.kube-system.svc:10258/metrics --descheduler-metrics-insecure
  evictrail run --listen :8443 --auth=kubernetes --tls-cert-file tls.crt --tls-key-file tls.key --audit-token-file tokens
  evictrail run --eviction-observer --admission-listen :9443 --admission-secret-file secret --tls-cert-file tls.crt --tls-key-file tls.key`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.addFlags(cmd)
	return cmd
}

func (f *runFlags) addFlags(cmd *cobra.Command) {
	addConfigFlag(cmd, &f.config)
	f.db.addFlags(cmd)
	f.db.addReadFlags(cmd)
	f.db.addEmbedded(cmd, "run")
	f.log.addFlags(cmd, "info")
	f.listen.addFlags(cmd)
	f.listen.addLinkFlags(cmd)
	f.intake.addFlags(cmd)
	f.descheduler.addFlags(cmd)
	f.prometheus.addFlags(cmd)
	f.notify.addFlags(cmd)
	f.loops.addFlags(cmd)
	f.leader.addFlags(cmd)
	f.spool.addFlags(cmd)
	f.retention.addFlags(cmd)
	f.evidence.addFlags(cmd)
	f.kube.addFlags(cmd)
	f.profiling.addFlags(cmd)
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "`name` under which the cluster is recorded; by default the UID of its namespace kube-system")
	cmd.Flags().IntVar(&f.maxVMSeries, "max-vm-series", metrics.DefaultMaxVMSeries, "at most `N` series of each metric about single VMs; those that need somebody most are kept")
}

// checkAllFlags returns what is wrong with the flags alone.
func (f *runFlags) checkAllFlags(cmd *cobra.Command) []error {
	return []error{f.listen.checkFlags(), f.listen.checkTLS(&f.intake.tls), f.db.checkReadFlags(), f.intake.checkFlags(), f.descheduler.checkFlags(cmd), f.prometheus.checkFlags(cmd), f.notify.checkFlags(cmd), f.leader.completeFlags(), f.spool.checkFlags(), f.retention.checkFlags(), f.evidence.checkFlags(), f.profiling.checkFlags(), f.checkSeries()}
}

// listMistakes returns what is wrong with the flags and the files that they name; nil for what is right.
func (f *runFlags) listMistakes(cmd *cobra.Command) []error {
	_, err := f.loops.parseThresholds()
	return append(f.checkAllFlags(cmd), err)
}

func (f *runFlags) checkSeries() error {
	if f.maxVMSeries < 1 {
		return usageErrorf("max-vm-series %d: must be positive", f.maxVMSeries)
	}
	return nil
}

func (f *runFlags) run(cmd *cobra.Command) (err error) {
	log, err := f.log.newLogger(cmd)
	if err != nil {
		return err
	}
	if err := errors.Join(f.checkAllFlags(cmd)...); err != nil {
		return err
	}
	thresholds, err := f.loops.parseThresholds()
	if err != nil {
		return err
	}
	config, err := f.kube.restConfig()
	if err != nil {
		return err
	}
	extra, err := f.descheduler.readObservations()
	if err != nil {
		return err
	}
	reloads, end := f.listenForReloads(cmd)
	defer end()
	ctx := cmd.Context()
	web, err := f.listen.bindAddress(ctx, log)
	if err != nil {
		return err
	}
	if err := f.profiling.bindAddress(ctx); err != nil {
		return err
	}
	if web.tls, err = f.intake.tls.newTLSConfig(log); err != nil {
		return err
	}
	reviews, err := f.intake.observer.bindAddress(ctx, &f.intake.tls, web.metrics, log)
	if err != nil {
		return err
	}
	web.metrics.LimitVMSeries(f.maxVMSeries)
	if f.intake.expectsAudit() {
		web.metrics.AuditEnabled.Set(1)
	}
	db, err := f.db.openOrEmbedLater(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close(ctx)) }()
	db.DB.Retried = func(err error) { web.metrics.StoreFailed(metrics.OpRetry, err) }
	db.WindowMemory = int(f.leader.memory)
	db.Underived = func(f store.DeriveFailure) {
		log.Error("subject cannot be derived: it is left out, and tried again later", "subject", f.Subject, "err", f.Reason)
	}
	if _, err := db.prepareIfAvailable(ctx, log); err != nil {
		return err
	}
	if f.db.url == "" {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "The database is a Postgres of our own. To ask it from another shell:\n  export EVICTRAIL_DATABASE_URL='%s'\n", db.url)
	}
	db.reads, err = f.db.openReads(ctx, db.Store, reportingTo(web.metrics, log))
	if err != nil {
		return err
	}
	defer db.reads.Close()
	return f.recordAndServe(ctx, db, web, reviews, reloads, log, thresholds, collector.Config{
		REST: config, Log: log, Metrics: web.metrics, Clock: nowUTC, Extra: extra, Policy: f.descheduler.policyMap(),
	})
}

// recordAndServe watches until ctx ends or something that it needs does.
func (f *runFlags) recordAndServe(ctx context.Context, db *database, web *service, reviews *observer, reloads *reloader, log *slog.Logger, thresholds trail.Thresholds, config collector.Config) error {
	g, ctx := errgroup.WithContext(ctx)
	watching := &watcher{}
	gate, err := f.listen.newGate(config.REST, db.reads, watching.currentCluster, web.metrics, log)
	if err != nil {
		return err
	}
	r := &recorder{f: f, db: db, watching: watching, thresholds: thresholds, config: config, log: log, addr: web.listener.Addr().String(), started: nowUTC(), leading: newLeadership(nowUTC())}
	db.reads.OverlaySigns(r.overlayRead)
	g.Go(func() error { db.reads.Run(ctx); return nil })
	g.Go(func() error { f.profiling.serveProfiles(ctx, log); return nil })
	g.Go(func() error { reloads.run(ctx, log); return nil })
	g.Go(func() error { return r.run(ctx) })
	g.Go(func() error {
		return web.serve(ctx, r.evaluateStatus, f.newServer(ctx, db, watching, gate, web.metrics.Refused, log))
	})
	g.Go(func() error { return reviews.serveReviews(ctx, watching.answerReview) })
	g.Go(func() error {
		if err := db.waitUntilReady(ctx, log); err != nil {
			return ignoreCancel(ctx, err)
		}
		return keepMonths(ctx, db.Store, log)
	})
	return g.Wait()
}

func ignoreCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// newServer is what can be asked of us and sent to us.
func (f *runFlags) newServer(ctx context.Context, db *database, watching *watcher, gate *api.Gate, denied func(cause string), log *slog.Logger) api.Server {
	s := f.listen.newServer(ctx, db.Store, db.reads, log)
	s.Gate, s.Site.Links = gate, f.listen.links
	s.Audit = &api.Audit{Take: watching.ingestAudit, Access: f.intake.newAccess(&f.listen, denied)}
	return s
}

// clusterName returns the name under which the cluster is recorded, waiting for the cluster where it must be asked.
func (f *runFlags) clusterName(ctx context.Context, config *rest.Config, log *slog.Logger) (string, error) {
	if f.cluster != "" {
		return f.cluster, nil
	}
	return retryUntilAvailable(ctx, log, "cluster does not answer its identity, trying again (or name it with --cluster)",
		func() (string, error) { return collector.ClusterUID(ctx, config) },
		func(error) bool { return true })
}

// keepMonths makes the partitions of this and the next month every hour. Those of the start were made before the database was ready.
func keepMonths(ctx context.Context, s *store.Store, log *slog.Logger) error {
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		select {
		case <-hourly.C:
			ensureMonths(ctx, s, log)
		case <-ctx.Done():
			return nil
		}
	}
}

// ensureMonths makes the partitions of this and the next month. Where that fails facts go to the default partition, until it is tried again.
func ensureMonths(ctx context.Context, s *store.Store, log *slog.Logger) {
	if err := s.EnsureMonths(ctx, nowUTC()); err != nil && ctx.Err() == nil {
		log.Warn("partitions not made, trying again in an hour", "err", err)
	}
}
