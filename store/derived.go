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
	settled    *time.Time                     // what had ended before is settled; nil: nothing is
	reach      time.Duration                  // how far what happens may depend on what had ended before
	locked     map[trail.Subject]bool         // their rows are taken
	facts      map[trail.Subject][]trail.Fact // of the subjects that are held
	held       since                          // what is held of them is enough for what changed since then
	from       since                          // those that are derived from then on; the others are held whole
	quiet      since                          // those of which nothing was open then: what had ended before stays as it is, and is not sent
	became     []becameRow                    // when new facts say that nodes became something
	news       trail.News                     // what came of it so far

	careful     bool            // each subject is derived by itself, and left out where that fails
	failed      map[string]bool // the subjects that could not be derived; true: they are left out
	firstFailed []DeriveFailure // of this transaction
}

const (
	clusterQuery = `
SELECT alive_at, thresholds
FROM evictrail.clusters
WHERE cluster = @cluster`
	rulesQuery = `
SELECT ` + factColumns + `
FROM evictrail.events
WHERE cluster = @cluster
  AND kind = 'config_seen'`
)

// newDerivation begins work on a cluster as it stands at a time, or when it was last seen if that is later. Its error is ErrDeposed
// where the term has ended; term 0 has none.
func newDerivation(ctx context.Context, tx pgx.Tx, cluster string, now time.Time, term int64) (*derivation, error) {
	d := &derivation{
		tx: tx, cluster: cluster, now: now, thresholds: trail.DefaultThresholds(),
		locked: map[trail.Subject]bool{}, facts: map[trail.Subject][]trail.Fact{}, held: since{}, from: since{}, quiet: since{},
	}
	var batch pgx.Batch
	batch.Queue(dropNoFactsQuery)
	readSettled(&batch, &d.settled)
	fence(&batch, cluster, term)
	d.readReach(&batch)
	d.readFailed(&batch)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, explain("read how far the cluster was seen", err)
	}
	return d, nil
}

// readReach asks how far the cluster was seen, and how far back what happens there may depend on.
func (d *derivation) readReach(batch *pgx.Batch) {
	batch.Queue(clusterQuery, pgx.StrictNamedArgs{"cluster": d.cluster}).Query(d.standing)
	batch.Queue(rulesQuery, pgx.StrictNamedArgs{"cluster": d.cluster}).Query(func(rows pgx.Rows) error {
		rules, err := collectFacts(rows, d.cluster)
		d.reach = reachOf(rules, d.thresholds)
		return err
	})
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

// deriveFirst derives again what new facts concern: their own subjects, and what a fact about a node, about the rules in force or
// a request may put in another light. It gives the nodes that this touches, which are to be derived then.
func (d *derivation) deriveFirst(ctx context.Context, added []trail.Fact) (since, error) {
	if slices.ContainsFunc(added, d.idle) {
		added = slices.DeleteFunc(slices.Clone(added), d.idle)
	}
	if len(added) == 0 {
		return since{}, nil
	}
	all, around := changedBy(added), d.surroundings(added)
	for _, find := range []func() (since, error){
		func() (since, error) { return d.concerned(ctx, around) },
		func() (since, error) { return d.concernedByRequests(ctx, added) },
		func() (since, error) { return d.concernedByRules(ctx, added, around) },
		func() (since, error) { return d.concernedBySettings(ctx, added) },
	} {
		concerned, err := find()
		if err != nil {
			return nil, err
		}
		all.join(concerned)
	}
	return d.replaceFirst(ctx, all)
}

// changedBy tells since when facts change what is told of their subjects: what a cordon or a taint means may have begun at any time. That somebody asked
// for one only says who that was.
func changedBy(facts []trail.Fact) since {
	out := since{}
	for i := range facts {
		f, at := &facts[i], time.Time{}
		switch {
		case f.Kind == trail.KindBlocksObserved || f.Kind == trail.KindActionRequested || f.Subject.Kind == trail.SubjectNamespace:
			at = f.OccurredAt
		case f.Subject.Kind == trail.SubjectVMI:
			at = f.Since()
		}
		out.add(f.Subject, at)
	}
	return out
}

// replace derives subjects and writes their rows where they changed, and then those of the nodes that they touch.
func (d *derivation) replace(ctx context.Context, all since) error {
	around, err := d.replaceFirst(ctx, all)
	if err != nil {
		return err
	}
	return d.replaceAround(ctx, around)
}

// replaceFirst derives VMs and what stands for itself, then the VMs whose waiting that explains, and so on: of one that waited a follower may have stored what
// explains others. It gives the nodes that are to be derived then: those among the subjects, and those that the rows of the VMs touch.
func (d *derivation) replaceFirst(ctx context.Context, all since) (since, error) {
	around, next := since{}, since{}
	for s, at := range d.derivable(all) {
		if isAround(s) {
			around[s] = at
		} else {
			next[s] = at
		}
	}
	for len(next) > 0 {
		waiting := since{}
		err := d.byPortion(ctx, next, func(some []trail.Subject) error {
			touched, err := d.replaceVMs(ctx, some, false)
			if err != nil {
				return err
			}
			around.join(touched.around)
			more, err := d.waiting(ctx, touched.slots, some)
			waiting.join(more)
			return err
		})
		if err != nil {
			return nil, err
		}
		next = d.derivable(waiting)
	}
	return around, nil
}

// byPortion holds subjects and does something with them: where they are few at once, else with those that are held already and then with one portion of the
// others after the other. All but the last are given up when that is done.
func (d *derivation) byPortion(ctx context.Context, changed since, do func([]trail.Subject) error) error {
	var held []trail.Subject
	others := since{}
	for _, s := range changed.subjects() {
		if d.holds(s, changed[s]) {
			held = append(held, s)
		} else {
			others[s] = changed[s]
		}
	}
	split, err := portions(ctx, d.tx, d.cluster, others)
	if err != nil {
		return err
	}
	if len(split) == 1 {
		split[0] = slices.Concat(held, split[0])
	} else if len(held) > 0 {
		split = slices.Insert(split, 0, held)
	}
	for i, some := range split {
		if err := d.hold(ctx, changed.of(some)); err != nil {
			return err
		}
		if err := do(some); err != nil {
			return err
		}
		if i < len(split)-1 {
			d.release(some)
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
	if d.careful {
		all := touched{around: since{}}
		err := d.eachAlone(ctx, subjects, func(s trail.Subject) error {
			changed, err := d.replaceVMs(ctx, []trail.Subject{s}, anew)
			if err == nil {
				all.around.join(changed.around)
				all.slots = append(all.slots, changed.slots...)
			}
			return err
		})
		return all, err
	}
	if len(subjects) == 0 {
		return touched{}, nil
	}
	env, pods, err := d.env(ctx, subjects)
	if err != nil {
		return touched{}, err
	}
	subjects, derived, err := d.deriveEach(ctx, subjects, env)
	if err != nil {
		return touched{}, err
	}
	if err := d.explainQueue(ctx, subjects, derived, env); err != nil {
		return touched{}, err
	}
	w := d.tables()
	for i, s := range subjects {
		w.addSince(s, d.changeable(s, derived[i]), d.from[s])
	}
	changed, err := w.write(ctx, d.tx, append(names(subjects), names(pods)...), &d.news)
	if err == nil {
		err = d.heal(ctx, names(subjects))
	}
	if anew {
		for _, d := range derived {
			changed.all(d)
		}
	}
	return changed, err
}

// changeable returns what of a VM's rows may not be stored as it is. Most rows had ended when nothing was open there: they are settled (oldSettled), and need not
// be sent to find that. A placement may have been open all the time.
func (d *derivation) changeable(vm trail.Subject, all trail.Derived) trail.Derived {
	rows := all.Unsettled(d.quiet[vm], nil)
	rows.Placements = all.Placements
	return rows
}

// replaceAround derives nodes, and the cluster as a whole, of the rows of the VMs that touch them, each from when on things changed there. Where
// there was a drain since then and is none any more, what is left of the one before is derived, too.
func (d *derivation) replaceAround(ctx context.Context, changed since) error {
	changed = d.derivable(changed)
	if len(changed) == 0 {
		return nil
	}
	subjects := changed.subjects()
	if d.careful {
		return d.eachAlone(ctx, subjects, func(s trail.Subject) error { return d.replaceAround(ctx, since{s: changed[s]}) })
	}
	if err := d.hold(ctx, ever(subjects)); err != nil {
		return err
	}
	from, drained, err := d.reachAround(ctx, changed)
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
		derived, err := deriveSubject(s, d.facts[s], env, d.now)
		if err != nil {
			if err := d.noteFailed(leaveOut(ctx, d.tx, d.cluster, nameOf(s), err)); err != nil {
				return err
			}
			continue
		}
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
	if err := d.heal(ctx, names(done)); err != nil {
		return err
	}
	return d.replaceAround(ctx, again)
}
