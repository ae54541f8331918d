package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/trail"
)

// derivation is one transaction's work on some subjects: their facts as they are, and what is derived of them.
type derivation struct {
	tx      pgx.Tx
	cluster string
	facts   map[trail.Subject][]trail.Fact // of the subjects that are held
}

const holdSubjectsQuery = `
INSERT INTO evictrail.subjects (cluster, subject, derived_at)
SELECT @cluster, s, now()
FROM unnest(@subjects::text[]) AS s
ON CONFLICT (cluster, subject) DO UPDATE SET derived_at = excluded.derived_at`

// hold takes the rows of subjects, waiting for other writers, and reads their facts. Subjects come sorted, so that no
// two writers wait for each other.
func (d *derivation) hold(ctx context.Context, subjects []trail.Subject) error {
	var fresh []trail.Subject
	for _, s := range subjects {
		if _, held := d.facts[s]; !held {
			d.facts[s] = nil
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	_, err := d.tx.Exec(ctx, holdSubjectsQuery, pgx.StrictNamedArgs{"cluster": d.cluster, "subjects": names(fresh)})
	if err != nil {
		return explain("take subjects", err)
	}
	facts, err := factsOf(ctx, d.tx, d.cluster, fresh)
	for _, f := range facts {
		d.facts[f.Subject] = append(d.facts[f.Subject], f)
	}
	return err
}

// missing gives the facts that are not stored yet, each once, and takes them in.
func (d *derivation) missing(facts []trail.Fact) []trail.Fact {
	stored := map[trail.FactID]bool{}
	for _, of := range d.facts {
		for _, f := range of {
			stored[f.ID] = true
		}
	}
	var out []trail.Fact
	for _, f := range facts {
		if !stored[f.ID] {
			stored[f.ID] = true
			out = append(out, f)
			d.facts[f.Subject] = append(d.facts[f.Subject], f)
		}
	}
	return out
}

// derive derives again what new facts concern: their own subjects, and the VMs whose marks a fact about a node or
// about the rules in force may put in another light.
func (d *derivation) derive(ctx context.Context, added []trail.Fact) error {
	if len(added) == 0 {
		return nil
	}
	subjects := map[trail.Subject]bool{}
	for _, f := range added {
		subjects[f.Subject] = true
	}
	concerned, err := d.concerned(ctx, added)
	if err != nil {
		return err
	}
	if err := d.hold(ctx, concerned); err != nil {
		return err
	}
	for _, s := range concerned {
		subjects[s] = true
	}
	return d.replace(ctx, sortedSubjects(subjects))
}

// A fact about a node can change what marks since the fact before it mean, one about the rules or a gap those of all
// nodes.
const concernedQuery = `
SELECT DISTINCT subject
FROM evictrail.events
WHERE cluster = @cluster
  AND kind IN ('evacuation_marked', 'migration_seen')
  AND (node = ANY(@nodes) OR @everywhere)
  AND occurred_at >= @since
ORDER BY subject`

// concerned finds the VMs that facts about nodes and rules put in another light.
func (d *derivation) concerned(ctx context.Context, added []trail.Fact) ([]trail.Subject, error) {
	nodes, everywhere, since := d.surroundings(added)
	if len(nodes) == 0 && !everywhere {
		return nil, nil
	}
	rows, err := d.tx.Query(ctx, concernedQuery, pgx.StrictNamedArgs{
		"cluster": d.cluster, "nodes": nodes, "everywhere": everywhere, "since": since,
	})
	if err != nil {
		return nil, explain("find VMs concerned", err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, explain("find VMs concerned", err)
	}
	var out []trail.Subject
	for _, text := range texts {
		s, err := trail.ParseSubject(text)
		if err != nil {
			return nil, err
		}
		if s.Kind == trail.SubjectVMI {
			out = append(out, s)
		}
	}
	return out, nil
}

// surroundings tells which nodes the new facts are about, whether some are about the rules or gaps, and since when they
// may matter: a gap since it opened, others since the fact before the earliest of them, for ever where there is none.
func (d *derivation) surroundings(added []trail.Fact) (nodes []string, everywhere bool, since time.Time) {
	seen := map[string]bool{}
	var bounds []time.Time
	for _, f := range added {
		switch f.Subject.Kind {
		case trail.SubjectNode:
			if !seen[f.Subject.Name] {
				seen[f.Subject.Name] = true
				nodes = append(nodes, f.Subject.Name)
			}
		case trail.SubjectConfig:
			everywhere = true
		case trail.SubjectSource:
			everywhere = true
			bounds = append(bounds, f.OccurredAt.Add(-time.Second))
			continue
		case trail.SubjectVMI, trail.SubjectUnknown:
			continue
		}
		bounds = append(bounds, d.before(f))
	}
	for i, b := range bounds {
		if i == 0 || b.Before(since) {
			since = b
		}
	}
	return nodes, everywhere, since
}

// before gives the time of the last fact of the same subject that is older than f, zero where there is none.
func (d *derivation) before(f trail.Fact) time.Time {
	var last time.Time
	for _, other := range d.facts[f.Subject] {
		if other.OccurredAt.Before(f.OccurredAt) && other.OccurredAt.After(last) {
			last = other.OccurredAt
		}
	}
	return last
}

// replace derives subjects and writes their rows where they changed.
func (d *derivation) replace(ctx context.Context, subjects []trail.Subject) error {
	env, err := d.env(ctx, subjects)
	if err != nil {
		return err
	}
	w := tables{cluster: d.cluster}
	for _, s := range subjects {
		w.add(s, trail.Derive(s, d.facts[s], env))
	}
	return w.write(ctx, d.tx, names(subjects))
}

// env reads what surrounds the VMs among the subjects.
func (d *derivation) env(ctx context.Context, subjects []trail.Subject) (*trail.Env, error) {
	wanted := map[trail.Subject]bool{}
	for _, s := range subjects {
		if s.Kind == trail.SubjectVMI {
			for _, around := range trail.EnvSubjects(d.facts[s]) {
				wanted[around] = true
			}
		}
	}
	var known []trail.Fact
	for s := range wanted {
		if facts, held := d.facts[s]; held {
			known = append(known, facts...)
			delete(wanted, s)
		}
	}
	if len(wanted) == 0 {
		return trail.NewEnv(known), nil
	}
	more, err := factsOf(ctx, d.tx, d.cluster, sortedSubjects(wanted))
	return trail.NewEnv(append(known, more...)), err
}

// rederiveBatch is how many subjects are derived in one transaction when all are.
const rederiveBatch = 200

const subjectsQuery = `
SELECT subject
FROM evictrail.subjects
WHERE cluster = @cluster
  AND subject > @after
ORDER BY subject
LIMIT @limit`

// Rederive derives everything of a cluster anew from its facts, a few subjects at a time, and tells how many it did.
func (s *Store) Rederive(ctx context.Context, cluster string) (int, error) {
	done, after := 0, ""
	for {
		rows, err := s.pool.Query(ctx, subjectsQuery, pgx.StrictNamedArgs{"cluster": cluster, "after": after, "limit": rederiveBatch})
		if err != nil {
			return done, explain("read subjects", err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(texts) == 0 {
			return done, explain("read subjects", err)
		}
		subjects := make([]trail.Subject, len(texts))
		for i, text := range texts {
			if subjects[i], err = trail.ParseSubject(text); err != nil {
				return done, err
			}
		}
		err = s.inTx(ctx, "derive anew", func(tx pgx.Tx) error {
			d := &derivation{tx: tx, cluster: cluster, facts: map[trail.Subject][]trail.Fact{}}
			if err := d.hold(ctx, subjects); err != nil {
				return err
			}
			return d.replace(ctx, subjects)
		})
		if err != nil {
			return done, err
		}
		done, after = done+len(texts), texts[len(texts)-1]
	}
}

// owned is what leads every derived row.
type owned struct {
	Cluster string `json:"cluster"`
	Subject string `json:"subject"`
}

// tables gathers the derived rows of some subjects, one slice for each table.
type tables struct {
	cluster     string
	evacuations []any
	migrations  []any
	placements  []any
	gaps        []any
	timeline    []any
}

func (t *tables) add(s trail.Subject, d trail.Derived) {
	o := owned{t.cluster, clean(s.String())}
	for _, r := range d.Evacuations {
		t.evacuations = append(t.evacuations, evacuationRow{o, r})
	}
	for _, r := range d.Migrations {
		t.migrations = append(t.migrations, migrationRow{o, r})
	}
	for _, r := range d.Placements {
		t.placements = append(t.placements, placementRow{o, r})
	}
	for _, r := range d.Gaps {
		t.gaps = append(t.gaps, gapRow{o, r})
	}
	for _, r := range d.Timeline {
		t.timeline = append(t.timeline, timelineRow{o, r})
	}
}

// write replaces the rows of the subjects in each table. Rows that stay as they are are not touched.
func (t *tables) write(ctx context.Context, tx pgx.Tx, subjects []string) error {
	for _, table := range []struct {
		name, key string
		rows      []any
	}{
		{"evacuations", "evacuation_id", t.evacuations},
		{"migrations", "migration_uid", t.migrations},
		{"placements", "placement_id", t.placements},
		{"gaps", "gap_id", t.gaps},
		{"timeline", "event_id", t.timeline},
	} {
		if table.rows == nil {
			table.rows = []any{}
		}
		if err := replaceRows(ctx, tx, table.name, table.key, t.cluster, subjects, table.rows); err != nil {
			return err
		}
	}
	return nil
}

// The rows come as a JSON array whose keys are the columns. Table and key are names of ours.
const (
	deleteChangedQuery = `
DELETE FROM evictrail.%[1]s AS t
WHERE t.cluster = @cluster
  AND t.subject = ANY(@subjects)
  AND NOT EXISTS (
    SELECT FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb) AS n
    WHERE n.subject = t.subject AND n.%[2]s = t.%[2]s AND n IS NOT DISTINCT FROM t
  )`
	insertMissingQuery = `
INSERT INTO evictrail.%[1]s
SELECT *
FROM jsonb_populate_recordset(NULL::evictrail.%[1]s, @rows::jsonb)
ON CONFLICT DO NOTHING`
)

func replaceRows(ctx context.Context, tx pgx.Tx, table, key, cluster string, subjects []string, rows []any) error {
	text, err := jsonText(rows)
	if err != nil {
		return fmt.Errorf("replace %s: %w", table, err)
	}
	_, err = tx.Exec(ctx, fmt.Sprintf(deleteChangedQuery, table, key), pgx.StrictNamedArgs{
		"cluster": cluster, "subjects": subjects, "rows": text,
	})
	if err != nil || len(rows) == 0 {
		return explain("replace "+table, err)
	}
	_, err = tx.Exec(ctx, fmt.Sprintf(insertMissingQuery, table), pgx.StrictNamedArgs{"rows": text})
	return explain("replace "+table, err)
}
