package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/trail"
)

// leaderFlags say which of several replicas derives.
type leaderFlags struct {
	elect   bool
	lease   string
	replica string
	memory  byteSize
}

func (f *leaderFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.elect, "leader-elect", false, "derive only while this replica holds the lease: for two replicas or more, which all store what they see")
	flags.StringVar(&f.lease, "leader-lease", "", "`namespace/name` of the lease; by default evictrail in the namespace of the pod ($POD_NAMESPACE)")
	f.memory = store.DefaultWindowMemory
	flags.Var(&f.memory, "window-memory", "hold so many `bytes` of history in memory to derive rows; about 600 VMs that are moved all the time take 64MiB, and what does not fit is read again when something happens")
	flags.StringVar(&f.replica, "replica", "", "`name` of this replica, the same after a restart; by default that of the pod ($POD_NAME), or of this machine")
}

// leastWindowMemory is what one large VM may need.
const leastWindowMemory byteSize = 8 << 20

// completeFlags completes the flags.
func (f *leaderFlags) completeFlags() error {
	if f.replica == "" {
		host, _ := os.Hostname()
		f.replica = cmp.Or(os.Getenv("POD_NAME"), host, "evictrail")
	}
	if f.memory < leastWindowMemory {
		return usageErrorf("window-memory %s: at least %s is needed", f.memory, leastWindowMemory)
	}
	if !f.elect {
		if f.lease != "" {
			return usageErrorf("leader-lease: it is for --leader-elect")
		}
		return nil
	}
	if namespace := os.Getenv("POD_NAMESPACE"); f.lease == "" && namespace != "" {
		f.lease = namespace + "/evictrail"
	}
	if _, _, ok := cutName(f.lease); !ok {
		return usageErrorf("leader-lease %q: expected NAMESPACE/NAME, as $POD_NAMESPACE is not set", f.lease)
	}
	return nil
}

// The times of the lease: after a crash another replica takes over once the lease has run out and it has looked, which is within
// 12 s + 2.2 x 0.5 s; after an orderly end, when it looks the next time.
const (
	leaseLasts = 12 * time.Second
	leaseRenew = 8 * time.Second // a leader that cannot renew for so long stops
	leaseRetry = 500 * time.Millisecond
)

// answerWithin bounds how long is derived at once, at first; it doubles while the database does not get done with anything: it may be slow, or a
// connection have no other end any more, which never says so. What was derived by then stays.
const answerWithin = time.Minute

// tryAgain is how long after a term began, or could not, a leader derives again.
const tryAgain = 250 * time.Millisecond

// leader derives while it is its turn.
type leader struct {
	sink       *store.ClusterStore
	thresholds trail.Thresholds
	metrics    *metrics.Metrics
	log        *slog.Logger
	leading    *leadership
}

// lastDerive bounds how long a leader that nobody follows derives after everything is stored.
const lastDerive = 10 * time.Second

// run derives until ctx ends: always, or when it is this replica's turn. Without turns it is an error that another one derives, too, and
// what is stored between the end of ctx and that of storing is derived as well: nobody would before the next start.
func (l leader) run(ctx, storing context.Context, config *rest.Config, f leaderFlags) error {
	if f.elect {
		return l.competeForLease(ctx, config, f)
	}
	defer l.endTerm()
	begun, err := l.leadUntilDeposed(storing)
	if err != nil {
		return fmt.Errorf("%w: start all replicas with --leader-elect, or record the other cluster under another name (--cluster)", err)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastDerive)
	defer cancel()
	if begun {
		_, err = l.catchUp(last, nil)
	} else {
		_, _, err = l.runStep(last, false)
	}
	if err != nil && !errors.Is(err, pg.ErrDeposed) {
		l.log.Warn("what was stored last is derived at the next start", "err", err)
	}
	return nil
}

// endTerm ends the term.
func (l leader) endTerm() {
	l.sink.Follow()
	l.metrics.Leader.Set(0)
	l.leading.recordTermEnd()
}

// leadUntilDeposed leads until ctx ends or another replica does, which is its only error. While the database is away it tries again. It reports
// whether it has begun a term, which the caller ends.
func (l leader) leadUntilDeposed(ctx context.Context) (begun bool, err error) {
	failed, within := false, answerWithin
	for {
		var rest time.Duration
		begun, rest, err = l.stepWithin(ctx, within, begun)
		if ctx.Err() != nil {
			return begun, nil
		}
		l.leading.recordDerivation(nowUTC(), begun, rest == 0, err)
		if within *= 2; !errors.Is(err, context.DeadlineExceeded) {
			within = answerWithin
		}
		switch {
		case errors.Is(err, pg.ErrDeposed):
			return begun, err
		case err != nil && !failed:
			l.log.Warn("not derived, trying again", "err", err)
		case err == nil && failed:
			l.log.Info("derived again")
		}
		failed = err != nil
		if l.sink.Rest(ctx, rest) != nil {
			return begun, nil
		}
	}
}

// stepWithin is step that ends after a while.
func (l leader) stepWithin(ctx context.Context, within time.Duration, begun bool) (bool, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return l.runStep(ctx, begun)
}

// runStep derives what was left to do, and returns how long to rest then; first of all it begins the term. It reports whether that has begun: a leader that stood still
// for long must not begin another, as somebody else may derive by then.
func (l leader) runStep(ctx context.Context, begun bool) (bool, time.Duration, error) {
	if begun {
		news, rest, err := l.sink.KeepUp(ctx)
		l.metrics.Count(news, nowUTC())
		return true, rest, err
	}
	if err := l.sink.Lead(ctx, formatProgramVersion(), l.thresholds); err != nil {
		return false, tryAgain, err
	}
	l.metrics.Leader.Set(1)
	l.leading.recordTermStart(nowUTC())
	n, err := l.catchUp(ctx, func(n int) { l.log.Debug("derived what was left", "count", n) })
	if n > 0 {
		l.log.Info("derived what followers, an import, an older version or other thresholds left", "count", n)
	}
	return true, tryAgain, err
}

// catchUp derives all that was left, and returns how many subjects that were.
func (l leader) catchUp(ctx context.Context, done func(subjects int)) (int, error) {
	n, news, err := l.sink.CatchUp(ctx, done)
	l.metrics.Count(news, nowUTC())
	return n, err
}

// formatProgramVersion names what derives: rows that another version derived are derived again.
func formatProgramVersion() string { return version.Version + " " + version.GetRevision() }

// competeForLease derives each time that this replica holds the lease, until ctx ends.
func (l leader) competeForLease(ctx context.Context, config *rest.Config, f leaderFlags) error {
	c := rest.CopyConfig(config)
	c.Timeout = leaseRenew / 2
	client, err := coordination.NewForConfig(c)
	if err != nil {
		return fmt.Errorf("make Kubernetes client: %w", err)
	}
	namespace, name, _ := cutName(f.lease)
	lock := &lease{log: l.log, leading: l.leading, namespace: namespace, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: f.replica + "_" + rand.Text()}, // another one after each start
	}}
	quiet := klog.NewContext(ctx, logr.Discard()) // we say ourselves what there is to say
	for ctx.Err() == nil {
		if err := l.holdLease(quiet, lock); err != nil {
			return err
		}
	}
	return nil
}

// holdLease waits for the lease and derives while this replica holds it.
func (l leader) holdLease(ctx context.Context, lock *lease) error {
	ctx, giveBack := context.WithCancel(ctx)
	defer giveBack()
	turns, over := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseLasts, RenewDeadline: leaseRenew, RetryPeriod: leaseRetry, ReleaseOnCancel: true, Name: "evictrail",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(turn context.Context) { turns <- turn },
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity != lock.Identity() {
					l.log.Info("another replica derives", "lease", lock.Describe(), "leader", identity)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("elect a leader: %w", err)
	}
	go func() {
		defer close(over)
		elector.Run(ctx)
	}()
	select {
	case turn := <-turns:
		l.log.Info("lease taken, deriving", "lease", lock.Describe())
		_, err := l.leadUntilDeposed(turn)
		l.endTerm()
		if err != nil {
			l.log.Warn("lease released", "lease", lock.Describe(), "err", err)
		}
		giveBack()
	case <-over:
	}
	<-over
	return nil
}

// lease says once what is wrong with the lease.
type lease struct {
	resourcelock.Interface
	log       *slog.Logger
	leading   *leadership
	namespace string
	problem   string
	renewed   metav1.Time // when the holder renewed it last, by the holder's clock
}

// Get reads the lease.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if apierrors.IsNotFound(err) {
		return record, raw, err // it is created
	}
	if err == nil && record.HolderIdentity != "" && !record.RenewTime.Equal(&l.renewed) {
		l.renewed = record.RenewTime
		l.leading.recordRenewal(nowUTC())
	}
	return record, raw, l.logOutcome(ctx, err)
}

// Create creates the lease.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.logOutcome(ctx, l.Interface.Create(ctx, record))
}

// Update takes, renews or releases the lease.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.logOutcome(ctx, l.Interface.Update(ctx, record))
}

// logOutcome logs how it went when that is other than before. It returns the error.
func (l *lease) logOutcome(ctx context.Context, err error) error {
	problem, brief := "", ""
	switch {
	case ctx.Err() != nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // another replica was faster
		return err
	case apierrors.IsForbidden(err):
		brief = fmt.Sprintf("no right to the lease %s: grant create on leases, and get and update on this one, in namespace %s", l.Describe(), l.namespace)
		problem = fmt.Sprintf("%s (%v)", brief, err)
	case err != nil:
		problem, brief = err.Error(), fmt.Sprintf("the lease %s cannot be reached", l.Describe())
	}
	switch {
	case problem == l.problem:
	case problem != "":
		l.log.Warn("lease not reached, trying again", "err", problem)
	default:
		l.log.Info("lease reached again")
	}
	l.problem = problem
	l.leading.setLeaseProblem(brief)
	return err
}
