package store

import (
	"context"
	"fmt"

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
	for _, find := range []func(context.Context, []trail.Fact) ([]trail.Subject, error){d.concerned, d.concernedByRequests} {
		concerned, err := find(ctx, added)
		if err != nil {
			return err
		}
		if err := d.hold(ctx, concerned); err != nil {
			return err
		}
		for _, s := range concerned {
			subjects[s] = true
		}
	}
	return d.replace(ctx, sortedSubjects(subjects))
}

// replace derives subjects and writes their rows where they changed. The requests about the pods of a VM are told with
// the VM: rows that those pods had while nobody knew their VM go.
func (d *derivation) replace(ctx context.Context, subjects []trail.Subject) error {
	if len(subjects) == 0 {
		return nil
	}
	env, pods, err := d.env(ctx, subjects)
	if err != nil {
		return err
	}
	w := tables{cluster: d.cluster}
	for _, s := range subjects {
		w.add(s, trail.Derive(s, d.facts[s], env))
	}
	return w.write(ctx, d.tx, append(names(subjects), names(pods)...))
}

// owned is what leads every derived row.
type owned struct {
	Cluster string `json:"cluster"`
	Subject string `json:"subject"`
}

// tables gathers the derived rows of some subjects, one slice for each table.
type tables struct {
	cluster     string
	requests    []any
	evacuations []any
	migrations  []any
	placements  []any
	gaps        []any
	timeline    []any
}

func (t *tables) add(s trail.Subject, d trail.Derived) {
	o := owned{t.cluster, clean(s.String())}
	for _, r := range d.Requests {
		t.requests = append(t.requests, requestRow{o, r})
	}
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
		{"eviction_requests", "request_id", t.requests},
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
