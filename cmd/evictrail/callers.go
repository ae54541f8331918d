package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/store/standby"
	"github.com/evictrail/evictrail/trail"
)

// callersOf is what answers callers: each answer is of one server.
type callersOf struct{ *standby.Servers }

// answerPrograms implements api.Readers.
func (c callersOf) answerPrograms(ctx context.Context, of trail.Scope, answer func(context.Context, api.Reader) error) error {
	return c.Answer(ctx, of, func(ctx context.Context, r *read.Reader) error {
		return answer(ctx, answers.Reader{Reader: r})
	})
}

// answerPages implements web.Readers.
func (c callersOf) answerPages(ctx context.Context, of trail.Scope, page func(context.Context, web.Reader) error) error {
	return c.Answer(ctx, of, func(ctx context.Context, r *read.Reader) error {
		return page(ctx, answers.Reader{Reader: r})
	})
}

// listChanges implements api.Stream.Changes.
func (c callersOf) listChanges(ctx context.Context, of trail.Scope, q trail.Query, within time.Duration) (changed []time.Time, err error) {
	err = c.Answer(ctx, of, func(ctx context.Context, r *read.Reader) (err error) {
		changed, err = r.Changes(ctx, q, within)
		return err
	})
	return changed, err
}

// listNamespaces implements api.Gate.Namespaces.
func (c callersOf) listNamespaces(ctx context.Context, cluster string) (names []string, err error) {
	err = c.Answer(ctx, trail.Everything(), func(ctx context.Context, r *read.Reader) (err error) {
		names, err = r.Namespaces(ctx, cluster)
		return err
	})
	return names, err
}

// awaitedAcknowledger writes acknowledgements to the primary, and returns when who asks next reads them.
type awaitedAcknowledger struct {
	*store.Acknowledger
	reads *standby.Servers
}

// Acknowledge implements api.Acknowledger.
func (a awaitedAcknowledger) Acknowledge(ctx context.Context, written trail.Acknowledgement) (trail.Acknowledgement, error) {
	written, err := a.Acknowledger.Acknowledge(ctx, written)
	if err == nil {
		a.reads.AwaitReplay(ctx)
	}
	return written, err
}

// Withdraw implements api.Acknowledger.
func (a awaitedAcknowledger) Withdraw(ctx context.Context, id trail.FactID, by string) (trail.Acknowledgement, error) {
	written, err := a.Acknowledger.Withdraw(ctx, id, by)
	if err == nil {
		a.reads.AwaitReplay(ctx)
	}
	return written, err
}

// reportingTo returns options that log and count which server answers, and show how the standby is.
func reportingTo(m *metrics.Metrics, log *slog.Logger) standby.Options {
	return standby.Options{
		Asked:    m.SetStandby,
		Repeated: m.AnswerRepeated,
		Changed: func(s trail.StandbySigns) {
			m.StandbyChanged(s)
			if s.Cause == "" {
				log.Info("the standby of the database answers what is asked", "lag_seconds", s.LagSeconds)
				return
			}
			log.Warn("the standby of the database does not answer as it should", "used", s.Used, "reason", s.Cause, "err", s.Why)
		},
	}
}
