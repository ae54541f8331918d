package main

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/notify"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// notifyFlags say who outside of evictrail is notified of what happens.
type notifyFlags struct {
	events     remoteFlags
	traces     remoteFlags
	kubernetes bool
}

func (f *notifyFlags) addFlags(cmd *cobra.Command) {
	f.events.addFlags(cmd, "cloudevents", "send a CloudEvent to this `URL` for each loop, stuck evacuation, lost guest and drain (docs/notify.md)")
	f.traces.addFlags(cmd, "otlp", "send a trace of each evacuation to the OpenTelemetry collector at this `URL`, without /v1/traces (docs/notify.md)")
	cmd.Flags().BoolVar(&f.kubernetes, "kubernetes-events", false, "write loops, stuck evacuations, lost guests and drains as Events on VMIs and Nodes; needs create on events")
}

func (f *notifyFlags) checkFlags(cmd *cobra.Command) error {
	if err := f.events.checkFlags(cmd); err != nil {
		return err
	}
	return f.traces.checkFlags(cmd)
}

// listNames returns the names of those who are notified.
func (f *notifyFlags) listNames() []string {
	var out []string
	for name, is := range map[string]bool{notify.NameCloudEvents: f.events.isSet(), notify.NameTraces: f.traces.isSet(), notify.NameKubernetesEvents: f.kubernetes} {
		if is {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// newReceivers returns who is notified.
func (f *notifyFlags) newReceivers(config *rest.Config, rows notify.Rows) (all []notify.Receiver, err error) {
	if f.events.isSet() {
		r, err := notify.NewCloudEvents(f.events.server)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if f.traces.isSet() {
		r, err := notify.NewTraces(f.traces.server, rows)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if f.kubernetes {
		r, err := notify.NewKubernetesEvents(config)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// How often is looked for what is to be sent.
const (
	notifyFirst = 2 * time.Second
	notifyEvery = 5 * time.Second
)

// notifier notifies one receiver of what happens.
type notifier struct {
	notify.Notifier
	trouble
}

func newNotifier(db *pg.DB, rows notify.Rows, cluster string, to notify.Receiver, m *metrics.Metrics, log *slog.Logger) *notifier {
	m.AddReceiver(to.Name())
	log = log.With("receiver", to.Name())
	t := &notifier{Notifier: notify.Notifier{DB: db, Rows: rows, Cluster: cluster, Receiver: to}, trouble: trouble{metrics: m, log: log}}
	t.Sent = func(n trail.Notice, became trail.Delivery, err error) {
		m.Notices.WithLabelValues(to.Name(), string(became)).Inc()
		if became == trail.DeliveryRefused {
			log.Warn("a notice was refused for good, and is left out", "id", n.ID, "kind", n.Kind, "err", err)
		}
	}
	return t
}

// sendNews sends what is new. What is in the way is logged once.
func (t *notifier) sendNews(ctx context.Context, _ time.Time) {
	sent, err := t.SendNews(ctx)
	if sent > 0 {
		t.log.Debug("notices sent", "count", sent)
	}
	if t.isNew(ctx, metrics.OpNotify, err) {
		t.log.Warn("a receiver is not notified, trying again", "err", err)
	}
}

// notifyAll notifies the receivers while this replica leads, until ctx ends.
func (r *recorder) notifyAll(ctx context.Context, g *errgroup.Group) error {
	rows := r.db.Whole
	receivers, err := r.f.notify.newReceivers(r.config.REST, rows)
	if err != nil {
		return err
	}
	for _, to := range receivers {
		t := newNotifier(r.db.DB, rows, r.cluster, to, r.config.Metrics, r.log)
		g.Go(func() error { return chore{notifyFirst, notifyEvery, t.sendNews}.run(ctx, r.sink.Leads) })
	}
	return nil
}
