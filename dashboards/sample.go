package dashboards

import "fmt"

// A range of months of a large cluster has more migrations than can be read while somebody waits. Panels that go through all of them ask for a sample then, which
// an index holds (migrations_sampled): of what was found in the sample the share is that of the whole (docs/adr/0029).
const (
	sampleShare = 32  // one in so many migrations is in the sample
	guestShare  = 64  // one in so many guests is in that of guests
	sampleLeast = 750 // migrations that a sample must have: where there are fewer, all migrations are read
)

// The migrations in the sample, and those of guests in theirs. Indexes are found by these conditions as they stand here.
var (
	sampled        = fmt.Sprintf("hashtext(migration_uid) & %d = 0", sampleShare-1)
	ofSampledGuest = fmt.Sprintf("hashtext(vmi_uid) & %d = 0", guestShare-1)
)

// Whether the sample is used, where a common table sample has it, or all migrations: one of them is read, the other one left out.
var (
	fromSample = fmt.Sprintf("(SELECT n FROM size) >= %d", sampleLeast)
	fromAll    = fmt.Sprintf("(SELECT n FROM size) < %d", sampleLeast)
)

// What panels say that show a sample: all that they show, or which of the many there are.
var (
	estimates     = fmt.Sprintf("Above some %d,000 migrations, the numbers are estimates from one in %d.", sampleShare*sampleLeast/1000, sampleShare)
	foundBySample = fmt.Sprintf("Above some %d,000 migrations, frequent ones are found in a sample of one in %d, then counted.",
		sampleShare*sampleLeast/1000, sampleShare)
)

// sampleOf returns the common tables sample, with columns of the migrations in the sample that meet conditions, and size, of how many these are.
func sampleOf(columns, where string) string {
	return `sample AS MATERIALIZED (
  SELECT ` + columns + `
  FROM evictrail_v1.migrations
  WHERE ` + where + `
    AND ` + sampled + `
), size AS MATERIALIZED (
  SELECT count(*) AS n
  FROM sample
)`
}

// foundOf returns the common tables of sampleOf and found: the latter has columns of migrations that meet conditions, and how many each counts for. They are those in the
// sample, or all of them.
func foundOf(columns, where string) string {
	return sampleOf(columns, where) + `, found AS (
  SELECT sample.*, ` + fmt.Sprint(sampleShare) + ` AS counts
  FROM sample
  WHERE ` + fromSample + `
  UNION ALL
  SELECT ` + columns + `, 1
  FROM evictrail_v1.migrations
  WHERE ` + where + `
    AND ` + fromAll + `
)`
}

// mostBars is how many bars a panel draws, one upon the other counted as one: over long ranges they are wider.
const mostBars = 150

// barOf returns the bar in which a time is.
func barOf(column string) string {
	return "date_bin($__interval_ms * interval '1 millisecond', " + column + ", 'epoch')"
}
