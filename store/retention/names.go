package retention

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
)

const eraseRequestersQuery = `
SELECT DISTINCT cluster, subject, occurred_at
FROM evictrail.erase_requesters(@before, @most, @cluster)`

// erasedTogether is in how many facts names are erased in one transaction.
const erasedTogether = 2000

// eraseRequesters erases the names of people in requests before a time, and has what they are about derived again, so
// that no row has them either. Rows that are settled are not: there the names are erased themselves. It returns of
// how many facts and rows.
func (s months) eraseRequesters(ctx context.Context, cluster string, before time.Time) (int, error) {
	total := 0
	for n := erasedTogether; n >= erasedTogether; {
		err := s.InTx(ctx, "erase names", func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, eraseRequestersQuery, pgx.StrictNamedArgs{
				"before": before, "most": erasedTogether, "cluster": cluster,
			})
			if err != nil {
				return err
			}
			type place struct {
				Cluster, Subject string
				OccurredAt       time.Time
			}
			all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[place])
			if err != nil {
				return err
			}
			n = len(all)
			subjects, since := map[string][]string{}, map[string][]time.Time{}
			for _, p := range all {
				subjects[p.Cluster], since[p.Cluster] = append(subjects[p.Cluster], p.Subject), append(since[p.Cluster], p.OccurredAt)
			}
			var batch pgx.Batch
			for cluster := range subjects {
				tables.QueueMarkDirty(&batch, cluster, subjects[cluster], since[cluster])
			}
			return pg.Explain("note what is to be derived", tx.SendBatch(ctx, &batch).Close())
		})
		if err != nil {
			return total, needsRole("erase names", err)
		}
		total += n
	}
	return total, nil
}

// eraseNames erases the names of people that were kept for long enough, and adds to out in how many facts and rows.
func (s months) eraseNames(ctx context.Context, all []kept, now time.Time, out *Retained) error {
	clusters, before := []string(nil), []time.Time(nil)
	for _, of := range all {
		if of.Requesters == 0 {
			continue
		}
		clusters, before = append(clusters, of.cluster), append(before, now.Add(-of.Requesters))
		n, err := s.eraseRequesters(ctx, of.cluster, now.Add(-of.Requesters))
		if out.Requesters += n; err != nil {
			return err
		}
		n, err = s.eraseAuthors(ctx, of.cluster, now.Add(-of.Requesters))
		if out.Requesters += n; err != nil {
			return err
		}
	}
	if len(clusters) == 0 {
		return nil
	}
	n, err := s.eraseSettled(ctx, clusters, before)
	out.Requesters += n
	return err
}

// named says of derived tables which columns are names of requesters, and which texts they may be in, too.
var named = []struct {
	table        string
	names, texts []string
}{
	{"loops", nil, []string{"summary", "evidence"}},
	{"timeline", nil, []string{"sentence"}},
	{"cooldown_decisions", nil, []string{"inputs"}},
	{"eviction_requests", []string{"requester", "impersonator"}, []string{"user_agent", "stated_reason", "answer_text", "evidence"}},
	{"evacuations", []string{"requester", "impersonator", "cancelled_by", "cancel_impersonator"}, []string{"evidence"}},
	{"migrations", []string{"requester", "impersonator", "aborted_by", "abort_impersonator"}, []string{"trigger_evidence"}},
	{"placements", []string{"ended_requester"}, []string{"ended_detail"}},
	{"drains", []string{"requester", "impersonator"}, nil},
}

// addressed are the derived tables that say from where was asked.
var addressed = []string{"eviction_requests", "migrations"}

const erased = "(erased)"

// settledRows are those rows t that are settled, of each cluster: an item for FROM, and a condition.
const (
	settledRows = "unnest(@clusters::text[], @settled::timestamptz[]) AS s(of, settled)"
	isSettled   = "t.cluster = s.of AND t.open_until < s.settled"
)

// eraseSettled erases the names of people, and addresses, in rows of clusters that are settled and had ended before a
// time, which is beside each. Names come from the columns that hold nothing else, of any of these clusters. Those are
// erased last: should this be cut off, the next time finds them again.
func (s months) eraseSettled(ctx context.Context, clusters []string, before []time.Time) (int, error) {
	settled := make([]time.Time, len(clusters))
	for i, cluster := range clusters {
		at, err := s.settledOf(ctx, cluster)
		if err != nil {
			return 0, err
		}
		if settled[i] = pg.EarlierTime(before[i], at); at.IsZero() {
			settled[i] = pg.Beginning
		}
	}
	args := pgx.NamedArgs{"clusters": clusters, "settled": settled, "erased": erased}
	var parts []string
	for _, of := range named {
		for _, column := range of.names {
			parts = append(parts, fmt.Sprintf("SELECT %[2]s FROM evictrail.%[1]s AS t, "+settledRows+" WHERE "+isSettled+
				" AND %[2]s NOT LIKE 'system:%%' AND %[2]s NOT LIKE '(erased%%'", of.table, column))
		}
	}
	rows, err := s.Query(ctx, strings.Join(parts, "\nUNION\n"), pg.Planned, args)
	if err != nil {
		return 0, pg.Explain("look for names", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, pg.Explain("look for names", err)
	}
	total := 0
	for _, name := range addressed {
		sql := fmt.Sprintf("UPDATE evictrail.%s AS t SET source_ip = NULL, changed_at = now() FROM "+settledRows+
			" WHERE "+isSettled+" AND source_ip IS NOT NULL", name)
		tag, err := s.Exec(ctx, sql, pg.Planned, args)
		if err != nil {
			return total, pg.Explain("erase addresses in "+name, err)
		}
		total += int(tag.RowsAffected())
	}
	for _, name := range names {
		args["pattern"] = `(?<![[:alnum:]_-])` + regexp.QuoteMeta(name) + `(?![[:alnum:]_-])`
		for _, of := range named {
			var set, where []string
			for _, column := range slices.Concat(of.texts, of.names) {
				kind := "text"
				if column == "inputs" || column == "evidence" && of.table == "loops" {
					kind = "jsonb"
				}
				set = append(set, fmt.Sprintf("%[1]s = regexp_replace(%[1]s::text, @pattern, @erased, 'g')::%[2]s", column, kind))
				where = append(where, fmt.Sprintf("%s::text ~ @pattern", column))
			}
			sql := fmt.Sprintf("UPDATE evictrail.%s AS t SET %s, changed_at = now() FROM "+settledRows+" WHERE "+isSettled+" AND (%s)",
				of.table, strings.Join(set, ", "), strings.Join(where, " OR "))
			tag, err := s.Exec(ctx, sql, pg.Planned, args)
			if err != nil {
				return total, pg.Explain("erase names in "+of.table, err)
			}
			total += int(tag.RowsAffected())
		}
	}
	return total, nil
}

// A note may name people, too.
const eraseAuthorsQuery = `
UPDATE evictrail.acknowledgements
SET author = @erased,
    ended_by = CASE WHEN ended_by IS NOT NULL THEN @erased END,
    note = CASE WHEN note IS NOT NULL THEN @erased END,
    changed_at = now()
WHERE cluster = @cluster
  AND created_at < @before
  AND coalesce(ended_at, expires_at) < @before
  AND author <> @erased`

// eraseAuthors erases the names of people in acknowledgements of a cluster that had ended before a time. It returns
// in how many.
func (s months) eraseAuthors(ctx context.Context, cluster string, before time.Time) (int, error) {
	tag, err := s.Exec(ctx, eraseAuthorsQuery, pg.Planned, pgx.StrictNamedArgs{
		"cluster": cluster, "before": before, "erased": erased,
	})
	return int(tag.RowsAffected()), pg.Explain("erase names in "+acknowledgements, err)
}
