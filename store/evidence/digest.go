package evidence

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
	"github.com/evictrail/evictrail/store/tables"
)

// Link is a row of evictrail.evidence: the digests of the facts of a cluster that were stored after one, up to another,
// and happened in a month.
type Link struct {
	Cluster     string
	Day         time.Time // in UTC, on which the first of the facts of the day was stored
	Month       time.Time // in UTC, in which these happened
	After       int64     // seq of the last fact of the links before; 0: there are none
	Last        int64     // seq of the last fact of the day, of whichever month
	Facts       int64     // at least 1
	FactsDigest []byte
	NamesDigest []byte
	Salt        []byte // of NamesDigest; nil: it was forgotten, as a name was erased
	Digest      []byte
	SealedAt    time.Time
}

// hashLink returns what Digest is to be after the digest of the link before. The text that is hashed has a line for
// each field, the cluster last.
func (l *Link) hashLink(before []byte) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%x\n%s\n%s\n%d\n%d\n%d\n%x\n%x\n%s\n",
		before, l.Day.Format(time.DateOnly), l.Month.Format("2006-01"),
		l.After, l.Last, l.Facts, l.FactsDigest, l.NamesDigest, l.Cluster))
	return sum[:]
}

// noLink is the digest before the first link of a cluster.
var noLink = make([]byte, sha256.Size)

// part is what the facts of one month amount to.
type part struct {
	facts int64
	all   hash.Hash // of what is not erased
	names hash.Hash // nil where there is no salt
	salt  []byte
}

// addTo sets the digests of a link to those of the part.
func (p *part) addTo(l *Link) {
	l.Facts, l.FactsDigest, l.Salt = p.facts, p.all.Sum(nil), p.salt
	if p.names != nil {
		l.NamesDigest = p.names.Sum(nil)
	}
}

// erasable are the keys of detail that evictrail.erase_requesters erases names in, and erasedKinds the kinds of facts
// in which it does.
var (
	erasable    = []string{"user", "impersonator", "user_agent", "message", "stated_reason", "requested_by", "source_ip"}
	erasedKinds = []string{"eviction_requested", "action_requested"}
)

// sealedQuery reads all that was recorded of some facts, in the order in which they were stored: when each happened,
// what is not erased of it in sealedColumns columns, and then what may be.
const sealedQuery = `
SELECT
    occurred_at,
    seq, subject, occurred_at, id, kind, reason, clock, observed_at, stored_at, seen_late, namespace, vmi, vmi_uid, node,
    migration, migration_uid, object_kind, object_uid, object_version, what, value, evidence,
    (
      CASE WHEN kind = ANY(@kinds) AND jsonb_typeof(detail) = 'object' THEN detail - @erasable::text[] ELSE detail END
    )::text,
    CASE WHEN kind = ANY(@kinds) AND jsonb_typeof(detail) = 'object' THEN (
      SELECT jsonb_object_agg(key, value)::text
      FROM jsonb_each(detail)
      WHERE key = ANY(@erasable::text[])
    ) END
FROM evictrail.events
WHERE cluster = @cluster
  AND seq > 0
  AND seq > @after
  AND seq <= @last
ORDER BY seq`

const sealedColumns = 23

// digestFacts returns the digests of the facts after one, up to another, by the month in which they happened. salt
// returns that of a month; nil: names are left out.
//
// A fact is encoded as a row of COPY (FORMAT binary): of each column its length in four bytes, the highest first, and
// its value as Postgres sends it; -1 and nothing where it is NULL. The digest of facts is the SHA-256 of their rows,
// that of names the HMAC-SHA-256 of seq and text of those facts that have such keys.
func digestFacts(
	ctx context.Context, tx pgx.Tx, cluster string, after, last int64, salt func(month time.Time) []byte,
) (map[time.Time]*part, error) {
	rows, err := tx.Query(ctx, sealedQuery, pg.Planned, pgx.QueryResultFormats{pgx.BinaryFormatCode}, pgx.StrictNamedArgs{
		"cluster": cluster, "after": after, "last": last, "kinds": erasedKinds, "erasable": erasable,
	})
	if err != nil {
		return nil, pg.Explain("read facts of a day", err)
	}
	defer rows.Close()
	parts := map[time.Time]*part{}
	for rows.Next() {
		values := rows.RawValues()
		month := tables.MonthOf(decodeTime(values[0]))
		p := parts[month]
		if p == nil {
			p = &part{all: sha256.New(), salt: salt(month)}
			if p.salt != nil {
				p.names = hmac.New(sha256.New, p.salt)
			}
			parts[month] = p
		}
		p.facts++
		row, names := values[1:1+sealedColumns], values[1+sealedColumns]
		for _, v := range row {
			hashValue(p.all, v)
		}
		if p.names != nil && names != nil {
			hashValue(p.names, row[0])
			hashValue(p.names, names)
		}
	}
	return parts, pg.Explain("read facts of a day", rows.Err())
}

// hashValue adds a column to a digest; nil: it is NULL.
func hashValue(h hash.Hash, value []byte) {
	length := int32(-1)
	if value != nil {
		length = int32(len(value))
	}
	_ = binary.Write(h, binary.BigEndian, length)
	_, _ = h.Write(value)
}

// epoch is when times begin that Postgres sends.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// decodeTime reads a time as Postgres sends it: in microseconds.
func decodeTime(value []byte) time.Time {
	micros := int64(binary.BigEndian.Uint64(value))
	return epoch.Add(time.Duration(micros/1e6) * time.Second).Add(time.Duration(micros%1e6) * time.Microsecond)
}
