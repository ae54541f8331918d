package lint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// ruleCases have for each rule texts that break it, and the nearest ones that do not.
var ruleCases = []struct {
	rule  string
	broke []string
	kept  []string
}{
	{"returning", []string{
		`UPDATE evictrail.placements AS t SET left_by = 'x' WHERE t.cluster = $1 RETURNING (t.left_by, t.ended_by)::text`,
		`DELETE FROM evictrail.placements WHERE cluster = $1 RETURNING from_at::text`,
		`WITH gone AS (DELETE FROM evictrail.gaps WHERE cluster = $1 RETURNING now() AS at) SELECT at FROM gone`,
	}, []string{
		`UPDATE evictrail.placements AS t SET left_by = 'x' WHERE t.cluster = $1 RETURNING t.left_by || '/' || t.ended_by, placement_id::text`,
		`SELECT (left_by, ended_by)::text FROM evictrail.placements WHERE cluster = $1`,
	}},
	{"case", []string{
		`UPDATE evictrail.subjects SET derived_at = CASE WHEN version > 1 THEN now() ELSE derived_at END WHERE cluster = $1`,
		`DELETE FROM evictrail.loops AS t WHERE t.cluster = $1 AND NOT coalesce(t.closed_at < ($2::jsonb ->> t.subject)::timestamptz, false)`,
	}, []string{
		`UPDATE evictrail.subjects SET derived_at = coalesce($2, derived_at), next_at = CASE WHEN $3 THEN $4 ELSE next_at END WHERE cluster = $1`,
		`UPDATE evictrail.subjects AS s SET derived_at = coalesce(n.at, s.derived_at) FROM (SELECT CASE WHEN $2 THEN now() END AS at) AS n WHERE s.cluster = $1`,
		`SELECT CASE WHEN version > 1 THEN now() END FROM evictrail.subjects`,
	}},
	{"columns", []string{
		`SELECT count(*) FROM (SELECT FROM evictrail.events_default LIMIT $1) AS d`,
		`SELECT c.cluster FROM evictrail.clusters AS c WHERE EXISTS (SELECT FROM evictrail.subjects AS s WHERE s.cluster = c.cluster)`,
	}, []string{
		`SELECT count(*) FROM (SELECT 1 FROM evictrail.events_default LIMIT $1) AS d`,
		`SELECT EXISTS (SELECT FROM pg_roles)`,
		`DELETE FROM evictrail.gaps AS t WHERE cluster = $1 AND EXISTS (SELECT FROM unnest($2::text[]) AS u WHERE u = t.subject)`,
	}},
	{"recursive", []string{
		`WITH RECURSIVE up AS (SELECT cause_uid FROM evictrail.consequences UNION ALL
			SELECT n.cause_uid FROM up JOIN evictrail.consequences AS n ON n.migration_uid = up.cause_uid) SELECT * FROM up`,
	}, []string{
		`WITH RECURSIVE up AS (SELECT cause_uid FROM evictrail.consequences WHERE cluster = $1 UNION ALL
			SELECT n.cause_uid FROM up JOIN evictrail.consequences AS n ON n.cluster = $1 AND n.migration_uid = up.cause_uid) SELECT * FROM up`,
		`WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n`,
	}},
	{"ctid", []string{
		`DELETE FROM evictrail.gaps WHERE ctid = ANY(ARRAY(SELECT t.ctid FROM evictrail.gaps AS t WHERE t.cluster = $1 LIMIT 10))`,
	}, []string{
		`DELETE FROM evictrail.gaps WHERE cluster = $1 AND ctid = ANY(ARRAY(SELECT t.ctid FROM evictrail.gaps AS t WHERE t.cluster = $1 LIMIT 10))`,
		`DELETE FROM evictrail.gaps WHERE gap_id = ANY(ARRAY(SELECT t.gap_id FROM evictrail.gaps AS t WHERE t.cluster = $1 LIMIT 10))`,
		`UPDATE evictrail.retention SET complete = true WHERE ctid = ANY(ARRAY(SELECT ctid FROM evictrail.retention))`,
	}},
	{"volatile", []string{
		`UPDATE evictrail.events SET stored_at = clock_timestamp() WHERE cluster = $1`,
		`DELETE FROM evictrail.events AS e USING (SELECT gen_random_uuid() AS id) AS o WHERE e.cluster = $1 AND e.id = o.id`,
	}, []string{
		`UPDATE evictrail.events SET stored_at = now() WHERE cluster = $1`,
		`INSERT INTO evictrail.acknowledgements (acknowledgement_id, cluster, subject, author, expires_at) VALUES (gen_random_uuid(), $1, $2, $3, $4)`,
	}},
	{"stable", []string{
		`UPDATE evictrail.events AS e SET detail = jsonb_build_object('user', e.detail ->> 'user') WHERE e.cluster = $1`,
		`UPDATE evictrail.evidence AS v SET names_salt = NULL WHERE v.cluster = $1 AND v.month = date_trunc('month', v.sealed_at, 'UTC')::date`,
	}, []string{
		`UPDATE evictrail.events AS e SET detail = jsonb_build_object('user', $2::text) WHERE e.cluster = $1`,
		`UPDATE evictrail.events AS e SET detail = e.detail - 'user' WHERE e.cluster = $1 AND e.occurred_at < now() - interval '1 day'`,
	}},
	{"conflict", []string{
		`INSERT INTO evictrail.watching AS w (cluster, replica, source, since, upto) SELECT $1, 'a', 'b', now(), now() ON CONFLICT (cluster, replica, source) DO UPDATE SET upto = now()`,
		`INSERT INTO evictrail.watching AS w (cluster, replica, source, since, upto) SELECT $1, 'a', 'b', now(), now()
			ON CONFLICT (cluster, replica, source) DO UPDATE SET upto = excluded.upto WHERE w.since < now()`,
	}, []string{
		`INSERT INTO evictrail.watching AS w (cluster, replica, source, since, upto) SELECT $1, 'a', 'b', now(), now()
			ON CONFLICT (cluster, replica, source) DO UPDATE SET upto = greatest(w.upto, excluded.upto)`,
	}},
	{"insert", []string{
		`INSERT INTO evictrail.gaps (cluster, subject) VALUES ($1, (SELECT subject FROM evictrail.subjects WHERE cluster = $1))`,
	}, []string{
		`INSERT INTO evictrail.gaps (cluster, subject) SELECT $1, subject FROM evictrail.subjects WHERE cluster = $1 AND subject IN (SELECT subject FROM evictrail.loops WHERE cluster = $1)`,
	}},
	{"lateral", []string{
		`SELECT d.node FROM evictrail_v1.drains AS d CROSS JOIN LATERAL (SELECT vmi FROM evictrail_v1.evacuations AS e WHERE e.node = d.node LIMIT 1) AS e`,
		`SELECT d.node FROM evictrail.drains AS d JOIN evictrail.evacuations AS e ON e.node = d.node`,
		`SELECT (SELECT max(at) FROM evictrail.timeline AS t WHERE t.node = d.node) FROM evictrail.drains AS d`,
	}, []string{
		`SELECT d.node FROM evictrail_v1.drains AS d CROSS JOIN LATERAL (SELECT vmi FROM evictrail_v1.evacuations AS e WHERE e.cluster = d.cluster AND e.node = d.node LIMIT 1) AS e`,
		`SELECT d.node FROM evictrail.drains AS d JOIN evictrail.evacuations AS e ON e.node = d.node AND e.cluster = $1 WHERE d.cluster = $1`,
		`SELECT (SELECT max(at) FROM evictrail.timeline AS t WHERE (t.cluster, t.node) = (d.cluster, d.node)) FROM evictrail.drains AS d`,
		`SELECT d.node FROM evictrail.drains AS d LEFT JOIN evictrail.acknowledgements AS a ON a.cluster = d.cluster AND a.node = d.node`,
	}},
	{"outer", []string{
		`SELECT d.at, (SELECT count(*) FROM evictrail.timeline AS t WHERE t.at > d.at) FROM generate_series(now() - interval '1 day', now(), '1 hour') AS d(at)`,
		`SELECT s.of, e.id FROM unnest($1::text[]) AS s(of) CROSS JOIN LATERAL (SELECT id FROM evictrail.events WHERE subject = s.of LIMIT 1) AS e`,
	}, []string{
		`SELECT d.at, (SELECT count(*) FROM evictrail.timeline AS t WHERE t.cluster = $1 AND t.at > d.at) FROM generate_series(now() - interval '1 day', now(), '1 hour') AS d(at)`,
		`SELECT s.of, e.id FROM unnest($1::text[]) AS s(of) JOIN evictrail.events AS e ON e.subject = s.of`,
		`SELECT (SELECT count(*) FROM evictrail.timeline)`,
	}},
	{"row", []string{
		`SELECT to_jsonb(v)::text FROM evictrail_v1.loops AS v`,
		`SELECT to_jsonb(v)::text FROM evictrail_v1.loops AS v WHERE cluster <> $1`,
	}, []string{
		`SELECT to_jsonb(v)::text FROM evictrail_v1.loops AS v LIMIT 10`,
		`SELECT to_jsonb(v)::text FROM evictrail_v1.loops AS v WHERE cluster = $1`,
		`SELECT to_jsonb(t)::text FROM evictrail.loops AS t`,
		`SELECT v.* FROM evictrail_v1.loops AS v`,
	}},
	{"size", []string{
		`SELECT pg_total_relation_size(oid) FROM pg_class`,
	}, []string{
		`SELECT pg_database_size(current_database())`,
	}},
	{"lock", []string{
		`SELECT term FROM evictrail.leaders FOR SHARE`,
		`SELECT term FROM evictrail.leaders WHERE holder = $1 FOR UPDATE`,
	}, []string{
		`SELECT term FROM evictrail.leaders WHERE cluster = $1 FOR SHARE`,
		`SELECT dropping FROM evictrail.retention FOR UPDATE`,
		`SELECT rolname FROM pg_authid FOR UPDATE`,
	}},
	{"plan", []string{
		`SET LOCAL plan_cache_mode = force_generic_plan`,
		`SET plan_cache_mode TO 'force_generic_plan'`,
		`SELECT set_config('plan_cache_mode', 'force_generic_plan', true)`,
	}, []string{
		`SET LOCAL plan_cache_mode = auto`,
		`SET LOCAL plan_cache_mode = force_custom_plan`,
		`SELECT set_config('plan_cache_mode', 'force_custom_plan', true)`,
	}},
	{"check", []string{
		`ALTER TABLE evictrail.gaps ADD COLUMN cause text CHECK (cause <> '')`,
		`ALTER TABLE evictrail.gaps ADD CHECK (cause <> '')`,
		`ALTER TABLE evictrail.gaps ADD CONSTRAINT cause_said CHECK (cause <> ''), ADD COLUMN other text`,
	}, []string{
		`ALTER TABLE evictrail.gaps ADD COLUMN cause text, ADD COLUMN other text -- no CHECK`,
		`ALTER TABLE evictrail.gaps ADD CONSTRAINT cause_said CHECK (cause <> '')`,
		`CREATE TABLE evictrail.new (cluster text NOT NULL CHECK (cluster <> ''))`,
	}},
	{"drop", []string{
		`DROP VIEW evictrail_v1.loops, evictrail_v1.gaps`,
		`DROP FUNCTION IF EXISTS evictrail.one(text, integer), evictrail.other()`,
	}, []string{
		`DROP VIEW evictrail_v1.loops`,
		`DROP FUNCTION IF EXISTS evictrail.one(text, integer)`,
	}},
	{"trigger", []string{
		`CREATE TRIGGER t BEFORE INSERT ON evictrail.events FOR EACH ROW EXECUTE FUNCTION f()`,
	}, []string{
		`CREATE TABLE evictrail.trigger (cluster text)`,
	}},
}

// TestRules has each rule found where it is broken, and not where it is not: there may be others.
func TestRules(t *testing.T) {
	t.Parallel()
	l, err := New(t.Context(), storetest.NewURL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close(t.Context()) })
	tested := map[string]bool{}
	for _, c := range ruleCases {
		tested[c.rule] = true
		for _, sql := range c.broke {
			require.Contains(t, brokenRules(t, l, sql), c.rule, sql)
		}
		for _, sql := range c.kept {
			require.NotContains(t, brokenRules(t, l, sql), c.rule, sql)
		}
	}
	for _, r := range Rules {
		require.True(t, tested[r.Name], r.Name)
	}
	for _, r := range scriptRules {
		require.True(t, tested[r.Name], r.Name)
	}
}

func brokenRules(t *testing.T, l *Linter, sql string) (names []string) {
	t.Helper()
	found, err := l.Lint(t.Context(), sql)
	require.NoError(t, err)
	for _, f := range found {
		names = append(names, f.Rule.Name)
	}
	return names
}

// TestNested finds what a function runs.
func TestNested(t *testing.T) {
	t.Parallel()
	url := storetest.NewURL(t)
	l, err := New(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close(t.Context())) }()
	found, err := l.LintNested(t.Context(), `DO $$ BEGIN UPDATE evictrail.clusters SET alive_at = clock_timestamp(); END $$`)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "volatile", found[0].Rule.Name)
	found, err = l.LintNested(t.Context(), `DO $$ BEGIN UPDATE evictrail.clusters SET alive_at = now(); END $$`)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestSplitScript(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"SELECT ';' -- a; b\n", "\nDO $x$ BEGIN; END $x$", ` SELECT "a;b"`},
		SplitScript("SELECT ';' -- a; b\n;\nDO $x$ BEGIN; END $x$; SELECT \"a;b\";\n-- the end;\n"))
}

// TestStepsKeepRules judges what brings a distributed database to the next schema: the steps. What an empty database
// gets is distributed afterwards.
func TestStepsKeepRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../migrations/steps/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if filepath.Base(file) < "044" { // before, no database was distributed (citus.FirstSchema)
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, sql := range SplitScript(string(text)) {
			require.Empty(t, lintText(sql), file)
		}
	}
}
