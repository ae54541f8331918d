package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// derivation is one transaction's work on some subjects: their facts as they are, and what is derived of them.
type derivation struct {
	tx         pgx.Tx
	cluster    string
	now        time.Time                      // for which is derived
	thresholds trail.Thresholds               // of loops
	settled    *time.Time                     // what was over before is settled; nil: nothing is
	facts      map[trail.Subject][]trail.Fact // of the subjects that are held
	from       since                          // of namespaces that are held, from when on; others, and those that are not in it, are held whole
	news       trail.News                     // what came of it so far
}

const clusterQuery = `
SELECT alive_at, thresholds
FROM evictrail.clusters
WHERE cluster = @cluster`

// newDerivation begins work on a cluster as it stands at a time, or when it was last seen if that is later. Its error is ErrDeposed
// where the term has ended; term 0 has none.
func newDerivation(ctx context.Context, tx pgx.Tx, cluster string, now time.Time, term int64) (*derivation, error) {
	d := &derivation{tx: tx, cluster: cluster, now: now, thresholds: trail.DefaultThresholds(), facts: map[trail.Subject][]trail.Fact{}, from: since{}}
	var batch pgx.Batch
	batch.Queue(dropNoFactsQuery)
	readSettled(&batch, &d.settled)
	fence(&batch, cluster, term)
	batch.Queue(clusterQuery, pgx.StrictNamedArgs{"cluster": cluster}).Query(d.standing)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, explain("read how far the cluster was seen", err)
	}
	return d, nil
}

// standing reads how far the cluster was seen, and its thresholds; nothing where it is new.
func (d *derivation) standing(rows pgx.Rows) error {
	var alive time.Time
	var thresholds *trail.Thresholds
	_, err := pgx.ForEachRow(rows, []any{&alive, &thresholds}, func() error { return nil })
	if alive.After(d.now) {
		d.now = alive.UTC()
	}
	if thresholds != nil {
		d.thresholds = *thresholds
	}
	return err
}

const holdSubjectsQuery = `
INSERT INTO evictrail.subjects (cluster, subject, derived_at)
SELECT @cluster, s, now()
FROM unnest(@subjects::text[]) AS s
ON CONFLICT (cluster, subject) DO UPDATE SET derived_at = excluded.derived_at`

// hold takes the rows of subjects, waiting for other writers, and reads their facts; of others, which are held later, it takes the rows alone.
// Rows are taken sorted, so that no two writers wait for each other.
func (d *derivation) hold(ctx context.Context, subjects []trail.Subject, others ...trail.Subject) error {
	var fresh []trail.Subject
	for _, s := range subjects {
		if _, held := d.facts[s]; !held {
			d.facts[s] = nil
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 && len(others) == 0 {
		return nil
	}
	facts, err := d.lockAndRead(ctx, fresh, others)
	d.take(facts)
	return explain("take subjects", err)
}

// lockAndRead locks subjects and others and then reads the facts of the subjects, in one round trip: each statement sees what was committed before it
// began.
func (d *derivation) lockAndRead(ctx context.Context, subjects, others []trail.Subject) ([]trail.Fact, error) {
	from := make([]time.Time, len(subjects))
	all := map[trail.Subject]bool{}
	for i, s := range subjects {
		from[i], all[s] = d.from[s], true
	}
	for _, s := range others {
		all[s] = true
	}
	var batch pgx.Batch
	batch.Queue(holdSubjectsQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(sortedSubjects(all))})
	var facts []trail.Fact
	batch.Queue(factsSinceQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(subjects), "from": from}).Query(func(rows pgx.Rows) (err error) {
		facts, err = collectFacts(rows, d.cluster)
		return err
	})
	return facts, d.tx.SendBatch(ctx, &batch).Close()
}

// missing gives the facts that add something to those stored, each once, and takes them in.
func (d *derivation) missing(facts []trail.Fact) []trail.Fact {
	stored := func(yield func(trail.Fact) bool) {
		for _, of := range d.facts {
			for _, f := range of {
				if !yield(f) {
					return
				}
			}
		}
	}
	out := trail.Fresh(stored, facts)
	d.take(out)
	return out
}

// take takes in facts of held subjects.
func (d *derivation) take(facts []trail.Fact) {
	count := map[trail.Subject]int{}
	for i := range facts {
		count[facts[i].Subject]++
	}
	for i := range facts {
		s := facts[i].Subject
		if n := count[s]; n > 0 {
			d.facts[s], count[s] = slices.Grow(d.facts[s], n), 0
		}
		d.facts[s] = append(d.facts[s], facts[i])
	}
}

// derive derives again what new facts concern: their own subjects, and what a fact about a node, about the rules in force or
// a request may put in another light.
func (d *derivation) derive(ctx context.Context, added []trail.Fact) error {
	if len(added) == 0 {
		return nil
	}
	all := since{}
	for _, f := range added {
		at := time.Time{} // what a cordon or a taint means may have begun at any time
		if f.Kind == trail.KindBlocksObserved {
			at = f.OccurredAt
		}
		all.add(f.Subject, at)
	}
	around := d.surroundings(added)
	for _, find := range []func() ([]trail.Subject, error){
		func() ([]trail.Subject, error) { return d.concerned(ctx, around) },
		func() ([]trail.Subject, error) { return d.concernedByRequests(ctx, added) },
		func() ([]trail.Subject, error) { return d.concernedByRules(ctx, added) },
	} {
		concerned, err := find()
		if err != nil {
			return err
		}
		for _, s := range concerned {
			all.add(s, around.since)
		}
	}
	return d.replace(ctx, all)
}

// replace derives subjects and writes their rows where they changed: VMs and what stands for itself, then the VMs whose
// waiting that explains, then the nodes that their rows touch.
func (d *derivation) replace(ctx context.Context, all since) error {
	around, waiting := since{}, map[trail.Subject]bool{}
	var first []trail.Subject
	for _, s := range all.subjects() {
		if isAround(s) {
			around[s] = all[s]
		} else {
			first = append(first, s)
		}
	}
	err := d.byPortion(ctx, first, func(some []trail.Subject) error {
		touched, err := d.replaceVMs(ctx, some, false)
		if err != nil {
			return err
		}
		around.join(touched.around)
		more, err := d.waiting(ctx, touched.slots, some)
		for _, s := range more {
			waiting[s] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	err = d.byPortion(ctx, sortedSubjects(waiting), func(some []trail.Subject) error {
		touched, err := d.replaceVMs(ctx, some, false)
		around.join(touched.around)
		return err
	})
	if err != nil {
		return err
	}
	return d.replaceAround(ctx, around)
}

// byPortion holds subjects and does something with them: with those that are held already and a portion of the others, then with one portion after the
// other, each of which is given up when that is done.
func (d *derivation) byPortion(ctx context.Context, subjects []trail.Subject, do func([]trail.Subject) error) error {
	var held, others []trail.Subject
	for _, s := range subjects {
		if _, is := d.facts[s]; is {
			held = append(held, s)
		} else {
			others = append(others, s)
		}
	}
	split, err := portions(ctx, d.tx, d.cluster, others)
	if err != nil {
		return err
	}
	for i, some := range split {
		if i == 0 {
			some = append(held, some...)
		}
		if err := d.hold(ctx, some); err != nil {
			return err
		}
		if err := do(some); err != nil {
			return err
		}
		if i > 0 {
			for _, s := range some {
				delete(d.facts, s)
			}
		}
	}
	return nil
}

// isAround tells what is derived of the rows of VMs.
func isAround(s trail.Subject) bool {
	return s.Kind == trail.SubjectNode || s.Kind == trail.SubjectCluster
}

// replaceVMs derives VMs and what stands for itself. The requests about the pods of a VM are told with the VM: rows that
// those pods had while nobody knew their VM go. Where everything is derived anew, it touches nodes whose rows did not change, too.
func (d *derivation) replaceVMs(ctx context.Context, subjects []trail.Subject, anew bool) (touched, error) {
	if len(subjects) == 0 {
		return touched{}, nil
	}
	env, pods, err := d.env(ctx, subjects)
	if err != nil {
		return touched{}, err
	}
	derived := make([]trail.Derived, len(subjects))
	for i, s := range subjects {
		derived[i] = trail.Derive(s, d.facts[s], env, d.now)
	}
	if err := d.explainQueue(ctx, subjects, derived, env); err != nil {
		return touched{}, err
	}
	w := d.tables()
	for i, s := range subjects {
		from := d.from[s]
		if !from.IsZero() {
			from = from.Add(namespaceSlack / 2) // lines may be told a little later than their facts
		}
		w.addSince(s, derived[i], from)
	}
	changed, err := w.write(ctx, d.tx, append(names(subjects), names(pods)...), &d.news)
	if anew {
		for _, d := range derived {
			changed.all(d)
		}
	}
	return changed, err
}

// replaceAround derives nodes, and the cluster as a whole, of the rows of the VMs that touch them, each from when on things changed there. Where
// there was a drain since then and is none any more, what is left of the one before is derived, too.
func (d *derivation) replaceAround(ctx context.Context, changed since) error {
	if len(changed) == 0 {
		return nil
	}
	subjects := changed.subjects()
	if err := d.hold(ctx, subjects); err != nil {
		return err
	}
	from, drained, err := d.reach(ctx, changed)
	if err != nil {
		return err
	}
	env, err := d.envAround(ctx, from)
	if err != nil {
		return err
	}
	w := d.tables()
	again := since{}
	var done []trail.Subject
	for _, s := range subjects {
		derived := trail.Derive(s, d.facts[s], env, d.now)
		if drained[s] && len(derived.Drains) == 0 && !from[s].IsZero() {
			again[s] = time.Time{}
			continue
		}
		w.addSince(s, derived, from[s])
		done = append(done, s)
	}
	if _, err = w.write(ctx, d.tx, names(done), &d.news); err != nil {
		return err
	}
	return d.replaceAround(ctx, again)
}
