package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/spool"
	"github.com/evictrail/evictrail/trail"
)

// epochs decides in which epoch a cluster is recorded (docs/adr/0033). The spool has it, so that it is known while the database is away; the database has what all
// replicas agree on: the latest that any of them wrote.
type epochs struct {
	*recorder
	spool *spool.Spool
}

// rebuiltError says that another cluster answers than the one that was recorded under the name, and that no other replica sees that one any more.
type rebuiltError struct{ from, to string }

// Error names both clusters.
func (e *rebuiltError) Error() string {
	return fmt.Sprintf("the cluster was rebuilt: its namespace kube-system had the UID %s and has %s", e.from, e.to)
}

// errOtherEpoch ends a collector whose epoch is over.
var errOtherEpoch = errors.New("a new epoch of the cluster has begun")

// patience is how long another replica that watches is waited for. Where a cluster is rebuilt, the other replicas notice a little later, and fall silent.
type patience struct {
	watching time.Duration // a replica counts as watching for so long after it last said so, which each does every 10 s
	silence  time.Duration // how long a replica may go on watching before two clusters are being recorded under one name
}

var defaultPatience = patience{watching: 30 * time.Second, silence: 50 * time.Second}

// identifyCluster compares the UID of the cluster that answers with that of the one that is recorded, and ties the name to it where it is tied to none.
func (e epochs) identifyCluster(ctx context.Context, uid string) error {
	err := e.compareUID(ctx, uid)
	if err == nil {
		e.meet.Do(func() { close(e.met) })
	}
	return err
}

func (e epochs) compareUID(ctx context.Context, uid string) error {
	known := e.spool.Identity()
	if uid == "" {
		e.unidentified.Do(func() {
			e.log.Warn("evictrail may not get the namespace kube-system: it does not notice when another cluster answers under this name", "cluster", e.cluster)
		})
	}
	switch {
	case known.UID == uid || uid == "":
		return nil
	case known.UID == "":
		if err := e.spool.SetIdentity(trail.Identity{UID: uid, Epoch: known.Epoch}); err != nil {
			e.log.Warn("spool does not remember which cluster is recorded", "err", err)
		}
		return e.reconcileEpoch(ctx)
	}
	if err := e.refuseTwo(ctx, known.UID, uid); err != nil {
		return err
	}
	return &rebuiltError{from: known.UID, to: uid}
}

// reconcileEpoch brings together what the spool and the database say of the epoch; while the database is away nothing. Errors: errOtherEpoch where the database is ahead,
// *rebuiltError, and what refuseTwo returns.
func (e epochs) reconcileEpoch(ctx context.Context) error {
	if !e.db.isReady() {
		return nil
	}
	ours := e.spool.Identity()
	theirs, err := e.sink.Tie(ctx, ours)
	if err != nil {
		e.log.Warn("database does not answer which cluster it has under this name", "err", err)
		return nil
	}
	switch {
	case theirs.Epoch == ours.Epoch && ours.UID != "" && theirs.UID != ours.UID: // somebody else was first to write under this name
		if err := e.refuseTwo(ctx, theirs.UID, ours.UID); err != nil {
			return err
		}
		return &rebuiltError{from: theirs.UID, to: ours.UID}
	case theirs == ours:
		return nil
	}
	if err := e.spool.SetIdentity(theirs); err != nil {
		e.log.Warn("spool does not remember which cluster is recorded", "err", err)
	}
	if theirs.Epoch == ours.Epoch {
		return nil
	}
	return errOtherEpoch
}

// refuseTwo returns an error where another replica goes on watching the cluster that is recorded while we see another one: two clusters are recorded under one
// name. A replica that watched the same cluster before it was rebuilt falls silent.
func (e epochs) refuseTwo(ctx context.Context, recorded, ours string) error {
	if !e.db.isReady() {
		return nil
	}
	deadline := nowUTC().Add(e.f.patience.silence)
	for {
		other, err := e.sink.OtherWatching(ctx, nowUTC().Add(-e.f.patience.watching))
		switch {
		case err != nil:
			e.log.Warn("database does not answer who else records under this name", "err", err)
			return nil
		case other == "":
			return nil
		case nowUTC().After(deadline):
			return fmt.Errorf("cluster %q is being recorded by %s from a cluster whose namespace kube-system has the UID %s; this one has %s: record this one under another name with --cluster, or stop the other",
				e.cluster, other, recorded, ours)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// respondToError begins what an error of a collector asks for: a new epoch, or the one that the other replicas have begun. It returns other errors.
func (e epochs) respondToError(err error, lastWhole time.Time) error {
	var back *collector.RewoundError
	var rebuilt *rebuiltError
	id := e.spool.Identity()
	switch {
	case errors.Is(err, errOtherEpoch):
		e.log.Warn("a new epoch of the cluster has begun, everything is compared", "epoch", id.Epoch)
		return nil
	case errors.As(err, &rebuilt):
		id.UID = rebuilt.to
		return e.beginEpoch(id, trail.ReasonClusterRebuilt, lastWhole, rebuilt.Error()+"; what was recorded of VMs that are not there any more is closed")
	case errors.As(err, &back):
		return e.beginEpoch(id, trail.ReasonClusterRestored, lastWhole, fmt.Sprintf("%s; what was recorded after resourceVersion %s may not have happened", back, back.Now))
	}
	return err
}

// beginEpoch begins a new epoch.
func (e epochs) beginEpoch(id trail.Identity, cause trail.Reason, from time.Time, detail string) error {
	id.Epoch++
	if from.IsZero() {
		from = nowUTC()
	}
	e.log.Error("the cluster does not continue what was recorded: a new epoch begins, everything is compared", "cause", cause, "epoch", id.Epoch, "detail", detail)
	e.config.Metrics.Epochs.WithLabelValues(string(cause)).Inc()
	return e.spool.BeginEpoch(id, trail.Break{Cause: cause, Key: fmt.Sprintf("epoch/%d", id.Epoch), From: from, Detail: detail})
}

// agreeEvery is how often is looked whether another replica began a new epoch.
const agreeEvery = 10 * time.Second

// untilNext waits until ctx ends or the epoch is over: another replica has begun a new one, or storing what was in the spool did. Its errors are errOtherEpoch and
// those of agree.
func (e epochs) untilNext(ctx context.Context, epoch trail.Epoch) error {
	look, agree := time.NewTicker(compareEvery), time.NewTicker(agreeEvery)
	defer look.Stop()
	defer agree.Stop()
	for {
		select {
		case <-look.C:
			if e.spool.Identity().Epoch != epoch {
				return errOtherEpoch
			}
		case <-agree.C:
			if err := e.reconcileEpoch(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// rewindable is a store whose database may lose what it had acknowledged. Then a gap is noted before anything else is stored, and the cluster is to be compared
// with what the database still has.
type rewindable struct {
	*store.ClusterStore
	epochs epochs
}

// Append implements collector.Sink.
func (s rewindable) Append(ctx context.Context, facts []trail.Fact) (trail.News, error) {
	news, err := s.ClusterStore.Append(ctx, facts)
	if s.noteRewind(err) {
		return s.ClusterStore.Append(ctx, facts)
	}
	return news, err
}

// Alive implements collector.Sink.
func (s rewindable) Alive(ctx context.Context, at time.Time, watching []trail.Watching) error {
	err := s.ClusterStore.Alive(ctx, at, watching)
	if s.noteRewind(err) {
		return s.ClusterStore.Alive(ctx, at, watching)
	}
	return err
}

// noteRewind reports whether the error is that the database has lost something, and notes that.
func (s rewindable) noteRewind(err error) bool {
	var lost *store.RewoundError
	if !errors.As(err, &lost) {
		return false
	}
	e := s.epochs
	from := lost.From
	if from.IsZero() {
		from = e.started
	}
	e.log.Error("the database has lost what it had stored: the cluster is compared with what is left", "since", from)
	e.config.Metrics.Epochs.WithLabelValues(string(trail.ReasonDatabaseRewound)).Inc()
	err = e.spool.NoteRewind(trail.Break{
		Cause: trail.ReasonDatabaseRewound, Key: "database/" + from.Format(time.RFC3339Nano), From: from,
		Detail: "the database has lost what it had stored since; what the cluster still says of that time is recorded again",
	})
	if err != nil {
		e.log.Error("spool does not remember that the database has lost something", "err", err)
	}
	s.Rewind()
	return true
}
