package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/trail"
)

// factRow is one row of evictrail.events.
type factRow struct {
	Subject       string
	OccurredAt    time.Time
	ID            pgtype.UUID
	Kind          string
	Reason        string
	Clock         string
	ObservedAt    time.Time
	SeenLate      bool
	Namespace     *string
	VMI           *string
	VMIUID        *string
	Node          *string
	Migration     *string
	MigrationUID  *string
	ObjectKind    string
	ObjectUID     string
	ObjectVersion string
	What          string
	Value         string
	Evidence      string
	Detail        []byte
}

// clean replaces what Postgres' text cannot hold.
func clean(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }

// null gives NULL for what is not known.
func null(s string) *string {
	if s == "" {
		return nil
	}
	s = clean(s)
	return &s
}

func known(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// orZero gives a time that may be NULL, in UTC.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func rowFromFact(f trail.Fact) (factRow, error) {
	r := factRow{
		Subject: clean(f.Subject.String()), OccurredAt: f.OccurredAt, ID: pgtype.UUID{Bytes: f.ID, Valid: true},
		Kind: string(f.Kind), Reason: string(f.Reason), Clock: string(f.Clock), ObservedAt: f.ObservedAt, SeenLate: f.Late,
		Namespace: null(f.Namespace), VMI: null(f.VMI), VMIUID: null(f.VMIUID), Node: null(f.Node),
		Migration: null(f.Migration), MigrationUID: null(f.MigrationUID),
		ObjectKind: string(f.Object.Kind), ObjectUID: clean(f.Object.UID), ObjectVersion: clean(f.Object.ResourceVersion),
		What: clean(f.What), Value: clean(f.Value), Evidence: clean(f.Evidence),
	}
	if f.Detail != nil {
		text, err := jsonText(f.Detail)
		if err != nil {
			return r, fmt.Errorf("detail of %s %s: %w", f.Kind, f.ID, err)
		}
		r.Detail = []byte(text)
	}
	return r, nil
}

// jsonText writes a value as JSON that jsonb can hold: it knows no NUL.
func jsonText(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode: %w: %w", trail.ErrRefused, err)
	}
	return strings.ReplaceAll(string(raw), `\u0000`, `\ufffd`), nil
}

// Append stores the facts of one cluster and derives their subjects again, all or nothing. It tells what that brought: the facts that were new, in the
// order given, and how derived rows changed; facts that are stored already add nothing, whatever else they say. With an error there may be news all the
// same: of what was committed before it. See the package comment for its errors.
func (s *Store) Append(ctx context.Context, cluster string, facts []trail.Fact) (trail.News, error) {
	return s.append(ctx, cluster, facts, 0, nil)
}

// append is Append. In a term, which derives what was left four times a second, it leaves the nodes: a batch touches most of them, and of each all is read
// that went on there lately.
//
// Where deriving fails, each subject is derived by itself, and which fails is left out. Where that fails, too, the facts are stored all the same, and what they
// mean is derived later: by who derives in the term, else here.
func (s *Store) append(ctx context.Context, cluster string, facts []trail.Fact, term int64, confirm confirmation) (trail.News, error) {
	var news trail.News
	for _, careful := range []bool{false, true} {
		err := guard(ctx, timeToDerive(ctx), func(ctx context.Context) (err error) {
			news, err = s.appendDerived(ctx, cluster, facts, term, confirm, careful)
			return err
		})
		if err == nil || ctx.Err() != nil || !mayBeOfRecord(err) {
			return news, err
		}
	}
	kept, err := s.keep(ctx, cluster, facts, confirm)
	if err != nil || term != 0 {
		return kept, err
	}
	_, derived, err := s.deriveStale(ctx, cluster, 0, nil, nil)
	kept.Add(derived)
	return kept, err
}

// timeToDerive is how long an append may take that derives, so that half of the time is left for what comes after where it fails.
func timeToDerive(ctx context.Context) time.Duration {
	if until, bound := ctx.Deadline(); bound {
		return time.Until(until) / 2
	}
	return time.Hour
}

// appendDerived is append where deriving succeeds.
func (s *Store) appendDerived(ctx context.Context, cluster string, facts []trail.Fact, term int64, confirm confirmation, careful bool) (trail.News, error) {
	return s.take(ctx, cluster, facts, term, confirm, func(d *derivation, facts []trail.Fact) ([]trail.Fact, error) {
		d.careful = careful
		vms, err := d.concernedByRequests(ctx, facts)
		if err != nil {
			return nil, err
		}
		added, err := d.insert(ctx, facts, vms.subjects())
		if err != nil {
			return nil, err
		}
		around, err := d.deriveFirst(ctx, added)
		if err != nil {
			return nil, err
		}
		if term != 0 { // CatchUp does that
			return added, d.leaveTouched(ctx, around)
		}
		return added, d.replaceAround(ctx, around)
	})
}

// keep stores facts like Append, and leaves it to the leader to derive their subjects.
func (s *Store) keep(ctx context.Context, cluster string, facts []trail.Fact, confirm confirmation) (trail.News, error) {
	return s.take(ctx, cluster, facts, 0, confirm, func(d *derivation, facts []trail.Fact) ([]trail.Fact, error) {
		added, err := d.insert(ctx, facts, nil)
		if err != nil {
			return nil, err
		}
		return added, markStale(ctx, d.tx, cluster, added)
	})
}

// lastEvent returns when the newest fact was seen that is about the cluster, not about how it is watched; zero where there is none.
func lastEvent(facts []trail.Fact) time.Time {
	var last time.Time
	for i := range facts {
		if f := &facts[i]; f.Subject.Kind != trail.SubjectSource && f.ObservedAt.After(last) {
			last = f.ObservedAt
		}
	}
	return last
}

// confirmation is written in the transaction that stores facts which were seen up to a time; nil: nothing is.
type confirmation func(ctx context.Context, tx pgx.Tx, at time.Time) error

// take stores facts and notes that all that was seen until then is stored.
func (s *Store) take(ctx context.Context, cluster string, facts []trail.Fact, term int64, confirm confirmation, store func(*derivation, []trail.Fact) ([]trail.Fact, error)) (news trail.News, err error) {
	if len(facts) == 0 {
		return news, nil
	}
	facts, err = s.unstored(ctx, cluster, facts)
	if err != nil || len(facts) == 0 {
		return news, err
	}
	if err := s.ensureFor(ctx, facts, monthsBack); err != nil {
		return news, err
	}
	var brought trail.News
	var failed []DeriveFailure
	err = s.inTx(ctx, "append facts", func(tx pgx.Tx) error {
		if confirm != nil {
			if err := confirm(ctx, tx, lastSeen(facts)); err != nil {
				return err
			}
		}
		d, err := newDerivation(ctx, tx, cluster, lastSeen(facts), term)
		if err != nil {
			return err
		}
		added, err := store(d, facts)
		if err != nil {
			return err
		}
		brought, failed = d.news, d.firstFailed
		brought.Facts = added
		if d.settled != nil && slices.ContainsFunc(added, func(f trail.Fact) bool { return f.OccurredAt.Before(*d.settled) }) {
			brought.Settled = d.settled.UTC()
		}
		_, err = tx.Exec(ctx, appendedQuery, pgx.StrictNamedArgs{"cluster": cluster, "at": lastSeen(facts), "event": nullTime(lastEvent(added))})
		return err
	})
	if err != nil {
		return news, err
	}
	s.reportFailed(failed...)
	return brought, s.countGrown(ctx, len(brought.Facts))
}

// namespaceSlack is how long before new requests in a namespace its facts are read: lines may be told a little later than their facts.
const namespaceSlack = 10 * time.Minute

// insert takes the rows of the subjects of facts and of more VMs that they concern, and inserts the facts that are new, in the order given. It gives those: of
// what is not held, as it does not matter, the database knows what is stored.
func (d *derivation) insert(ctx context.Context, facts []trail.Fact, more []trail.Subject) ([]trail.Fact, error) {
	changed := changedBy(facts)
	if err := d.hold(ctx, nil, slices.Concat(onlyVMs(changed.subjects()), more)...); err != nil {
		return nil, err
	}
	of, place := map[trail.Subject][]trail.Fact{}, make(map[trail.FactID]int, len(facts))
	for i := range facts {
		f := &facts[i]
		of[f.Subject], place[f.ID] = append(of[f.Subject], *f), i
		if becomes(f) {
			d.became = append(d.became, becameRow{f.Subject, f.OccurredAt})
		}
	}
	var fresh []trail.Fact
	err := d.byPortion(ctx, changed, func(some []trail.Subject) error {
		for _, s := range some {
			fresh = append(fresh, d.missing(s, of[s])...)
			delete(of, s)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(fresh, func(a, b trail.Fact) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	added, err := insertFacts(ctx, d.tx, d.cluster, fresh)
	if err != nil {
		return nil, err
	}
	return added, keepAspects(ctx, d.tx, d.cluster, added)
}

// lastSeen gives the time of the last sight among facts.
func lastSeen(facts []trail.Fact) time.Time {
	var last time.Time
	for _, f := range facts {
		if f.ObservedAt.After(last) {
			last = f.ObservedAt
		}
	}
	return last
}

// sortedSubjects gives subjects in the order in which all writers take them.
func sortedSubjects(set map[trail.Subject]bool) []trail.Subject {
	out := make([]trail.Subject, 0, len(set))
	for subject := range set {
		out = append(out, subject)
	}
	slices.SortFunc(out, func(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// onlyVMs gives the VMs among subjects, each once, sorted. Every writer takes them before the rest, as what surrounds a VM
// is taken after it: two that work on the same VM then wait for each other, and do not deadlock.
func onlyVMs(subjects []trail.Subject) []trail.Subject {
	vms := map[trail.Subject]bool{}
	for _, s := range subjects {
		if s.Kind == trail.SubjectVMI {
			vms[s] = true
		}
	}
	return sortedSubjects(vms)
}

func names(subjects []trail.Subject) []string {
	out := make([]string, len(subjects))
	for i, subject := range subjects {
		out[i] = clean(subject.String())
	}
	return out
}

// insertFactsIfNew inserts the facts of factArgs that have no row yet.
const insertFactsIfNew = `
INSERT INTO evictrail.events (
    cluster, subject, occurred_at, id, kind, reason, clock, observed_at, seen_late, namespace, vmi, vmi_uid, node,
    migration, migration_uid, object_kind, object_uid, object_version, what, value, evidence, detail
)
SELECT @cluster, f.*
FROM unnest(
    @subject::text[], @occurred_at::timestamptz[], @id::uuid[], @kind::text[], @reason::text[], @clock::text[],
    @observed_at::timestamptz[], @seen_late::boolean[], @namespace::text[], @vmi::text[], @vmi_uid::text[],
    @node::text[], @migration::text[], @migration_uid::text[], @object_kind::text[], @object_uid::text[],
    @object_version::text[], @what::text[], @value::text[], @evidence::text[], @detail::jsonb[]
) AS f
ON CONFLICT DO NOTHING`

const insertFactsQuery = insertFactsIfNew + `
RETURNING id`

// factPlace is where a fact is stored.
type factPlace struct {
	Subject    string    `db:"subject"`
	OccurredAt time.Time `db:"occurred_at"`
}

// insertTogether is how many facts are written in one statement: on their way they take six times their memory.
const insertTogether = 1000

// insertFacts inserts facts and gives those that had no row yet, in their order.
func insertFacts(ctx context.Context, tx pgx.Tx, cluster string, facts []trail.Fact) ([]trail.Fact, error) {
	var added []trail.Fact
	for some := range slices.Chunk(facts, insertTogether) {
		fresh, err := insertSome(ctx, tx, cluster, some)
		if err != nil {
			return nil, err
		}
		added = slices.Grow(added, len(fresh))
		for i := range some {
			if fresh[some[i].ID] {
				added = append(added, some[i])
			}
		}
	}
	return added, keepLate(ctx, tx, added)
}

// insertSome inserts facts in one statement, and tells which had no row yet.
func insertSome(ctx context.Context, tx pgx.Tx, cluster string, facts []trail.Fact) (map[trail.FactID]bool, error) {
	rows, err := rowsFromFacts(facts)
	if err != nil {
		return nil, err
	}
	inserted, err := tx.Query(ctx, insertFactsQuery, factArgs(cluster, rows))
	if err != nil {
		return nil, explain("insert facts", err)
	}
	fresh, err := collectIDs(inserted)
	return fresh, explain("insert facts", err)
}

func rowsFromFacts(facts []trail.Fact) ([]factRow, error) {
	rows := make([]factRow, len(facts))
	for i, f := range facts {
		var err error
		if rows[i], err = rowFromFact(f); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// factArgs returns the arguments of insertFactsIfNew.
func factArgs(cluster string, rows []factRow) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{
		"cluster": cluster,
		"subject": column(rows, func(r factRow) string { return r.Subject }), "occurred_at": column(rows, func(r factRow) time.Time { return r.OccurredAt }),
		"id": column(rows, func(r factRow) pgtype.UUID { return r.ID }), "kind": column(rows, func(r factRow) string { return r.Kind }),
		"reason": column(rows, func(r factRow) string { return r.Reason }), "clock": column(rows, func(r factRow) string { return r.Clock }),
		"observed_at": column(rows, func(r factRow) time.Time { return r.ObservedAt }), "seen_late": column(rows, func(r factRow) bool { return r.SeenLate }),
		"namespace": column(rows, func(r factRow) *string { return r.Namespace }), "vmi": column(rows, func(r factRow) *string { return r.VMI }),
		"vmi_uid": column(rows, func(r factRow) *string { return r.VMIUID }), "node": column(rows, func(r factRow) *string { return r.Node }),
		"migration": column(rows, func(r factRow) *string { return r.Migration }), "migration_uid": column(rows, func(r factRow) *string { return r.MigrationUID }),
		"object_kind": column(rows, func(r factRow) string { return r.ObjectKind }), "object_uid": column(rows, func(r factRow) string { return r.ObjectUID }),
		"object_version": column(rows, func(r factRow) string { return r.ObjectVersion }), "what": column(rows, func(r factRow) string { return r.What }),
		"value": column(rows, func(r factRow) string { return r.Value }), "evidence": column(rows, func(r factRow) string { return r.Evidence }),
		"detail": column(rows, func(r factRow) []byte { return r.Detail }),
	}
}

// column takes one column out of rows, as unnest wants it.
func column[T any](rows []factRow, of func(factRow) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = of(r)
	}
	return out
}
