package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/delivery"
	"github.com/evictrail/evictrail/store/embedded"
	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/read"
	"github.com/evictrail/evictrail/trail"
)

// findClusterName finds the name under which the cluster is recorded.
func (d *doctor) findClusterName(ctx context.Context, config *rest.Config) {
	if d.f.cluster != "" {
		d.name = d.f.cluster
		d.addOKf("identity", "recorded as %s", d.name)
		return
	}
	name, err := askWithTimeout(ctx, func(ctx context.Context) (string, error) { return collector.ClusterUID(ctx, config) })
	if err != nil {
		d.addCheck(healthFail, "identity", err.Error(), "grant get on the namespace kube-system, or name the cluster with --cluster")
		return
	}
	d.name = name
	d.addOKf("identity", "recorded as %s, the UID of the namespace kube-system", name)
}

// checkDatabase checks whether it answers, its schema, our rights in it, its room, and what was recorded in it.
func (d *doctor) checkDatabase(ctx context.Context) {
	s := d.openDatabase(ctx)
	if s == nil {
		return
	}
	defer s.Close()
	c, err := askWithTimeout(ctx, s.Condition)
	if err != nil {
		d.addCheck(healthFail, "database", err.Error(), "see the log of Postgres")
		return
	}
	facts := fmt.Sprintf("about %d facts", c.Facts)
	if c.Facts < 0 {
		facts = "facts not counted yet"
	}
	d.addOKf("database", "answers as %s: Postgres %s, %.1f MiB, %s", c.User, c.Server, float64(c.Bytes)/(1<<20), facts)
	d.checkPooler(ctx, s)
	switch {
	case c.Standby:
		d.addCheck(healthFail, "database", "a standby: it cannot be written", "point --database-url to the primary")
	case c.ReadOnly:
		d.addCheck(healthFail, "database", "read-only for "+c.User+": default_transaction_read_only is on", "ALTER DATABASE or ALTER ROLE ... RESET default_transaction_read_only, as an administrator")
	}
	if len(c.Lacking) > 0 {
		const most = 4
		lacking := strings.Join(c.Lacking[:min(most, len(c.Lacking))], ", ")
		if more := len(c.Lacking) - most; more > 0 {
			lacking += fmt.Sprintf(" and %d more", more)
		}
		d.addCheck(healthFail, "database rights", "lacking: "+lacking, "run the SQL of `evictrail schema roles` as the owner, and grant evictrail_writer to "+c.User)
		return
	}
	if !d.checkSchema(ctx, s, c) {
		return
	}
	d.addOKf("database rights", "all that a writer needs")
	d.checkUpkeep(ctx, s)
	d.checkRequestSources(ctx, s)
}

// checkPooler checks whether our statements last where a connection pooler stands before the database.
func (d *doctor) checkPooler(ctx context.Context, s *store.Store) {
	pooled, err := askWithTimeout(ctx, s.DB.CheckPooler)
	switch {
	case errors.Is(err, pg.ErrPooler):
		d.addCheck(healthFail, "connection pooler", "in transaction mode, which loses the statements that evictrail prepares", "add "+pg.PoolerMode+" to --database-url (docs/install.md)")
	case err != nil:
		d.addCheck(healthWarn, "connection pooler", err.Error(), "")
	case pooled:
		d.addOKf("connection pooler", "one stands before the database, and our statements last")
	}
}

// openDatabase opens the database that the flags name, or that of an evictrail that runs on the data directory; nil where there is none to
// look at.
func (d *doctor) openDatabase(ctx context.Context) *store.Store {
	flags := d.f.db
	if flags.url == "" {
		version, url, err := embedded.Find(ctx, flags.dataDir, "evictrail")
		switch {
		case err != nil:
			d.addCheck(healthFail, "database", "no --database-url, and "+err.Error(), "install a PostgreSQL server (15 or newer), or give --database-url")
			return nil
		case url == "":
			d.addCheck(healthWarn, "database", fmt.Sprintf("one of our own, Postgres %s, which `run` will start in %s: not checked", version, flags.dataDir), "for a cluster that matters give --database-url")
			return nil
		}
		flags.url = url
	}
	s, err := askWithTimeout(ctx, flags.openStore)
	if err != nil {
		d.addCheck(healthFail, "database", err.Error(), "check --database-url, --database-password-file and the network; what needs the database is not checked")
		return nil
	}
	return s
}

// checkSchema judges the database's schema and reports whether the rest can be looked at.
func (d *doctor) checkSchema(ctx context.Context, s *store.Store, c store.Condition) bool {
	status, err := askWithTimeout(ctx, s.Schema)
	switch {
	case err != nil:
		d.addCheck(healthFail, "schema", err.Error(), "")
		return false
	case status.Newer():
		d.addCheck(healthWarn, "schema", fmt.Sprintf("version %d, this evictrail is of %d, which does", status.Version, status.Expected), "finish the upgrade, or the way back: old and new get along for one version")
		return true
	case status.Version == status.Expected:
		d.addOKf("schema", "version %d, as needed", status.Version)
		return true
	case status.Version < status.Expected && !status.TooOld() && c.MayBuild:
		d.addCheck(healthWarn, "schema", fmt.Sprintf("version %d, this evictrail needs %d", status.Version, status.Expected), "`run` brings it up to date when it starts; so does `evictrail schema up`")
	default:
		d.addCheck(healthFail, "schema", status.Check().Error(), "as the owner of the database")
	}
	return false
}

// leastRunway is as in the alert EvictrailPartitionRunway.
const leastRunway = 7 * 24 * time.Hour

// checkUpkeep judges what the database is kept with: partitions ahead, strays, its clock.
func (d *doctor) checkUpkeep(ctx context.Context, s *store.Store) {
	u, err := askWithTimeout(ctx, func(ctx context.Context) (trail.Upkeep, error) { return s.Upkeep(ctx, "") })
	if err != nil {
		d.addCheck(healthFail, "database upkeep", err.Error(), "")
		return
	}
	switch ahead := u.PartitionsUntil.Sub(nowUTC()); {
	case u.PartitionsUntil.Unix() == 0:
		d.addCheck(healthWarn, "partitions", "none yet", "`run` makes them")
	case ahead < leastRunway:
		d.addCheck(healthWarn, "partitions", "made until "+u.PartitionsUntil.Format(time.DateOnly), "`run` makes those of this and the next month: is one running? docs/runbooks/EvictrailPartitionRunway.md")
	default:
		d.addOKf("partitions", "made until %s", u.PartitionsUntil.Format(time.DateOnly))
	}
	if u.StrayRows > 0 {
		d.addCheck(healthWarn, "default partition", fmt.Sprintf("has %d facts", u.StrayRows), "docs/runbooks/EvictrailPartitionRunway.md says how to bring them into their months")
	} else {
		d.addOKf("default partition", "empty")
	}
	d.checkDeriveFailures(ctx, s)
	d.checkClock("clock of the database", func() (time.Duration, bool) { return u.ClockSkew, true })
}

// checkDeriveFailures says which subjects could not be derived.
func (d *doctor) checkDeriveFailures(ctx context.Context, s *store.Store) {
	const most = 100
	failed, err := askWithTimeout(ctx, func(ctx context.Context) ([]store.DeriveFailure, error) { return s.DeriveFailures(ctx, most) })
	switch {
	case err != nil:
		d.addCheck(healthFail, "derivation", err.Error(), "")
	case len(failed) > 0:
		f := failed[0]
		reason, _, _ := strings.Cut(f.Reason, "\n")
		finding := fmt.Sprintf("%d subjects cannot be derived, first %s of cluster %s since %s: %s", len(failed), f.Subject, f.Cluster, f.Since.UTC().Format(time.RFC3339), reason)
		d.addCheck(healthWarn, "derivation", finding, "upgrade evictrail: it is tried again then, and every hour; docs/runbooks/EvictrailDerivationFailing.md")
	default:
		d.addOKf("derivation", "nothing fails")
	}
}

// checkRequestSources reports what was recorded of this cluster, and when the sources of requests last reported one.
func (d *doctor) checkRequestSources(ctx context.Context, s *store.Store) {
	if d.name == "" {
		return
	}
	if !d.checkRecorder(ctx, s) {
		return
	}
	heard, err := askWithTimeout(ctx, func(ctx context.Context) (read.Heard, error) { return s.Heard(ctx, d.name) })
	if err != nil {
		d.addCheck(healthWarn, "audit events", err.Error(), "")
		return
	}
	d.checkLastRequest("audit events", heard.Audit, d.f.intake.expectsAudit(), "see docs/audit.md: is the audit policy the one of `evictrail generate manifests audit-policy`, and does it reach us?")
	d.checkLastRequest("eviction observer", heard.Observer, d.f.intake.observer.on, "see docs/audit.md")
	d.checkReceivers(ctx, s)
}

// receiverGrace is how far behind a receiver may be before that is worth a word.
const receiverGrace = 5 * time.Minute

// checkReceivers checks whether those who are to be notified take what they are sent.
func (d *doctor) checkReceivers(ctx context.Context, s *store.Store) {
	names := d.f.notify.listNames()
	if len(names) == 0 {
		return
	}
	all, err := askWithTimeout(ctx, func(ctx context.Context) ([]delivery.Standing, error) { return delivery.Standings(ctx, s.DB, d.name) })
	if err != nil {
		d.addCheck(healthWarn, "receivers", err.Error(), "")
		return
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(s delivery.Standing) bool { return s.Receiver == name })
		switch {
		case i < 0:
			d.addCheck(healthWarn, "receiver "+name, "nothing was sent yet", "the replica that derives begins with it once `run` has the same flags")
		case all[i].Now.Sub(all[i].SentTo) > receiverGrace:
			d.addCheck(healthWarn, "receiver "+name, "does not have what changed since "+all[i].SentTo.UTC().Format(time.RFC3339),
				"see the log of the replica that derives, and evictrail_notices_total (docs/notify.md)")
		default:
			d.addOKf("receiver "+name, "has all that changed until %s", all[i].SentTo.UTC().Format(time.RFC3339))
		}
	}
}

// checkRecorder checks the state of the recorder of this cluster, and reports whether anything of it was ever recorded.
func (d *doctor) checkRecorder(ctx context.Context, s *store.Store) bool {
	all, err := askWithTimeout(ctx, func(ctx context.Context) ([]trail.RecorderStatus, error) {
		return s.Recorders(ctx, d.name, time.Time{}, time.Time{})
	})
	if err != nil {
		d.addCheck(healthFail, "record", err.Error(), "")
		return false
	}
	if len(all) == 0 || all[0].AliveAt.IsZero() {
		d.addCheck(healthWarn, "record", "nothing is recorded of this cluster yet", "start `evictrail run`")
		return false
	}
	r := all[0]
	finding := fmt.Sprintf("%s since %s: %s", r.State.Label(), r.Since.Format(time.RFC3339), strings.Join(r.Why, " "))
	switch {
	case r.Healthy():
		d.addOKf("record", "up to %s", r.AliveAt.Format(time.RFC3339))
	case r.State == trail.RecorderDegraded || r.Replayed:
		d.addCheck(healthWarn, "record", finding, r.Advice())
	default:
		d.addCheck(healthFail, "record", finding, r.Advice())
	}
	return true
}

// checkLastRequest checks when a source last reported a request. Where nobody evicts, none has anything to report.
func (d *doctor) checkLastRequest(subject string, last time.Time, expected bool, advice string) {
	switch {
	case !last.IsZero():
		d.addOKf(subject, "the last eviction request that was recorded is of %s", last.Format(time.RFC3339))
	case expected:
		d.addCheck(healthWarn, subject, "expected, but none reported an eviction request yet", "where nobody has evicted a VM that is as it should be; else "+advice)
	case subject == "audit events":
		d.addCheck(healthWarn, subject, "none expected and none seen", "only audit events say who asks for evictions: "+strings.TrimPrefix(advice, "see docs/audit.md: "))
	}
}
