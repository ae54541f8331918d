package evidence

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

const (
	// sealAloneQuery keeps others from sealing, and from erasing names (evictrail.erase_requesters), until the
	// transaction ends.
	sealAloneQuery = `SELECT pg_advisory_xact_lock(hashtextextended('evictrail names', 0))`
	// lastLinkQuery reads where the chain of a cluster ends.
	lastLinkQuery = `
SELECT day, last_seq, digest
FROM evictrail.evidence
WHERE cluster = @cluster
ORDER BY last_seq DESC, month DESC
LIMIT 1`
	// firstUnsealedQuery reads when the first fact that is not sealed was stored.
	firstUnsealedQuery = `
SELECT min(stored_at)
FROM evictrail.events
WHERE cluster = @cluster
  AND seq > 0
  AND seq > @after`
	// lastOfDayQuery reads up to which fact a day goes: all that was stored before is part of it, whatever the clock of
	// the database said.
	lastOfDayQuery = `
SELECT max(seq)
FROM evictrail.events
WHERE cluster = @cluster
  AND seq > 0
  AND seq > @after
  AND stored_at < @ended`
	insertLinkQuery = `
INSERT INTO evictrail.evidence (
    cluster, day, month, after_seq, last_seq, facts, facts_digest, names_digest, names_salt, digest
)
VALUES (@cluster, @day, @month, @after, @last, @facts, @facts_digest, @names_digest, @salt, @digest)
RETURNING sealed_at`
	linksQuery = `
SELECT cluster, day, month, after_seq, last_seq, facts, facts_digest, names_digest, names_salt, digest, sealed_at
FROM evictrail.evidence
WHERE cluster = @cluster
ORDER BY last_seq, month`
)

const aDay = 24 * time.Hour

// Seal adds links for the facts of a cluster that were stored on days which ended at a time or before, and are not
// sealed yet. It returns those links, in their order, also with an error: each day is a transaction of its own. Two
// that seal at once do so one after the other.
func Seal(ctx context.Context, db *pg.DB, cluster string, ended time.Time) ([]Link, error) {
	var all []Link
	for {
		var links []Link
		err := db.InTx(ctx, "seal a day", func(tx pgx.Tx) (err error) {
			links, err = sealNextDay(ctx, tx, cluster, ended)
			return err
		})
		all = append(all, links...)
		if err != nil || len(links) == 0 {
			return all, err
		}
	}
}

// sealNextDay seals the first day that is not sealed, and returns its links; none where there is no such day, or it has
// not ended.
func sealNextDay(ctx context.Context, tx pgx.Tx, cluster string, ended time.Time) ([]Link, error) {
	if _, err := tx.Exec(ctx, sealAloneQuery); err != nil {
		return nil, err
	}
	next := Link{Cluster: cluster, Digest: noLink}
	err := tx.QueryRow(ctx, lastLinkQuery, pgx.StrictNamedArgs{"cluster": cluster}).
		Scan(&next.Day, &next.After, &next.Digest)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	if next.Day.Add(2 * aDay).After(ended) { // the day after it has not ended: most of the time nothing is to be looked for
		return nil, nil
	}
	var first *time.Time
	args := pgx.StrictNamedArgs{"cluster": cluster, "after": next.After}
	if err := tx.QueryRow(ctx, firstUnsealedQuery, pg.Planned, args).Scan(&first); err != nil || first == nil {
		return nil, err
	}
	next.Day = first.UTC().Truncate(aDay)
	end := next.Day.Add(aDay)
	if end.After(ended) {
		return nil, nil
	}
	args["ended"] = end
	if err := tx.QueryRow(ctx, lastOfDayQuery, pg.Planned, args).Scan(&next.Last); err != nil {
		return nil, err
	}
	return insertLinks(ctx, tx, next)
}

// insertLinks adds the links of a day, after the digest that next has.
func insertLinks(ctx context.Context, tx pgx.Tx, next Link) ([]Link, error) {
	parts, err := digestFacts(ctx, tx, next.Cluster, next.After, next.Last, func(time.Time) []byte {
		salt := make([]byte, 32)
		_, _ = rand.Read(salt) // never returns an error
		return salt
	})
	if err != nil {
		return nil, err
	}
	var months []time.Time
	for month := range parts {
		months = append(months, month)
	}
	slices.SortFunc(months, time.Time.Compare)
	links := make([]Link, 0, len(months))
	for _, month := range months {
		before := next.Digest
		next.Month = month
		parts[month].addTo(&next)
		next.Digest = next.hashLink(before)
		err := tx.QueryRow(ctx, insertLinkQuery, pgx.StrictNamedArgs{
			"cluster": next.Cluster, "day": next.Day, "month": next.Month, "after": next.After, "last": next.Last,
			"facts":        next.Facts,
			"facts_digest": next.FactsDigest, "names_digest": next.NamesDigest, "salt": next.Salt, "digest": next.Digest,
		}).Scan(&next.SealedAt)
		if err != nil {
			return nil, err
		}
		links = append(links, next)
	}
	return links, nil
}

// Links returns all links of a cluster, in their order.
func Links(ctx context.Context, db *pg.DB, cluster string) ([]Link, error) {
	rows, err := db.Query(ctx, linksQuery, pgx.StrictNamedArgs{"cluster": cluster})
	if err != nil {
		return nil, pg.Explain("read digests", err)
	}
	links, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Link])
	return links, pg.Explain("read digests", err)
}
