package tables

// FactsOfSubjectsQuery asks for all facts of @subjects of a @cluster (CollectFacts).
//
// OFFSET keeps Postgres from reading a whole month and looking at every row of it, which it otherwise prefers until it has counted what a
// new month holds: the facts of each subject are found by the primary key.
const FactsOfSubjectsQuery = `
SELECT f.*
FROM unnest(@subjects::text[]) AS s(of)
CROSS JOIN LATERAL (
  SELECT ` + FactColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
  OFFSET 0
) AS f`

// FactsSinceQuery asks for the facts of @subjects of a @cluster since a time of each, inclusive: @from beside them.
//
// Of many pods nothing was asked: they are found among the subjects before each month is looked into.
const FactsSinceQuery = `
SELECT f.*
FROM unnest(@subjects::text[], @from::timestamptz[]) AS s(of, since)
JOIN evictrail.subjects AS known ON known.cluster = @cluster AND known.subject = s.of
CROSS JOIN LATERAL (
  SELECT ` + FactColumns + `
  FROM evictrail.events
  WHERE cluster = @cluster
    AND subject = s.of
    AND occurred_at >= s.since
  OFFSET 0
) AS f`

// RequestsAboutMigrationsQuery asks for requests about migrations of a @cluster until @at: of @namespaces, which are texts of subjects,
// with @names of migrations and the times in which they were there, @from and @to, beside them.
//
// Of the requests about migrations in a namespace only those can be about a VM that came while a migration of it was there, and that name
// it or, as the API server had yet to generate its name, none. OFFSET is there for what FactsOfSubjectsQuery has it for.
const RequestsAboutMigrationsQuery = `
SELECT ` + FactColumns + `
FROM unnest(@namespaces::text[], @names::text[], @from::timestamptz[], @to::timestamptz[]) AS w(of, name, since, until)
CROSS JOIN LATERAL (
  SELECT *
  FROM evictrail.events AS e
  WHERE e.cluster = @cluster
    AND e.subject = w.of
    AND e.occurred_at BETWEEN w.since AND least(w.until, @at)
    AND (e.migration = w.name OR e.migration IS NULL AND e.occurred_at <= w.since + interval '2 minutes')
  OFFSET 0
) AS f`

// StateBefore is the rule of which older facts matter (storetest.StateBefore says it in Go): where to find the facts of a subject s.of from before s.since that say how it stood then. Few columns are read to
// find them: whole rows are read of these alone.
const StateBefore = `older AS MATERIALIZED (
    SELECT occurred_at, id, reason, object_kind, object_uid, object_version, what, migration_uid
    FROM evictrail.events
    WHERE cluster = @cluster
      AND subject = s.of
      AND occurred_at < s.since
  ), there AS MATERIALIZED (
    SELECT *
    FROM older
    WHERE object_kind IN ('VirtualMachineInstance', 'VirtualMachineInstanceMigration', 'Pod', 'Node')
      AND object_uid NOT IN (SELECT object_uid FROM older WHERE what = 'gone')
  ), state_before AS (
    SELECT occurred_at, id
    FROM there
    WHERE object_kind = 'Pod'
      AND (reason = 'pod_ended' OR object_uid NOT IN (SELECT object_uid FROM older WHERE reason = 'pod_ended'))
    UNION
    SELECT occurred_at, id
    FROM older
    WHERE migration_uid IN (SELECT object_uid FROM there WHERE object_kind = 'VirtualMachineInstanceMigration')
    UNION
    (
      SELECT DISTINCT ON (object_uid) occurred_at, id
      FROM there
      WHERE object_kind IN ('VirtualMachineInstance', 'Node')
      ORDER BY object_uid, length(object_version), object_version, occurred_at
    )
    UNION
    (
      SELECT DISTINCT ON (object_uid, what) occurred_at, id
      FROM there
      WHERE object_kind IN ('VirtualMachineInstance', 'Node')
      ORDER BY object_uid, what, length(object_version) DESC, object_version DESC, occurred_at DESC
    )
  )`
